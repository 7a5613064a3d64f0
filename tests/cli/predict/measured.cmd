# your own measured runs shift and narrow the interval of a prediction like them
what="--model llama3-8b --cluster dgx-h100 --nodes 1 --seq 128K --quick"
longhaul predict $what --record $T/mine.jsonl > $T/out
# a step that took a tenth longer than predicted, and a record that is not measured yet
step=$(sed -n 's/.*"predicted": *{[^}]*"step_s": *\([0-9.]*\).*/\1/p' $T/mine.jsonl)
sed "s/\"measured\": *{\"step_s\": *null/\"measured\": {\"step_s\": $(awk "BEGIN {print $step * 1.1}")/" $T/mine.jsonl > $T/measured.jsonl
cat $T/mine.jsonl >> $T/measured.jsonl
width() { longhaul predict "$@" --json | awk -F '[:,]+' '/"step_low_s"/ {a = $2} /"step_high_s"/ {b = $2} /"own_runs"/ {n = $2} /"shift"/ {s = $2} END {printf "%.0f %% wide, %d own runs, shift %+.3f\n", 100 * (b / a - 1), n, s}'; }
width $what
width $what --measured $T/measured.jsonl
longhaul predict $what --measured $T/measured.jsonl | grep -o 'your 1 measured run.*'
# a run that is unlike is hardly moved
width --model gpt-7b --cluster dgx-a100 --gpus 8 --seq 32K --strategy fpdt --profile deepspeed --quick --measured $T/measured.jsonl
# a table of residuals does, too
head -3 $S/traces/published/residuals.csv > $T/rows.csv
width $what --measured $T/rows.csv
bad() { longhaul "$@" 2>&1 > $T/out && echo "taken: $*" || echo "  exit $?" | sed "s|$T|T|"; }
bad predict $what --measured $T/mine.jsonl | sed "s|$T|T|"
sed 's/"run": *{[^}]*}/"old": 1/' $T/measured.jsonl > $T/old.jsonl
bad predict $what --measured $T/old.jsonl | sed "s|$T|T|"
bad predict $what --measured $T/none | sed "s|$T|T|"
bad run --model longhaul-3m --seq 64 --measured $T/measured.jsonl
# a comparison can be kept, and read again
here="--model longhaul-3m --cluster cpu-node --gpus 1 --seq 512 --dtype f32 --attention cpu"
longhaul predict $here --exact --quick -o $T/p > $T/out
longhaul run --model longhaul-3m --gpus 1 --seq 512 -o $T/m > $T/out
longhaul compare $T/p $T/m --record $T/kept.jsonl > $T/out
longhaul validate --records $T/kept.jsonl | grep -o '1 recorded, 1 measured'
longhaul predict $here --exact --quick --measured $T/kept.jsonl | grep -o 'your 1 measured run like it'
longhaul compare $T/p $T/m --explain --record $T/kept.jsonl 2>&1 || echo "  exit $?"
sed 's/"run": *{/"none": {/' $T/p/prediction.json > $T/out && cp $T/out $T/p/prediction.json
longhaul compare $T/p $T/m --record $T/kept.jsonl 2>&1 > $T/out | sed "s|$T|T|; s/json:[0-9:]*/json/"
