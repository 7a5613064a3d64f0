#!/usr/bin/env bash
# processes.sh PROGRAM: steps of several processes, a rank and an emulated device each, joined by NCCL's stand-in: their
# gradients are those of the unsharded model, and what fails says so in the library's words.
set -u
program=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
port=$((20000 + $$ % 20000))
wrong=0

# ranks COUNT OPTIONS...: what rank 0 prints goes to $out/0.txt; false when one failed.
ranks()
{
    local count=$1 rank pid pids=() code=0
    shift
    port=$((port + 1))
    for ((rank = count - 1; rank >= 0; rank--)); do
        RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            EMULATED_DEVICES=$count \
            timeout 60 "$program" run --backend cuda --gpus "$count" --model longhaul-3m \
            --set layers=2,hidden=64,heads=4,kv_heads=4,head_dim=16,ffn=96,vocab=96 --seq 96 \
            --dtype "${dtype:-f32}" --check "$@" >"$out/$rank.txt" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || code=$?
    done
    return $code
}

# right OPTIONS...: two ranks and the right gradients.
right()
{
    ranks "$@" && return
    echo "wrong: $*"
    cat "$out"/*.txt
    wrong=$((wrong + 1))
}

# says WORDS OPTIONS...: it fails, and some rank says why.
says()
{
    local words=$1
    shift
    if ranks "$@" || ! grep -qF "$words" "$out"/*.txt; then
        echo "not said: $words"
        cat "$out"/*.txt
        wrong=$((wrong + 1))
    fi
}

right 2 --strategy ulysses --profile ideal --weights zero3
right 3 --strategy ring --profile ideal --weights zero1
right 2 --strategy ring --profile torchtitan --rotate all-gather
right 2 --strategy ring --profile torchtitan --rotate all-to-all
right 2 --strategy fpdt --profile deepspeed --chunk 48
right 2 --strategy megatron-sp
right 2 --strategy local --pp 2 --profile ideal --batch 2
right 2 --strategy local --pp 2 --pipeline msp --subsequences 4 --profile ideal --weights replicated
right 2 --strategy local --pp 2 --pipeline msp --subsequences 4 --profile ideal --weights replicated --helper-weights shard
dtype=bf16 right 2 --strategy ulysses --profile ideal --attention-by fused
export EMULATED_CUDNN=90501
dtype=bf16 right 2 --strategy ulysses --profile ideal
heard=$(grep -h "^attention: note: is computed by tiles, .*: cuDNN: version 9.5.1 " "$out"/[01].txt | wc -l)
if [[ $heard != 1 ]]; then
    echo "said $heard times, not once: that attention is computed by tiles"
    wrong=$((wrong + 1))
fi
dtype=bf16 says "cuDNN: error: version 9.5.1 " 2 --strategy ulysses --profile ideal --attention-by fused
unset EMULATED_CUDNN
export EMULATED_NCCL_HANGS=1
says "(all_reduce, stream" 2 --strategy ulysses --profile ideal --weights replicated --timeout 3
unset EMULATED_NCCL_HANGS
export EMULATED_NCCL_FAILS=ncclAllReduce
says "NCCL: unhandled system error of the emulated library: the words of the emulated library" \
    2 --strategy ulysses --profile ideal --weights replicated
export EMULATED_NCCL_FAILS=ncclCommInitRankConfig
says "ncclCommInitRankConfig: error: group" 2 --strategy ulysses --profile ideal
exit $((wrong > 0))
