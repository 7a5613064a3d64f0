bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad plan --longest --cluster dgx-h100
bad plan --model llama3-8b --longest
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --longest --seq 1M
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --goal longest --seq 1M
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --longest --goal longest
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --goal cheap --seq 1M
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 1M --dp 3
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --longest --hp 16
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 1M --strategy ulisses
bad plan --model llama3-8b --cluster dgx-h100 --loopback 2 --seq 1M
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --longest --scope layer
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 1M --emit-winner
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --longest --only megatron
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --longest --emit megatron --emit-winner
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 1M --emit megatron --only torchtitan
bad plan --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 1M --only megatron --dp 3
# what plan refuses is in no help
named() { grep -c -e loopback -e '--scope' -e '"scope"' || :; }
longhaul predict --help | named
longhaul help predict --json | named
longhaul plan --help | named
longhaul help plan --json | named
# more stages than are searched are taken where they are asked for
longhaul plan --model gpt-65b --set layers=32 --cluster sppo-a100 --gpus 32 --seq 4K --strategy megatron-sp --pp 32 --tp 1 --batch 32 --weights replicated --activations full --top 1 | grep -o -- '--pp 32'
# a folder is for the winner of a search
longhaul plan --longest --model gpt2 --cluster dgx-h100 -o $T/none 2>&1 || echo "exit $?"
longhaul plan --model gpt2 --cluster dgx-h100 --seq 1K --emit megatron -o $T/none 2>&1 || echo "exit $?"
# the search that predict proposes takes no scope
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 4K --quick --scope model 2> $T/note | grep "longhaul plan"
