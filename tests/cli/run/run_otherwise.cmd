# what a run does otherwise than its choices say stands in a note and in the trace's header
small="--model longhaul-3m --set layers=1 --seq 64 --steps 1 --warmup 0"
longhaul run $small --profile hf --compile --attention fa3 -o $T/all 2>&1 >/dev/null
grep '^# not_honoured' $T/all/ops.csv
longhaul run $small --profile hf -o $T/chains 2>&1 >/dev/null
grep '^# not_honoured' $T/chains/ops.csv
longhaul run $small --profile neutral -o $T/none 2>&1 >/dev/null
grep '^# not_honoured' $T/none/ops.csv || echo "nothing"
