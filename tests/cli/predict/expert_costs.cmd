# What Megatron's code around experts takes beside one kernel each: biases, clamps, RoPE with a factor, sinks, operators of the router, and what CUDA graphs launch at once
model="--model gpt-oss-20b --set layers=2 --cluster dgx-h100 --gpus 1 --seq 4K --strategy local --activations keep"
# biases of results: of 16384 x 2880 elements 28 bytes forward and 40 backward, 1.32 and 1.89 GB, by 66 and 195 kernels; the other biases' gradients are part of a product, and sinks of the core
for p in neutral megatron-te; do
  longhaul predict --quick $model --profile $p -o $T/$p > $T/screen 2> $T/note
  grep -v "^#" $T/$p/ops.csv | awk -F, -v p=$p '$7 == 0 && ($4 == "column_sum" && $12 > 9e7 || $4 == "matmul" && $5 == "forward" && $13 > 2.5e11 && $13 < 3e11 || $4 ~ /sink/) {
    printf "%s %s %s %.0f us\n", p, $5, $4, 1e6 * ($11 - $10)}'
done
# clamps of 94 million elements of gate and up: 8 bytes forward in 3 kernels and 15 backward in 9, 0.76 and 1.42 GB more; RoPE of 17 million elements of q: 24 bytes in 12 kernels and 28 in 7, in place of 4 in one
for p in neutral megatron-te; do
  grep -v "^#" $T/$p/ops.csv | awk -F, -v p=$p '$7 == 0 && ($4 ~ /swiglu/ || $4 ~ /rope/ && $12 > 5e7) {printf "%s %s %s %.0f us\n", p, $5, $4, 1e6 * ($11 - $10)}'
done
# without the factor RoPE is one kernel
longhaul predict --quick $(echo "$model" | sed s/layers=2/layers=2,rope_scaled=false/) --profile megatron-te -o $T/plain > $T/screen 2> $T/note
grep -v "^#" $T/plain/ops.csv | awk -F, '$7 == 0 && $4 ~ /rope/ && $12 > 5e7 {printf "no factor %s %s %.0f us\n", $5, $4, 1e6 * ($11 - $10)}'
# the host's time of a short step falls with what is one graph: the router, the layer, the step. Experts' activations are in no layer's: 48 x 2 launches
model="--model qwen3-30b-a3b --cluster gb200 --gpus 8 --strategy local --profile megatron-te --seq 1K --batch 8 --ep 8 --zero 1 --activations keep"
for g in none router layer step; do
  longhaul predict --quick $model --dispatcher hybridep --cuda-graphs $g 2> $T/note | awk -v g=$g '/waiting for the CPU/ {cpu = $5 " " $6} /^step/ {step = $2 " " $3} END {print g ": step " step ", waiting for the CPU " (cpu ? cpu : "0")}'
done
# experts of which each gets its capacity are part of a layer's graph
longhaul predict --quick $model --expert-capacity 1,pad --cuda-graphs layer 2> $T/note | awk '/waiting for the CPU/ {cpu = $5 " " $6} END {print "layer, padded: waiting for the CPU " (cpu ? cpu : "0")}'
# exchanges of attention are part of a layer's graph: only what lies outside of layers is launched
for g in none layer step; do
  longhaul predict --quick --model llama3-8b --set hidden=512,heads=8,kv_heads=8,head_dim=64,ffn=1024,layers=16 --cluster dgx-h100 --gpus 4 --seq 1K --strategy ulysses --profile megatron-te --cuda-graphs $g 2> $T/note | awk -v g=$g '/^step/ {step = $2 " " $3} END {print "ulysses, " g ": step " step}'
done
# in a graph of the step experts are fused: products add biases, activations clamp, and the gradient of the second bias is one pass over 4096 x 2880 elements
oss="--model gpt-oss-20b --set layers=2 --cluster gb200 --gpus 8 --strategy local --profile megatron-te --seq 1K --batch 8 --ep 8 --zero 1 --activations keep"
for g in layer step; do
  longhaul predict --quick $oss --dispatcher hybridep --cuda-graphs $g -o $T/$g > $T/screen 2> $T/note
  grep -v "^#" $T/$g/ops.csv | awk -F, -v g=$g '$7 == 0 && ($4 == "column_sum" && $12 > 2.3e7 && $12 < 2.5e7 || $4 == "matmul" && $5 == "forward" && $13 == 4096 * 2880 * 2880 * 2 || $4 ~ /swiglu/) {
    printf "%s %s %s %.0f us\n", g, $5, $4, 1e6 * ($11 - $10)}'
done
# experts with clamps or biases by operators are in no graph of a layer, though each gets its capacity: the host launches them
longhaul predict --quick $(echo "$oss" | sed "s/ --set layers=2//") --expert-capacity 1,pad --cuda-graphs layer 2> $T/note | awk '/waiting for the CPU/ {cpu = $5 " " $6} END {print "layer, padded, clamps: waiting for the CPU " (cpu ? cpu : "0")}'
# calls of cuBLAS for each of 2 and of 16 experts of a rank, in 16 and in 8 bits
for ep in 8 64; do for f in bf16 mxfp8; do
  longhaul predict --quick $(echo "$model" | sed "s/--gpus 8/--gpus 64/; s/--batch 8 --ep 8/--batch 64 --ep $ep/") --products $f 2> $T/note | awk -v c="$((128 / ep)) experts, $f" '/waiting for the CPU/ {cpu = $5 " " $6} END {print c ": waiting for the CPU " (cpu ? cpu : "0")}'
done; done
longhaul predict --quick $model --cuda-graphs step 2>&1 || echo "exit $?"
longhaul predict --quick $model --cuda-graphs all 2>&1 || echo "exit $?"
# expanded tensors of latent attention that are made again, in stages of a pipeline that are built one after another
longhaul predict --model deepseek-v3 --cluster b200 --gpus 256 --strategy local --profile megatron-te --seq 4096 --batch 2048 --dp 16 --pp 16 --ep 8 --zero 1 \
  --activations keep --up-projection recompute --quick 2> $T/note | grep -o "pp=16 1f1b"
