# What fits with little to spare fits in some cases only. A device that the allocator's cache fills is not such a case: what is cache is said.
cached="--model gpt-7b --set layers=8 --cluster sppo-a100 --gpus 4 --strategy sppo --profile published --tp 1 --pp 4 --batch 1 --subsequences 32 --seq 256K"
said() { sed -E 's/ \(90 %: [^)]*\)//; s/[0-9.]+ ([GM]iB)/x \1/g'; }
longhaul predict $cached --quick -o $T/p 2> $T/notes | head -1 | said
grep -E '"(fits|fits_probability)"' $T/p/prediction.json
test $(sed -n 's/.*"device_cache_bytes": \([0-9]*\).*/\1/p' $T/p/prediction.json) -gt 10000000000 && echo "more than 10 GB are cache"
longhaul report $T/p -o $T/page.html
sed -n 's/<p class="verdict \([a-z]*\)">\([^:]*\).*/\1: \2/p' $T/page.html
longhaul plan $cached --top 1 --all 2> $T/notes | grep '^1 ' | said | grep -o 'x GiB (.*cache)'
# the last length that fits is
longhaul plan --longest --model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 2 --strategy ulysses --checkpoint none --fits-probability 0.5 | grep -E '^(fits|next)' | said | sed 's/next .*: dev/next dev/; s/, [0-9]* bytes//'
longhaul plan --longest --model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 2 --strategy ulysses --checkpoint none --fits-probability 0.5 --json | grep fits_probability
# an interval beyond the memory of a step that fits: the cache inside it is named
longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 1M --strategy fpdt --hp 8 --weights zero3 --activations selective-offload --optimizer host --chunk 512K --loss-chunks 8 | sed -n 's/^ *A GPU needs .* in 9 of 10 cases.* Of the predicted/Of the predicted/p' | said
# repairs that are refused take none of the steps in which the best of each strategy is looked for
longhaul plan --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 1M 2> $T/notes | sed -n 's/^\(ring\|2d\) .*per sequence.*/\1: simulated/p'
