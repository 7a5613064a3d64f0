# The power limit and the SM clocks that a prediction assumes: products and attention draw
# different power. Where the highest clock is not known only the limit is shown.
what="--model llama3-8b --set layers=2 --seq 8K --gpus 1 --strategy local --quick"
longhaul predict $what --attention fa2 --cluster dgx-h100 --all -o $T/h | sed -n '/^ *power /p'
sed -n '/^# sm_clock/p; /^# power/p; /^rank/q' $T/h/ops.csv
longhaul predict $what --attention fa2 --cluster dgx-h100 --json | sed -n '/"power": {/,/}/p' | sed 's/\(mhz": [0-9]*\)\.[0-9]*/\1/'
longhaul predict $what --cluster b200 --all | sed -n '/^ *power /p'
