# one layer on two tensor ranks by every plan: collectives of tensor ranks, copies and sums around them
# (pack, unpack, head_reduce), and products (by async TP in pieces)
for plan in megatron module linear async replicated; do
    longhaul schedule --flat --model longhaul-3m --set layers=1 --seq 64 --gpus 2 --cluster dgx-h100 --strategy megatron-sp \
        --tp 2 --micro-batch 2 --activations keep --profile torchtitan --tensor-plan $plan -o $T/$plan.ir
    echo $plan $(grep -oE '(all_gather|reduce_scatter|all_reduce|all_to_all|head_reduce|pack|unpack|matmul) .*' $T/$plan.ir | cut -d' ' -f1 | sort | uniq -c)
done
longhaul predict --model longhaul-3m --seq 64 --gpus 1 --cluster dgx-h100 --tensor-plan linear --quick 2>&1 >/dev/null
# async TP hides most of what the plan of modules waits for
step() { longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 8K --batch 4 --micro-batch 4 --strategy megatron-sp --tp 8 \
    --profile torchtitan --compile --quick --json --tensor-plan $1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["step_s"])'; }
python3 -c "print('async takes less' if 0.7 < $(step async) / $(step module) < 0.95 else 'differs')"
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
# which collectives of async TP are predicted without overlap
for o in "" "--micro-batch 2 --batch 2" "--micro-batch 2 --batch 2 --products fp8-row"; do
    longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 8K --tp 8 --tensor-plan async --kernels compiled --quick $o |
        grep -o 'of async TP.*' || echo "all overlap: $o"
done
# layers that are not compiled
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 8K --tp 8 --tensor-plan async --quick | grep -o 'PyTorch makes async TP.*'
