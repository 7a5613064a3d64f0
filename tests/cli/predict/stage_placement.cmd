# Where stages of a pipeline lie: outermost, or inside dp; over nodes that is what goes between them.
step="--model longhaul-3m --cluster 2x2xh100 --seq 8K --batch 8 --strategy megatron-sp --tp 1 --pp 2 --weights zero1"
for places in outer inner; do
    longhaul schedule $step --stage-placement $places | grep '^mesh '
    longhaul predict $step --stage-placement $places --quick --json > $T/$places
    grep -o '"stage_placement": *"[a-z]*"' $T/$places
    sed -n 's/.*"step_s": *\([0-9.e-]*\).*/\1/p' $T/$places > $T/$places.s
done
cmp -s $T/outer.s $T/inner.s || echo "another step"
longhaul predict $step --stage-placement inner --quick | grep -o 'stages inside dp'
# both need the same memory but for NCCL's buffers, so that a search judges it once
for layout in "--strategy megatron-sp --tp 1 --pp 2 --dp 4 --weights zero1" "--strategy megatron-sp --tp 2 --pp 2 --dp 2 --weights hsdp --shard 2" \
    "--strategy megatron-sp --tp 1 --pp 4 --dp 2 --activations selective" "--strategy sppo --tp 2 --pp 2 --dp 2 --subsequences 2"; do
    for places in outer inner; do
        longhaul predict $layout --model gpt2 --cluster 4x2xh100 --gpus 8 --seq 1K --batch 16 --stage-placement $places --quick --json 2> $T/note > $T/of.json
        awk -F '[:,]' '/"host_needed_bytes"|"device_cache_bytes"/ { print } /"device_needed_bytes"/ { all = $2 } /"reserved_nccl_bytes"/ { print "without NCCL:", all - $2 }' $T/of.json > $T/$places.bytes
    done
    grep -c . $T/outer.bytes
    cmp $T/outer.bytes $T/inner.bytes
done
# both are searched, and printed where it is not the usual one
longhaul plan --model longhaul-3m --cluster 2x2xh100 --seq 8K --batch 8 --strategy megatron-sp --tp 1 --pp 2 --weights zero1 --activations full --top 9 | grep -cE -- '--stage-placement inner'
longhaul plan --model longhaul-3m --cluster 2x2xh100 --seq 8K --batch 8 --strategy megatron-sp --tp 1 --pp 2 --weights zero1 --activations full --stage-placement outer --top 9 | grep -cE -- '--stage-placement inner' || true
# and executed
longhaul run --model longhaul-3m --set layers=2 --gpus 4 --seq 64 --batch 4 --strategy megatron-sp --tp 1 --pp 2 --dtype f32 --attention cpu --profile ideal --stage-placement inner --check | grep -c '^right'
longhaul predict --model longhaul-3m --cluster 2x2xh100 --seq 8K --strategy megatron-sp --tp 1 --pp 4 --batch 4 --stage-placement inner --quick 2>&1 > $T/note | sed 's/.*\(changes nothing\)/\1/'
longhaul predict $step --stage-placement near 2>&1 || echo "exit $?"
