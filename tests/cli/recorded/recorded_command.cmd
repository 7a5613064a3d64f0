# sweep --record-cmd records each point by a command, which finds what to record in variables. The command of this test
# stands for longhaul.record: it takes recordings that are there.
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
cd $T
cp $S/tests/data/recordings/llama-one.json.gz one.json.gz
cp $S/tests/data/recordings/llama-fsdp.json.gz fsdp.json.gz
cat > record.sh << 'END'
echo "w=$LONGHAUL_RECORD_WORLD_SIZE l=$LONGHAUL_RECORD_LENGTH b=$LONGHAUL_RECORD_BATCH d=$LONGHAUL_RECORD_DEVICE" | tee -a calls
case $LONGHAUL_RECORD_WORLD_SIZE in
1) cp one.json.gz "$LONGHAUL_RECORD_OUTPUT" ;;
3) echo '{"format":"longhaul-step"}' > "$LONGHAUL_RECORD_OUTPUT" ;;
7) exit 255 ;;
2) echo "no GPUs for you" >&2; exit 3 ;;
4) head -c 100 one.json.gz > "$LONGHAUL_RECORD_OUTPUT" ;;
5) kill -9 $$ ;;
6) true ;;
16) mkdir "$LONGHAUL_RECORD_OUTPUT"; cp one.json.gz "$LONGHAUL_RECORD_OUTPUT/stage.json.gz" ;;
*) sleep 0.2; here=$PWD; cd / && cp "$here/fsdp.json.gz" "$LONGHAUL_RECORD_OUTPUT" ;;
esac
END
rows() { grep -v '^#' $1 | cut -d, -f1-4 | sed 's/recordings.*[0-9a-f]\{16\}/FILE/g'; }
# lengths and clusters, whose devices have kernels of their own: six points, three recordings of eight ranks
longhaul sweep --record-cmd 'sh record.sh' --gpus 8 --vary cluster=dgx-h100,dgx-h100:nic.latency=9us,dgx-a100 --vary seq=1K,2K --batch 16 --jobs 4 -o lengths.csv
sort calls
grep -v '^#' lengths.csv | cut -d, -f1-3
ls recordings | sed 's/-[0-9a-f]\{16\}//'
# they are kept: another sweep records nothing
longhaul sweep --record-cmd 'sh record.sh' --gpus 8 --cluster dgx-h100 --seq 2K --batch 16 --vary attention=fa2,fa3 > more.csv
wc -l < calls
# unless a file of the command has changed
echo '# changed' >> record.sh
longhaul sweep --record-cmd 'sh record.sh' --gpus 8 --cluster dgx-h100 --seq 2K --batch 16 --vary attention=fa2,fa3 > more.csv
wc -l < calls
# a command may change its own file while it runs: the recordings of one sweep are those of one command
longhaul sweep --record-cmd 'sh record.sh; echo "# changed again" >> record.sh' --record-dir own --gpus 8 --cluster dgx-h100 --vary seq=1K,2K --batch 16 --jobs 1 > own.csv
ls own/*.gz | sed 's/.*-\([0-9a-f]\{16\}\).*/\1/' | sort | uniq | wc -l
# a command that fails gives its points a reason, and leaves no recording, nor a folder in its place
longhaul sweep --record-cmd 'sh record.sh' --record-dir kept --cluster dgx-h100 --vary gpus=1,2,3,4,5,6,7,8,16 > failed.csv || echo "exit $?"
rows failed.csv | sed 's/kept.w\([0-9]*\)-h100-[0-9a-f]*/kept\/w\1/'
ls kept | sed 's/-[0-9a-f]\{16\}//'
# what was killed is tried again by the same command, and a device that the recorder has no name for is not passed on
for i in 1 2; do
    LONGHAUL_RECORD_DEVICE=h200 longhaul sweep --record-cmd 'sh record.sh' --record-dir again --cluster 1x8xideal --vary gpus=1,5 -o again.csv 2> note || echo "exit $?"
done
cat again/w1-*.log
# a sweep that is told to end takes its commands with it
longhaul sweep --record-cmd 'echo $$ > pid; exec sleep 60' --record-dir ended --cluster dgx-h100 --vary gpus=1 > ended.csv 2> note &
sweep=$!
for i in $(seq 100); do [ -s pid ] && break; sleep 0.1; done
{ kill -TERM $sweep; wait $sweep || echo "exit $?"; } 2> note # where the shell says that it ended, too
for i in $(seq 50); do kill -0 $(cat pid) 2> note || break; sleep 0.1; done
kill -0 $(cat pid) 2> note || echo "the command has ended"
ls ended | grep -c json.gz || true
# what cannot be
bad sweep --record-cmd true --recording one.json.gz --cluster dgx-h100 --vary gpus=1
bad sweep --record-dir kept --recording one.json.gz --cluster dgx-h100 --vary gpus=1
bad sweep --record-cmd true --cluster dgx-h100 --tp 2 --vary gpus=1
bad sweep --record-cmd true --record-dir one.json.gz --cluster dgx-h100 --vary gpus=1 | grep exit
