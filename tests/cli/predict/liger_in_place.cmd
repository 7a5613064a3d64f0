# --kernels liger: SwiGLU's backward writes the gradients of gate and up over the two tensors, of kept layers as of those that are computed again
A='--model llama3-8b --set layers=2 --cluster h200 --gpus 1 --strategy local --seq 8K --batch 1 --optimizer host --loss fused'
for profile in deepspeed hf; do
  for activations in full keep; do
    longhaul schedule $A --profile $profile --activations $activations --kernels liger 2> $T/note > $T/liger.ir
    awk -v p="$profile $activations" '/ swiglu_backward / {n++; for (i = 1; i < NF; i++) if ($i == "writes") same += $(i - 1) == $(i + 1)} END {print p ": " n " backwards, in place " same}' $T/liger.ir
    longhaul check $T/liger.ir | tail -1
  done
done
# while it runs a layer has its gate and up, 131072 x 28672 x 2 bytes or 7.0 GiB, once and not twice: 61.0 GiB fall to 57.5, where the product before it, which
# keeps the activation and its gradient beside gate and up, is the peak
for kernels in profile liger; do
  longhaul predict --model llama3-8b --cluster h200 --gpus 8 --strategy local --seq 128K --batch 8 --zero 3 --optimizer host --loss-chunks 32 --dropout off --attention fa3 --profile deepspeed --activations full --kernels $kernels --all 2> $T/note | grep -o "^memory.*peak [0-9.]* GiB"
done
# gradients are exact, with pieces, and halves that selective checkpointing keeps
M='--model layers=3,hidden=64,heads=4,ffn=64,vocab=64 --cluster cpu-node --seq 64 --strategy local --kernels liger --dtype f32'
for o in '--gpus 1 --profile hf --activations full' '--gpus 1 --profile hf --activations selective' '--gpus 1 --profile deepspeed --activations full --ffn-chunks 4' '--gpus 1 --profile torchtitan --activations selective-op' '--gpus 2 --pp 2 --batch 4 --profile hf --activations keep'; do
  longhaul run --check $M $o 2> $T/note | tail -1
done
