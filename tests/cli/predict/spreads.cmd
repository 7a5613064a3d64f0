# A file that calibrate wrote has the spread of each number, and intervals follow from them: narrower than those of a
# preset's numbers, wider where spreads are twice as large.
model="--model $S/tests/data/recorded/llama-a.config.json --cluster cpu-node --weights replicated --activations keep --dtype f32 --attention cpu"
one="--gpus 1 --strategy local"
gunzip -c $S/tests/data/recorded/llama-a-1x512.0.json.gz > $T/steps.json
longhaul calibrate $T/steps.json $model $one --seq 512 -o $T/mine.json > $T/out
awk -F '"spread": ' 'NF == 2 {n = $2 + 0; sub(/^[0-9.e-]+/, "", $2); $0 = $1 "\"spread\": " 2 * n $2} {print}' $T/mine.json > $T/twice.json
grep -c '"spread": ' $T/mine.json
grep -o 'f32_flop_per_s.*"spread": [0-9.]*' $T/mine.json $T/twice.json | sed 's/.*spread/spread/'
# the width of an interval over the step, in per cent
width() { longhaul predict $model $one --seq 1024 --quick --json "$@" | grep -o '"step_s": [0-9.]*\|"step_low_s": [0-9.]*\|"step_high_s": [0-9.]*' | awk '{v[$1] = $2} END {printf "%.0f\n", 100 * (v["\"step_high_s\":"] - v["\"step_low_s\":"]) / v["\"step_s\":"]}'; }
own=$(width --costs $T/mine.json) twice=$(width --costs $T/twice.json) preset=$(width)
test $own -lt $twice && test $twice -lt $preset && echo "widths grow: measured, twice the spread, preset"
# which figures were measured, and which were not: links are asked for by rings only
rings="--gpus 2 --strategy ring"
sure() { longhaul predict $model --quick "$@" | sed -n '/^How sure/,/^  A GPU/p' | sed '/^  A GPU/d; s/takes [0-9.]* to [0-9.]* m*s/takes .../; s/[0-9.]* %/N %/g'; }
sure --costs $T/mine.json $one --seq 1024
sure --costs $T/mine.json $rings --seq 256
sure $one --seq 1024
# a cluster file says it of links
cd $S/tests/data/calibration
longhaul calibrate all_reduce_8.txt alltoall_8.txt all_gather_perf:all_gather_2x4.txt --cluster dgx-h100 --cluster-out $T/links.json > $T/out 2> $T/err
grep -c '"spread": ' $T/links.json
longhaul predict --model llama3-8b --cluster $T/links.json --nodes 1 --seq 32K --strategy ulysses --quick --json | grep -o '"part": "links within a node", "measured": [a-z]*, "spread": [0-9.]*'
# what is no spread
sed '/f32_flop_per_s/s/"spread": /"spread": -/' $T/mine.json > $T/wrong.json
longhaul predict $model $one --seq 1024 --costs $T/wrong.json 2>&1 > $T/out || echo "exit $?"
