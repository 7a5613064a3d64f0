# The recording of one model against the prediction for another: tables, and no verdict.
cd $S/tests/data/kineto
longhaul compare gpt.predicted.csv llama.json --explain | sed -n '1,/^$/p'
longhaul compare gpt.predicted.csv llama.json --explain --json | grep match_rate
longhaul report gpt.predicted.csv llama.json -o $T/page.html > $T/out
grep -o 'Too little was matched[^<]*' $T/page.html
longhaul compare gpt.predicted.csv llama.json --by phase --top 0 --tolerance 15%
