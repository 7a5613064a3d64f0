# a folder that nobody may write into: every command that writes says so in one line, exit code 2, and leaves nothing
as_user=
if test $(id -u) = 0; then # root without the right to write everywhere
    as_user="setpriv --bounding-set -dac_override,-dac_read_search"
fi
mkdir $T/ro $T/there
echo old > $T/there/old.csv
chmod 555 $T/ro
if ! $as_user true 2> $T/note; then
    echo "root cannot give up its rights here: $(head -n 1 $T/note)"
    exit 77
fi
bad() { $as_user longhaul "$@" 2>&1 > $T/out && echo "taken: $*" || echo "  exit $?: $1"; }
tiny="--model longhaul-3m --set layers=1,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2"
what="--model gpt2 --cluster ideal --gpus 2 --seq 1K"
longhaul sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o $T/a.csv > $T/note
longhaul predict $what --quick -o $T/p > $T/note
bad sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o $T/ro/a.csv
bad predict $what --quick -o $T/ro
bad predict $what --quick -o $T/ro/p --emit-ir
bad plot sweep $T/a.csv -o $T/ro/a.svg
bad plot sweep $T/a.csv -o $T/ro/a
bad plot sweep $T/a.csv -o $T/ro
bad report $T/a.csv -o $T/ro/a.html
bad run $tiny --steps 1 -o $T/ro
bad run $tiny --steps 1 -o $T/ro/r
bad schedule $what -o $T/ro/a.ir
bad validate --source torchtitan-cp --table text -o $T/ro/v.csv
bad bench --quick --kinds add -o $T/ro/b.csv | grep -v '^ *[0-9]*/[0-9]* '
bad calibrate $S/tests/data/calibration/cpu-example.csv -o $T/ro/d.json
ls -A $T/ro

# files that may not be written in a folder that may: they stay
chmod 444 $T/p/memory.csv $T/there/old.csv
cp -r $T/p $T/before
bad predict --model gpt2 --cluster ideal --gpus 4 --seq 1K --quick -o $T/p --emit-chakra
diff -r $T/p $T/before
bad sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o $T/there/old.csv
bad report $T/a.csv -o $T/there/old.csv
cat $T/there/old.csv
