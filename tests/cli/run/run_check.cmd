# every strategy computes what the unsharded model computes; the figures of a table are not text to compare
what="--model longhaul-3m --set layers=2,hidden=64,head_dim=8,ffn=96 --seq 64"
verdict() { longhaul run $what --check "$@" | tail -n 1; }
longhaul run $what --gpus 2 --check | sed 's/ *[0-9]\.[0-9]e-[0-9]*/ E/g; s/^\(loss\|norm\) .*/\1/'
verdict --gpus 4 --strategy local --zero 1 --batch 8
# eight layers in bf16: second moments, squares, are off by twice what gradients are
longhaul run --model longhaul-3m --set layers=8,hidden=64,heads=8,kv_heads=8,head_dim=16,ffn=96,vocab=100 --seq 64 --gpus 4 --tp 4 --profile megatron --dtype bf16 --check | tail -n 1
verdict --gpus 4 --activations offload --optimizer host --poison
verdict --gpus 2 --dtype bf16
# logits that the backward makes again
verdict --gpus 2 --loss cut
# the embedding and the head count as layers: the stages have 2 and 1 layers, and 1 and 2
for ends in head embedding; do
    longhaul run --model longhaul-3m --set layers=3,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2 --strategy local --pp 2 --pipeline 1f1b --batch 4 --stage-layers $ends --check | tail -n 1
done
# stages by cost, under nanotron's profile, whose 16-bit gradients are added later: 2, 1, 1 and no layer; then a head of seven
# layers, which leaves none for the third
for vocab in 870 4096; do
    longhaul run --model longhaul-3m --set layers=4,hidden=64,head_dim=8,ffn=96,vocab=$vocab --seq 64 --gpus 8 --tp 2 --strategy megatron-sp --profile nanotron-2024 --pp 4 --pipeline 1f1b --batch 4 --micro-batch 2 --stage-layers cost --dtype bf16 --check 2>&1 | tail -n 1
done
# as many stages as layers: the head counts as one of two in the last; the embedding would have the first for itself
for ends in head embedding; do
    longhaul predict --quick --model longhaul-3m --set layers=4 --cluster ideal --gpus 4 --strategy local --seq 64 --pp 4 --batch 4 --stage-layers $ends 2>&1 | head -n 1
done
# sums of few terms: 8 columns, which rounding to bf16 moves by more than the tolerance
longhaul run --model longhaul-3m --set layers=2,hidden=8 --seq 64 --gpus 2 --strategy ulysses --dtype bf16 --check | tail -n 1
# the same schedule from a file
longhaul schedule $what --cluster ideal --gpus 2 --profile published --dtype f32 --attention cpu -o $T/a.ir
longhaul run $T/a.ir --check --model longhaul-3m --set layers=2,hidden=64,head_dim=8,ffn=96 | tail -n 1
# gradients of half the size, which clipping would make whole again
sed '/cross_entropy_backward/s/count=63/count=126/' $T/a.ir > $T/half.ir
longhaul run $T/half.ir --check --model longhaul-3m --set layers=2,hidden=64,head_dim=8,ffn=96 2>&1 | grep -o 'norm of the gradients.*off by [0-9.]*\|gradients of .* do not agree\|^wrong' | sed 's/ is [0-9.]*/ is N/g'
# training on bytes: the loss of every strategy lies on the reference's
for strategy in local ulysses; do
    longhaul run $what --gpus 2 --strategy $strategy --batch 2 --data $S/LICENSE --steps 5 --check |
        grep -A 5 '^step      loss' | awk '{print $1, $2}' > $T/$strategy.curve
done
wc -l < $T/local.curve
paste $T/local.curve $T/ulysses.curve |
    awk '$1 != $3 || ($2 - $4) ^ 2 > 1e-8 * $2 ^ 2 {print "differ:", $0}'
longhaul run $what --gpus 2 --data $S/LICENSE --steps 5 --check | tail -n 1 | sed 's/within [^ ]*/within E/'
# traces of the median step
longhaul run $what --gpus 2 --steps 2 -o $T/out | sed 's/[0-9][0-9.]*/N/g; s/ [munµ]*s\b/ s/g'
ls $T/out
