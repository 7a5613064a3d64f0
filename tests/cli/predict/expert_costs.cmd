# What Megatron's code around experts takes beside one kernel each: biases, sinks, operators of the router, and what CUDA graphs launch at once
model="--model gpt-oss-20b --set layers=2 --cluster dgx-h100 --gpus 1 --seq 4K --strategy local --activations keep"
# biases of results: of 16384 x 2880 elements 28 bytes forward and 40 backward, 1.32 and 1.89 GB, by 66 and 195 kernels; the other biases' gradients are part of a product, and sinks of the core
for p in neutral megatron-te; do
  longhaul predict --quick $model --profile $p -o $T/$p > $T/screen 2> $T/note
  grep -v "^#" $T/$p/ops.csv | awk -F, -v p=$p '$7 == 0 && ($4 == "column_sum" && $12 > 9e7 || $4 == "matmul" && $5 == "forward" && $13 > 2.5e11 && $13 < 3e11 || $4 ~ /sink/) {
    printf "%s %s %s %.0f us\n", p, $5, $4, 1e6 * ($11 - $10)}'
done
# the host's time of a short step falls with what is one graph: the router, the layer, the step
model="--model qwen3-30b-a3b --cluster gb200 --gpus 8 --strategy local --profile megatron-te --seq 1K --batch 8 --ep 8 --zero 1 --activations keep"
for g in none router layer step; do
  longhaul predict --quick $model --dispatcher hybridep --cuda-graphs $g 2> $T/note | awk -v g=$g '/waiting for the CPU/ {cpu = $5 " " $6} /^step/ {step = $2 " " $3} END {print g ": step " step ", waiting for the CPU " (cpu ? cpu : "0")}'
done
longhaul predict --quick $model --cuda-graphs step 2>&1 || echo "exit $?"
longhaul predict --quick $model --cuda-graphs all 2>&1 || echo "exit $?"
# expanded tensors of latent attention that are made again, in stages of a pipeline that are built one after another
longhaul predict --model deepseek-v3 --cluster b200 --gpus 256 --strategy local --profile megatron-te --seq 4096 --batch 2048 --dp 16 --pp 16 --ep 8 --zero 1 \
  --activations keep --up-projection recompute --quick 2> $T/note | grep -o "pp=16 1f1b"
