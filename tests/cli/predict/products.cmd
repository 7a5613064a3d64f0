# Products in 8 and 4 bits: what they gain and what casts take is said, and devices refuse by name.
predict() { longhaul predict --quick "$@" --strategy local --batch 8 2>/dev/null | grep -E '^(layout|products)' | sed 's/^layout.*bf16, /layout /; s/, attention.*//'; }
predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 8K --products fp8-tensor
predict --model llama3-8b --cluster b200 --nodes 1 --seq 8K --products mxfp8 --bf16-layers 2
predict --model llama3-8b --cluster gb300 --gpus 8 --seq 8K --products nvfp4
# where casts take more than products gain, that is said
predict --model layers=4,hidden=1024,heads=8,ffn=1024,vocab=1024 --cluster dgx-h100 --nodes 1 --seq 2K --products fp8-row
for o in 'dgx-h100 --products mxfp8' 'dgx-a100 --products fp8-tensor' 'dgx-h100 --bf16-layers 2' 'dgx-h100 --products fp8-row --bf16-layers 16' 'dgx-h100 --products fp8'; do
    longhaul predict --quick --model llama3-8b --seq 8K --strategy local --batch 32 --cluster $o || echo "exit $?"
done
# experts multiply in 8 bits as well
predict --model qwen3-30b-a3b --cluster 1x8xb200 --ep 8 --seq 4K --micro-batch 1 --weights zero1 --profile megatron-te --activations keep --products mxfp8
# torchtitan (pull request 2086) saw DeepSeek-V3 16B, whose sizes are V2-Lite's, at 0.95 of its speed: casts take more than is gained
predict --model deepseek-v2-lite --cluster 1x8xb200 --seq 4K --weights zero3 --profile torchtitan --activations selective-layer --products mxfp8
longhaul sweep --model deepseek-v2-lite --cluster 1x8xb200 --seq 4K --strategy local --batch 8 --weights zero3 --profile torchtitan --activations selective-layer --vary products=bf16,mxfp8 2>/dev/null | grep -v '^#' | python3 -c '
import csv, sys
bf16, mxfp8 = (float(row["step_s"]) for row in csv.DictReader(sys.stdin))
print("gain %.2f" % (bf16 / mxfp8))'
# every recipe is verified and executed, but nvfp4; a schedule's own products are refused as well
M='--model layers=2,hidden=64,heads=4,ffn=128,vocab=96 --cluster cpu-node --gpus 2 --seq 256 --strategy local --batch 4'
for p in fp8-tensor fp8-delayed fp8-row fp8-block mxfp8; do
    longhaul schedule $M --products $p > $T/$p.ir
    longhaul check $T/$p.ir | tail -1
done
# gradients are those of a reference that rounds the same tensors; where ranks round parts of these, they are near
R='--model layers=3,hidden=64,heads=4,ffn=128,vocab=96 --cluster cpu-node --seq 256 --dtype f32'
checked() { longhaul run --check $R "$@" > $T/checked 2> $T/note; tail -1 $T/checked; }
for p in fp8-tensor fp8-delayed fp8-row fp8-block mxfp8; do
    checked --strategy local --gpus 1 --activations keep --products $p
done
checked --strategy local --gpus 1 --activations full --products fp8-tensor --bf16-layers 1
checked --strategy megatron-sp --gpus 2 --tp 2 --products fp8-tensor
# tensor ranks gather latents in 8 bits for products, and what the heads of latent attention share in 16; products of some
# of the rows that were gathered read these rows of the 8-bit copy
for o in '--set kv_latent=32,rope_dim=8,v_dim=16' '--activations selective-op'; do
    longhaul schedule $R --strategy megatron-sp --gpus 2 --tp 2 --products fp8-tensor $o > $T/gathered.ir
    longhaul check $T/gathered.ir | tail -1
    checked --strategy megatron-sp --gpus 2 --tp 2 --products fp8-tensor $o
done
# so are those of experts, each of which has scales of its own, whatever the number of its rows
R=$(echo "$R" | sed 's/vocab=96/&,experts=6,experts_per_token=2,expert_ffn=48,shared_ffn=32/')
for p in fp8-tensor fp8-row fp8-block mxfp8; do
    checked --strategy local --gpus 1 --activations keep --products $p
