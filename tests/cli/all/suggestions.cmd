# What is suggested for names that people know from elsewhere, before what is spelt alike
small="--model llama3-8b --cluster dgx-h100 --nodes 1 --seq 8K --quick"
bad() { longhaul "$@" 2>&1 >/dev/null | grep error | sed "s|$T/||g"; }
for option in --sequence --tensor-parallel --tensor_model_parallel_size --context-parallel-size --batch-size --num-gpus --recompute --subsequence; do
    bad predict $small $option 2
done
for value in "strategy flash" "strategy fsdp" "strategy tensor-parallel" "strategy usp" "strategy ulises" "strategy x" "weights fsdp" "attention flash-attention-2" \
    "dtype bfloat16" "activations none" "profile megatron_te"; do
    bad predict $small --${value% *} ${value#* }
done
longhaul sweep --model gpt2 --cluster dgx-h100 --nodes 1 --seq 1K --vary tp=1,2 > $T/rows.csv 2> $T/err
bad plot sweep $T/rows.csv -y mfu -o $T/x.svg
bad plot sweep $T/rows.csv -y throughput -o $T/x.svg
bad estimate
bad list hardware
# models by their names on the hub
for model in Qwen/Qwen3-8B qwen3-8b Qwen/Qwen3-0.6B-Base meta-llama/Llama-3.1-8B-Instruct Llama-3.1-8B gpt2-xl someone/model ./none.json a/b/c llama3-8B; do
    bad predict --model $model --cluster dgx-h100 --nodes 1 --seq 8K
done
longhaul predict --from "sft.py --model_name_or_path Qwen/Qwen3-8B --max_length 8192 --packing true" --cluster dgx-h100 --nodes 1 --quick 2>&1 | sed -n 's/^Does not fit.*/does not fit/p; s/^Probably does not fit.*/does not fit/p; s/^Fits.*/fits/p; s/^model  *\([^,]*\),.*/\1/p'
