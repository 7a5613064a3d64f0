# one layer on two tensor ranks by every plan: collectives of tensor ranks, and copies around them (pack, unpack)
for plan in megatron module linear replicated; do
    longhaul schedule --flat --model longhaul-3m --set layers=1 --seq 64 --gpus 2 --cluster dgx-h100 --strategy megatron-sp \
        --tp 2 --micro-batch 2 --activations keep --profile torchtitan --tensor-plan $plan -o $T/$plan.ir
    echo $plan $(grep -oE '(all_gather|reduce_scatter|all_reduce|pack|unpack) .*' $T/$plan.ir | cut -d' ' -f1 | sort | uniq -c)
done
longhaul predict --model longhaul-3m --seq 64 --gpus 1 --cluster dgx-h100 --tensor-plan linear --quick 2>&1 >/dev/null
# the vocabulary of tensor ranks: what cannot be, and what it costs in logits
vocabulary() { longhaul predict --model longhaul-3m --seq 64 --gpus 2 --cluster dgx-h100 --strategy megatron-sp --tp 2 --quick "$@" 2>&1 > $T/out ||
    echo exit $?; grep -o 'vocabulary [a-z]*' $T/out | head -1; }
vocabulary --profile torchtitan --vocabulary whole
vocabulary --profile torchtitan --vocabulary gathered --set vocab=257
vocabulary --profile torchtitan --vocabulary gathered --loss parallel
vocabulary --profile torchtitan --loss eager
vocabulary --profile torchtitan --loss cut
vocabulary --profile torchtitan --vocabulary gathered --all
vocabulary --reshard never --zero 1
# DeepSpeed's optimizer on the host: fp32 gradients go down, and copies from pageable memory hold the host
longhaul schedule --flat --model longhaul-3m --set layers=1 --seq 64 --gpus 1 --cluster dgx-h100 --strategy local \
    --optimizer host --profile deepspeed --activations full -o $T/host.ir
grep -c 'h2d.*blocking=1' $T/host.ir
grep -E '^buffer (grad_wide|.*pageable)' $T/host.ir | head -3
# a framework without a profile
longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 8K --profile torchtitan --framework lightning --quick |
    grep -o 'lightning, described by profile torchtitan' | head -1
# launches that the GPU waits for
longhaul predict --model gpt2 --cluster dgx-h100 --gpus 1 --seq 128 --strategy local --profile hf --quick | grep -o 'host-bound.*work'