done
checked --strategy local --gpus 1 --activations full --products fp8-block --routing dirichlet:1
checked --strategy local --gpus 2 --ep 2 --batch 4 --products mxfp8 --routing dirichlet:1 --seed 2
for p in fp8-delayed nvfp4; do
    longhaul schedule $R --strategy local --gpus 2 --ep 2 --batch 4 --products $p --routing dirichlet:1 > $T/$p.ir
    longhaul check $T/$p.ir | tail -1
done
# the router stays in 16 bits
grep "matmul.* writes logits_router" $T/nvfp4.ir | sed 's/.* scaling=.*/4 bits/; s/.*matmul.*/16 bits/' | sort | uniq -c
longhaul predict --quick $T/mxfp8.ir --cluster dgx-h100 || echo "exit $?"
longhaul sweep --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 8K --strategy local --batch 8 --vary products=bf16,fp8-tensor 2>/dev/null | grep -v '^#' | cut -d, -f1,2
# a search and a sweep say where the gain goes, too
longhaul plan --model llama3-8b --cluster b200 --nodes 1 --seq 8K --batch 8 --strategy local --products mxfp8 2>/dev/null | grep '^products'
longhaul sweep --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 8K --strategy local --batch 8 --vary products=bf16,fp8-tensor 2>/dev/null | grep -v '^#' | python3 -c '
import csv, sys
for row in csv.DictReader(sys.stdin):
    print(row["products"], *(row[k] and "%.2f" % float(row[k]) for k in ("narrow_products_s", "wide_products_s", "casts_s")))'
# casts of 8 weights: once a step where they stay, in each forward and backward where they are gathered, and where torchao casts
casts() { longhaul schedule $M "$@" --micro-batch 1 | grep -c 'op .* quantise .* writes w_narrow'; }
casts --products fp8-tensor --zero 1 --profile megatron-te
casts --products fp8-tensor --zero 3 --profile megatron-te
casts --products fp8-tensor --zero 1 --profile torchtitan
# torchao multiplies the gradients' products by the scales of rows in passes of their own
passes() { longhaul schedule $M --activations keep --products fp8-row "$@" | grep -c 'op .* reads unscaled' || true; }
passes --profile torchtitan
passes --profile megatron-te
# attention's core in 8 bits: its casts, copies and ops are in schedules that are verified, and never executed
A='--model layers=2,hidden=128,heads=4,ffn=256,vocab=96 --cluster cpu-node --gpus 1 --seq 256 --strategy local --batch 1 --profile megatron-te --activations keep'
for p in fp8-tensor fp8-delayed mxfp8; do
    longhaul schedule $A --attention cudnn --products $p --attention-products fp8 > $T/core-$p.ir
    longhaul check $T/core-$p.ir | tail -1
    grep 'region=attention layer=0' $T/core-$p.ir | sed -n '/^ *op/s/.*op [0-9]* \([a-z_]*\) .*/\1/p' | paste -s -d ' '
done
longhaul run --check $A --attention cudnn --products mxfp8 --attention-products fp8 || echo "exit $?"
# layers at the ends multiply all in 16 bits
longhaul schedule $A --set layers=4 --attention cudnn --products mxfp8 --bf16-layers 1 --attention-products fp8 | sed -n 's/.*op .* attention compute.*mask=causal\(.*\) reads.*\(layer=[0-9]\).*/\2\1/p'
# who has such kernels, and which choices go with them
core() { longhaul predict --quick --model llama3-8b --seq 4K --batch 8 --profile megatron-te --attention-products fp8 "$@" 2>&1 | grep -E 'error:|^layout|^products ' | sed '/^layout/{s/.*bf16, /layout /; s/, attention cudnn.*//}' || true; }
core --cluster gb200 --gpus 8 --strategy local --products mxfp8
core --cluster gb200 --gpus 8 --strategy local --products fp8-tensor
core --cluster dgx-h100 --gpus 8 --strategy local --products fp8-delayed
core --cluster dgx-h100 --gpus 8 --strategy local --products fp8-tensor
core --cluster gb200 --gpus 8 --strategy local
core --cluster gb200 --gpus 8 --strategy local --products nvfp4
core --cluster gb200 --gpus 8 --strategy local --products mxfp8 --attention fa2
core --cluster gb200 --gpus 8 --strategy ulysses --hp 2 --products mxfp8
core --cluster gb200 --gpus 8 --strategy local --products mxfp8 --subsequences 2
core --cluster gb200 --gpus 8 --strategy local --products mxfp8 --set head_dim=80
core --cluster dgx-h100 --gpus 8 --strategy local --products fp8-delayed --set head_dim=256
