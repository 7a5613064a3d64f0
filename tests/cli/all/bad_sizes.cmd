# what does not divide, and what would
bad() { longhaul predict --cluster ideal --quick "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad --model gpt-13b --gpus 64 --hp 64 --seq 64K
bad --model llama3-8b --gpus 12 --hp 12 --seq 12K
bad --model gpt-13b --gpus 40 --hp 40 --seq 64K
bad --model gpt-2.7b --gpus 8 --hp 8 --seq 1001
bad --model gpt-2.7b --gpus 8 --hp 4 --dp 4 --seq 1K
bad --model gpt-2.7b --gpus 8 --strategy local --dp 4 --seq 1K
bad --model gpt-2.7b --gpus 8 --strategy megatron-sp --tp 2 --dp 2 --seq 1K
bad --model gpt-2.7b --gpus 2 --strategy local --seq 1
bad --model gpt-2.7b --gpus 8 --hp 4 --batch 7 --seq 1K
bad --model gpt-2.7b --gpus 8 --batch 2000000 --seq 1K
bad --model gpt-65b --gpus 1 --seq 4096G
bad --model gpt-7b --gpus 8 --hp 2 --pp 4 --dp 1 --seq 1M --subsequences 2 --pipeline msp --batch 2 --micro-batch 2
bad --model gpt-7b --gpus 8 --tp 2 --pp 4 --seq 32 --subsequences 8 --strategy megatron-sp --pipeline msp --share-units both
bad --model gpt-7b --gpus 4 --tp 1 --pp 4 --seq 24K --subsequences 6 --strategy megatron-sp --pipeline interleaved --batch 3
bad --model gpt-7b --gpus 4 --tp 1 --pp 4 --seq 24K --subsequences 6 --strategy megatron-sp --pipeline 1f1b
bad --model gpt-7b --gpus 4 --pp 2 --cp 2 --seq 24K --subsequences 6 --strategy ring
bad --model gpt-7b --gpus 8 --tp 2 --seq 64K --strategy fpdt
bad --model gpt-7b --gpus 8 --pp 2 --subsequences 4 --seq 64K --strategy fpdt
bad --model gpt-7b --gpus 8 --tp 1 --pp 4 --set layers=11 --seq 8K --batch 4 --strategy megatron-sp --virtual-stages 3
bad --model gpt-7b --gpus 4 --tp 1 --pp 4 --set layers=7 --seq 8K --strategy megatron-sp --pipeline zb-v
# collectives that hold the thread that computes, in a pipeline
bad --model llama3-8b --gpus 4 --pp 2 --seq 8K --strategy ulysses --profile fsdp-gloo
# lengths that do not divide over the ranks: nobody asked for more sequences
for strategy in ulysses ring 2d megatron-sp; do bad --model llama3-8b --gpus 64 --seq 1000003 --strategy $strategy; done
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 16 --strategy megatron-sp --seq 128K --quick 2> $T/note | grep -oE 'tp=[0-9]+ hp=[0-9]+ dp=[0-9]+'
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 16 --strategy ulysses --seq 1003 --dp 16 --quick 2> $T/note | grep -oE 'hp=[0-9]+ dp=[0-9]+'
