# Steps packed of documents: what was packed, who is late, and what is refused.
step="--model gpt2 --set layers=4 --cluster dgx-a100 --gpus 4 --seq 1K --dp 2 --batch 4 --quick"
cd $T
printf '# by hand\nlength\n1024\n512\n512\n256\n768\n100\n2000\n' > lengths.csv
packed() { longhaul predict $step "$@" 2>&1 | grep -E '^(documents|late|batches|tokens|  *[a-z0-9].*(pairs|tokens/s|padding))|error'; }
packed --documents lengths.csv
packed --documents lengths.csv --packing truncate
for packing in first-fit best-fit buckets; do packed --documents zipf:1.1,1K --packing $packing --seed 7 | grep ^documents; done
packed --documents lognormal:200,1.5 --batches 4 --balance ranks
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 4 --seq 128K --strategy ring --layout zigzag-documents --documents $S/traces/documents/python-3.11.csv --quick | grep ^documents
longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 2 --seq 64K --strategy sppo --tp 4 --pp 4 --subsequences 8 --batch 4 --documents lognormal:2K,1.5 --quick | grep ^documents
# one document a sequence is a causal step
longhaul predict $step --json > causal.json
printf '1024\n' > one.csv
longhaul predict $step --documents one.csv --json > one.json
grep '"step_s"' causal.json one.json | sort -u -k2 | wc -l
# sampled batches keep to themselves
printf 'batch,length\n1,1024\n1,300\n2,700\n2,700\n' > batches.csv
packed --documents batches.csv --batches 2
packed --documents batches.csv --batches 3
packed --documents batches.csv --seed 2
printf 'batch,length\n1,700\n1,700\n1,700\n1,700\n1,700\n' > full.csv
packed --documents full.csv
# a step among many takes what it takes by itself
large="--model llama3-8b --set layers=4 --cluster dgx-h100 --nodes 2 --seq 64K --dp 2 --batch 2 --quick --json"
printf 'batch,length\n1,60000\n1,3000\n2,20000\n2,20000\n2,20000\n' > two.csv
step_s() { sed -n 's/^ *"step_s": \(.*\),/\1/p' "$@"; }
longhaul predict $large --documents two.csv --batches 2 | step_s | head -n 2 > together
for batch in 1 2; do
    (head -n 1 two.csv; grep "^$batch," two.csv) > own.csv
    longhaul predict $large --documents own.csv | step_s
done > apart
cmp together apart && sort -u together | wc -l
# a late rank is late in every step
late="--model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 4 --seq 16K --dp 2 --batch 2 --quick --json --documents lognormal:2K,1.5 --batches 3"
longhaul predict $late | step_s > plain
longhaul predict $late --late-rank 1:50% | step_s | paste plain - | awk '$2 > 1.05 * $1 { n++ } END { print n, "of", NR, "steps are longer" }'
# where replicas wait for the one with most pairs, dealing sequences by pairs makes steps shorter
for balance in none pairs ranks; do
    longhaul predict --model llama3-8b --set layers=4 --cluster dgx-h100 --nodes 2 --seq 64K --dp 4 --batch 16 --documents lognormal:4K,1.8 --batches 4 --balance $balance --quick --json |
        sed -n "s/^ *\"median_step_s\": \(.*\),/\1 $balance/p"
done | sort -n | cut -d' ' -f2
# a sweep over packings has what predict says of each
longhaul sweep --model gpt2 --set layers=4 --cluster dgx-a100 --gpus 4 --seq 1K --dp 2 --batch 4 --documents lognormal:200,1.5 --vary packing=best-fit,truncate --vary balance=none,ranks > sweep.csv
for packing in best-fit truncate; do
    for balance in none ranks; do
        want=$(longhaul predict $step --documents lognormal:200,1.5 --packing $packing --balance $balance --json | sed -n 's/^  "step_s": \(.*\),/\1/p')
        grep -c "^$packing,$balance,fits,.*,$want," sweep.csv
    done
done
longhaul sweep --model gpt2 --cluster dgx-a100 --gpus 4 --seq 1K --vary packing=best-fit,truncate 2>&1 || true
# a sweep goes on with the same lengths only, of whatever file they are
printf '900\n' > mine.csv
printf 'from,upto,share\n1,900,1\n' > shares.csv
for documents in mine.csv histogram:shares.csv; do
    go_on="--model gpt2 --set layers=2 --cluster dgx-a100 --gpus 2 --seq 1K --documents $documents --vary packing=best-fit,truncate -o go_on.csv"
    longhaul sweep $go_on > note 2>&1
    longhaul sweep $go_on 2>&1 | tail -n 1
    sed -i 's/900/300/' mine.csv shares.csv
    longhaul sweep $go_on 2>&1 || echo "  exit $?"
    sed -i 's/300/900/' mine.csv shares.csv
    rm go_on.csv
done
# mistakes
packed --documents lengths.csv --balance dynamic-cp
packed --batches 2
packed --packing buckets
printf '12\n-3\n' > bad.csv
packed --documents bad.csv
printf '12,3\n' > bad.csv
packed --documents bad.csv
printf '# none\n' > bad.csv
packed --documents bad.csv
packed --documents lognormal:2K
packed --documents zipf:1.2,1G
packed --documents nowhere.csv
# histograms: shipped ones and mistakes
for file in llama3-sft wlb-llm-distca longca-pile longca-prolong64k longca-prolong512k; do
    longhaul predict --model llama3-8b --set layers=4 --cluster dgx-h100 --nodes 2 --seq 128K --strategy ulysses --batch 4 --documents histogram:$S/traces/documents/$file.csv --quick | grep ^documents
done
longhaul predict --model llama3-8b --set layers=4 --cluster dgx-h100 --nodes 2 --seq 128K --strategy ulysses --batch 4 --documents $S/traces/documents/transformers-5.24-directories.csv --seed 3 --packing truncate --quick | grep ^documents
for text in 'upto,share\n5,1' 'from,upto,share' 'from,upto,share\n9,5,1' 'from,upto,share\n1,5,-1' 'from,upto,share\n1,5,0' 'from,upto,share\n1,5'; do
    printf "$text\n" > bad.csv
    packed --documents histogram:bad.csv
done
# a launch file that asks for context ranks by length says that they are not modelled
echo "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 8 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 8 --context-parallel-size 2 --dynamic-context-parallel --bf16 --vocab-size 32000" > dcp.sh
longhaul predict dcp.sh --cluster dgx-h100 --quick 2>&1 | grep -o 'dynamic-context-parallel (line 1): .*'
# what packing drops is a warning with the count, in a prediction and in a search; a training takes steps as the mean of the batches
lossy="--model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 8 --seq 8K --batch 8 --documents lognormal:2K,1.8 --batches 3"
longhaul predict $lossy --quick | grep -o 'packing drops.*'
longhaul predict $lossy --quick --packing truncate | grep 'packing drops' || echo none dropped
longhaul plan $lossy --strategy ulysses 2>&1 > screen | grep -o 'warning: packing drops [0-9]* tokens'
longhaul predict $lossy --quick --tokens 1B --json > training.json
longhaul predict $lossy --quick --tokens 1B | sed -n 's/^training *\([^:]*\):.*/\1/p'
awk -F '[:,]' '/"mean_tokens_per_s_gpu"/ { rate = $2 } /"days"/ { days = $2 } END { off = days * 86400 * rate * 8 / 1e9 - 1; print (off < 1e-3 && off > -1e-3) ? "days of the mean" : off }' training.json
