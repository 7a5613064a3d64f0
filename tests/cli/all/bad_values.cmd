what="--model gpt-2.7b --cluster ideal --gpus 8 --seq 64K --quick"
bad() { longhaul predict "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
with() { bad $what "$@"; }
bad --model gpt-2.8b --cluster ideal --seq 1K
bad --model gpt2 --cluster idael --seq 1K
bad --model gpt2 --cluster 2x4xh101 --seq 1K
bad --model gpt2 --cluster h100 --seq 1K
bad --model gpt2 --cluster a100-40 --seq 1K
bad --model 70b --cluster ideal --seq 1K
bad --model gpt2 --cluster ideal --seq 0
bad --model gpt2 --cluster ideal --seq -1
bad --model gpt2 --cluster ideal --seq 1.3
bad --model gpt2 --cluster ideal --seq 1e6
bad --model gpt2 --cluster ideal --seq 99999999999999999999
bad --model gpt2 --cluster ideal --seq 2K
bad --model gpt2 --cluster ideal --gpus 0 --seq 1K
bad --model gpt2 --cluster ideal --gpus 9999999999 --seq 1K
bad --model gpt2 --cluster dgx-a100 --gpus 12 --seq 1K
bad --model gpt2 --cluster dgx-a100 --nodes 2 --gpus 8 --seq 1K
with --strategy ulises
with --profile deepsped
with --weights zero4
with --zero 4
with --zero 1 --weights zero1
with --activations none
with --checkpoint keep
with --checkpoint full --activations full
with --optimizer cpu
with --attention fa4
with --dtype fp8
with --hp 3
with --hp 8 --ulysses 8
with --hp 16
with --strategy local --hp 2
with --batch 0
with --dp 2 --batch 3
with --micro-batch 2000
with --loss-chunks 0
with --loss-chunks 10000
with --shard 2
with --weights hsdp --shard 3
with --optimizer host --weights replicated
with --set vocab
with --set vcab=1
with --set layers=16,layers=17
with --set layers=1,vocab=50257,layers=1
with --set kv_heads=8,heads=7,layers=1
with --set vocab=0
with --set kv_heads=5
with --set layers=99999999999999999999
with --tokens 1X
with --tokens 0
with --tokens 1B --price -1
bad --model gpt2 --cluster dgx-a100 --nodes 1 --hp 4 --seq 1K --attention fa3
longhaul predict --model gpt2 --seq 1K --gpus 8 --quick --cluster '8x8xh100:device.peak_bf16=800TFLOP/s' 2>&1 || echo "exit $?"
