# The layout that is fastest for documents is not the one for whole sequences.
cd $T
what="--model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 8 --seq 64K --batch 8 --weights zero1 --activations keep"
lengths="--documents lognormal:2K,1.8 --balance ranks"
degrees() { sed -n 's/.*"options": "\(.*\) --weights.*/\1/p' $1 | head -1; }
longhaul plan $what --json > whole.json
longhaul plan $what $lengths --batches 6 --top 1000 --json > packed.json 2> note
grep -c 'packing drops [0-9]* tokens' note
degrees whole.json
degrees packed.json
# no row of the ranking takes less time in the median of the same batches, and the first takes what was said
number() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),*/\1/p" $1 | head -1; }
number packed.json median_step_s > first
awk -F '"' '/"families"/ { exit } /"command"/ { print $4 }' packed.json > commands
while read -r command; do
    sh -c "$command --quick --json" > row.json 2> note
    number row.json median_step_s
done < commands > medians
head -1 medians | cmp - first
sort -g medians | head -1 | cmp - first
test $(wc -l < medians) -ge 10 && echo "ten rows or more"
# batches that the best were compared on, and a page of the best
longhaul plan $what $lengths --strategy ulysses --batches 6 -o d > screen 2> note
grep -oE '^batches|in 6 batches|faster than the best in [0-9] of [0-9] batches' screen | sort -u
sed -n 's|.*<td>documents<.td><td[^>]*>\(.*\)<.td>.*|\1|p; s|.*<td>batches<.td><td[^>]*>\(.*\)<.td>.*|\1|p' d/report.html | sed 's/[0-9][0-9.]*/N/g'
# a file of two sampled batches has no third one
printf 'batch,length\n' > two.csv
for i in 1 2 3 4 5 6 7 8; do printf '1,%d\n2,60000\n' $((i * 8000)); done | sort -n >> two.csv
longhaul plan $what --strategy ulysses --documents two.csv | grep -oE 'worst .* in [0-9]* batch[es]*' | sed 's/[0-9.]* m*s/T/'
# the fewest GPUs
longhaul plan $what --goal gpus $lengths --batches 1 --strategy ulysses 2> note | grep -oE '^Fewest GPUs: [0-9]*|in 1 batch'
# mistakes
bad() { longhaul plan --model gpt2 --cluster dgx-a100 --gpus 4 "$@" 2>&1 || echo "  exit $?"; }
bad --seq 1K --batches 3
bad --seq 1K --packing buckets
bad --goal longest --documents lognormal:2K,1.5
bad --seq 1K --documents nowhere.csv
printf 'batch,length\n1,900\n1,900\n1,900\n' > full.csv
bad --seq 1K --batch 2 --documents full.csv
