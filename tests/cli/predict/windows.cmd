# Mistral 7B v0.1 has a window of 4096 tokens in all layers: attention over 64K tokens becomes a small share of the step.
mistral="--model $S/tests/data/configs/mistral-7b-v0.1.json --cluster dgx-h100 --gpus 8"
step() { longhaul predict $mistral --seq 64K --quick --json "$@" | sed -n 's/.*"step_s": *\([0-9.]*\).*/\1/p' | head -1; }
echo $(step --strategy ulysses) $(step --strategy ulysses --ignore sliding_window) |
    awk '{ print ($1 < 0.5 * $2 ? "less than half of full attention\x27s step" : $0) }'
# a window of the whole sequence is the causal mask
for strategy in "ulysses --hp 4" "upipe --hp 4" "megatron-sp --tp 4" "sppo --pp 2 --tp 2 --subsequences 4" "ring --cp 4" "2d --cp 2 --hp 2" "fpdt --hp 4 --chunk 2K"; do
    longhaul schedule $mistral --seq 8K --dp 2 --set layers=4,attention_window=8192 --strategy $strategy | grep -v '^#' > $T/window
    longhaul schedule $mistral --seq 8K --dp 2 --set layers=4,attention_window=0 --strategy $strategy | grep -v '^#' > $T/causal
    cmp $T/window $T/causal && echo "$strategy: as causal"
done
# one layer in three sees all keys: the operations of two kinds, and folding gives what --exact gives
longhaul schedule $mistral --seq 64K --set layers=6,full_attention_every=3 --strategy ulysses --flat |
    sed -n 's/.* \(attention\|attention_backward\) .*\(mask=[a-z]*\).*/\1 \2/p' | sort | uniq -c
for given in full_attention_every=6 window_from_layer=16 window_from_layer=3,full_attention_every=4; do
    echo $given $(step --strategy ulysses --set $given) $(step --strategy ulysses --set $given --exact) |
        awk '{ gap = ($2 - $3) / $3; print $1 ": " (gap * gap < 1e-18 ? "folded is exact" : $0) }'
done
# a ring passes blocks only as far as they are seen, and chunks fetch no others: three of eight ranks, one of eight chunks before
for strategy in "ring --cp 8" "fpdt --hp 8 --chunk 8K"; do
    longhaul schedule $mistral --seq 64K --set layers=1 --strategy $strategy --checkpoint none --flat |
        sed -n 's/.* attention [^ ]* .* step=\([0-9]*\).*/\1/p' | sort -n | uniq -c | tr '\n' ';'
    echo $strategy
done
# Settings of Megatron have the window; torchtitan is refused, since none of its flavors has one.
for framework in megatron torchtitan; do
    longhaul plan $mistral --seq 64K --set layers=4,full_attention_every=2 --strategy local --dp 8 --emit $framework > $T/settings &&
        grep window $T/settings || echo "exit $?"
done
longhaul predict --model llama3-8b --set full_attention_every=2 --cluster dgx-h100 --gpus 8 --seq 64K || echo "exit $?"
