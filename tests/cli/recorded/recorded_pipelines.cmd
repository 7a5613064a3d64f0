# sweep --record-cmd --record-stages: the command runs once for each stage of a pipeline, at several numbers of stages,
# world sizes and lengths in one sweep. The command of this test stands for longhaul.record: it takes recordings that are
# there, of four stages with one rank each and of two with two.
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
cd $T
cp $S/tests/data/recordings/stage-?.json.gz $S/tests/data/recordings/grid-?.json.gz $S/tests/data/recordings/llama-fsdp.json.gz .
cat > record.sh << 'END'
echo "w=$LONGHAUL_RECORD_WORLD_SIZE s=$LONGHAUL_RECORD_STAGES r=$LONGHAUL_RECORD_RANK l=$LONGHAUL_RECORD_LENGTH" | tee -a calls
case $LONGHAUL_RECORD_WORLD_SIZE/$LONGHAUL_RECORD_STAGES in
4/4) from=stage-$LONGHAUL_RECORD_RANK ;;
4/2) from=grid-$LONGHAUL_RECORD_RANK ;;
8/) from=llama-fsdp ;;
8/4) test "$LONGHAUL_RECORD_RANK" -lt 4 || { echo "no such stage" >&2; exit 3; }; from=stage-0 ;;
*) from=stage-0 ;;
esac
cp $from.json.gz "$LONGHAUL_RECORD_OUTPUT"
END
short() { sed 's/-[0-9a-f]\{16\}//g'; }
rows() { grep -v '^#' $1 | cut -d, -f1-5 | short; }
# two divisions of four GPUs and two lengths, several commands at the same time
longhaul sweep --record-cmd 'sh record.sh' --gpus 4 --cluster dgx-h100 --vary record-stages=2,4 --vary seq=1K,2K --jobs 4 -o divisions.csv
sort calls
rows divisions.csv
ls recordings recordings/w4-s4-l1024-* | short
# each is what the recordings predict by themselves
mkdir two
cp grid-?.json.gz two
longhaul sweep --recording two --gpus 4 --vary cluster=dgx-h100 | grep -v '^#' | cut -d, -f2-5
# they are kept; another cluster with the same GPU takes them
longhaul sweep --record-cmd 'sh record.sh' --gpus 4 --vary cluster=dgx-h100:nic.latency=9us,dgx-h100 --vary record-stages=4 --seq 2K -o again.csv
wc -l < calls
# a stage that was not recorded leaves those before it, and is named; one whose rank is another one cannot be paired
longhaul sweep --record-cmd 'sh record.sh' --record-dir kept --cluster dgx-h100 --vary gpus=4,8,6,2 --record-stages 4 -o failed.csv || echo "exit $?"
rows failed.csv
ls kept kept/w8-s4-h100-* | short
longhaul sweep --record-cmd 'sh record.sh' --record-dir kept --cluster dgx-h100 --gpus 16 --vary record-stages=2 -o mixed.csv 2> note || echo "exit $?"
rows mixed.csv
# without stages the command's own rank stays
LONGHAUL_RECORD_RANK=5 LONGHAUL_RECORD_STAGES=9 longhaul sweep --record-cmd 'sh record.sh' --record-dir whole --cluster dgx-h100 --vary gpus=8 -o whole.csv
tail -1 calls
# what cannot be
bad sweep --record-stages 2 --recording two --cluster dgx-h100 --vary gpus=4
bad sweep --record-stages 0 --record-cmd true --cluster dgx-h100 --vary gpus=4
bad sweep --record-stages 2 --vary record-stages=2,4 --record-cmd true --cluster dgx-h100
