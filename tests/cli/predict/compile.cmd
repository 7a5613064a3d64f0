# torchtitan's eager chains are fused by --compile without any ring, and nothing is left to fuse elsewhere
step="--model llama3-8b --set layers=2 --cluster dgx-a100 --gpus 8 --strategy local --seq 8K --json"
seconds() { longhaul predict --quick $step "$@" 2> $T/note | grep -m1 '"step_s"' | grep -oE '[0-9.]+([e][-+0-9]+)?,' | tr -d ,; }
eager=$(seconds --profile torchtitan) compiled=$(seconds --profile torchtitan --compile)
awk -v e=$eager -v c=$compiled 'BEGIN { print (e > 1.03 * c && e < 1.3 * c) ? "compiled is faster" : "compiled " c " eager " e }'
grep -c 'changes nothing' $T/note || true
megatron=$(seconds --profile megatron) again=$(seconds --profile megatron --compile)
grep -o 'changes nothing.*' $T/note
test "$megatron" = "$again" && echo "megatron is fused already"
# transformers' layers are eager too, and its sdpa is cuDNN's kernel on Hopper
eager=$(seconds --profile hf --attention fa2) compiled=$(seconds --profile hf --attention fa2 --compile)
awk -v e=$eager -v c=$compiled 'BEGIN { print (e > 1.03 * c) ? "compiled is faster" : "compiled " c " eager " e }'
for cluster in dgx-a100 dgx-h100; do longhaul predict --model llama3-8b --cluster $cluster --gpus 8 --strategy ring --profile hf --seq 64K --quick 2> $T/note | grep -oE 'fa2|cudnn' | head -1; done
# compiled, it gets a mask, as no other kernel and no ring does, and computes the pairs that the mask hides
step="--model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 8 --seq 64K --json"
for o in 'local --profile hf' 'local --profile hf --compile' 'local --profile hf --compile --attention fa2' 'ring --profile hf --compile' \
    'local --profile torchtitan --attention cudnn --compile'; do
    longhaul predict --quick $step --strategy $o 2> /dev/null | grep -q 'give SDPA a mask' && echo "a mask: $o" || echo "none: $o"
done
causal=$(seconds --strategy local --profile torchtitan --attention cudnn --loss compiled --compile)
masked=$(seconds --strategy local --profile hf --loss compiled --compile)
awk -v c=$causal -v m=$masked 'BEGIN { print (m > 1.4 * c && m < 2 * c) ? "twice the attention" : "masked " m " causal " c }'
