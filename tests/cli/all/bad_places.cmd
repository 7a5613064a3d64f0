# what cannot be written is said, by every command that writes: exit code 2 and one line
full() { longhaul "$@" 2>&1 > /dev/full && echo "taken: $*" || echo "  exit $?: $*"; }
bad() { longhaul "$@" 2>&1 > $T/out && echo "taken: $*" || echo "  exit $?: $*"; }
tiny="--model longhaul-3m --set layers=1,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2"
longhaul sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o $T/a.csv > $T/out
bad run $tiny --steps 1 -o /proc/none
bad predict --model gpt2 --cluster ideal --gpus 2 --seq 1K --quick -o /proc/none
bad report $T/a.csv -o /dev/full
bad report $T/a.csv -o $T/none/a.html
bad plot sweep $T/a.csv -o $T/none/a.svg
bad plot sweep $T/a.csv -o /proc/a.svg
bad sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o /proc/a.csv
bad bench --quick --kinds add -o /dev/full | grep -v '^ *[0-9]*/[0-9]* '
bad calibrate $S/tests/data/calibration/cpu-example.csv -o /dev/full
bad validate --source torchtitan-cp --table text -o /dev/full
full list --json
full help --json
full run $tiny --steps 1
full run $tiny --steps 1 --json
full calibrate $S/tests/data/calibration/cpu-example.csv --json
full why $S/tests/data/snapshots/oom.pickle
full sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2
full plan --longest --model gpt2 --cluster ideal --gpus 2
full report $T/a.csv
ls $T
