# Adapters: what a step with frozen weights needs, what is refused, and the reference beside what `run` computes
P='--model llama3-8b --cluster dgx-h100 --seq 8K'
longhaul predict $P --gpus 1 --profile hf --activations full --adapter 16 | sed -n '1,7p; /^How sure/,/^$/p'
longhaul predict $P --gpus 8 --zero 3 --adapter 64:attention --json | python3 -c '
import json, sys
p = json.load(sys.stdin)
print(p["configuration"]["adapter"], p["memory"]["at_peak"])'
for adapter in 0 x 16: 16:q,x; do
    longhaul predict $P --gpus 1 --adapter $adapter || echo "exit $?"
done
longhaul predict --model qwen3-30b-a3b --cluster dgx-h100 --gpus 8 --seq 8K --adapter 16 || echo "exit $?"
longhaul predict --model deepseek-v2-lite --cluster dgx-h100 --gpus 8 --seq 8K --adapter 16:q || echo "exit $?"
for choice in '--tp 8' '--strategy upipe --hp 8' '--products fp8-tensor' '--activations selective-op'; do
    longhaul predict $P --gpus 8 $choice --adapter 16 || echo "exit $?"
done
R='--model layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=128 --seq 64 --dtype f32'
longhaul run --check $R --gpus 4 --strategy ring --dp 2 --zero 3 --activations full --profile hf --adapter 4:q,v,down | tail -1
longhaul run --check $R --gpus 2 --pp 2 --batch 4 --adapter 3 | tail -1
# Frozen weights in 4 and 8 bits: memory, what is gathered, what is refused, and exact gradients
for frozen in nf4 nf4-double int8; do
    longhaul predict $P --gpus 1 --profile hf --activations full --adapter 16 --frozen-weights $frozen | sed -n '1p; /^layout/p; /^step/p'
    longhaul run --check $R --gpus 4 --strategy ring --dp 2 --zero 3 --activations full --profile hf --adapter 4:q,v,down --frozen-weights $frozen | tail -1
done
longhaul run --check $R --gpus 2 --pp 2 --batch 4 --adapter 3 --frozen-weights nf4-double | tail -1
longhaul schedule $P --gpus 8 --zero 3 --adapter 16 --frozen-weights nf4 | grep -E "storage=|^buffer scales|op [0-9]+ all_gather" | head -8
longhaul predict $P --gpus 1 --frozen-weights nf4 | sed -n 1p
longhaul predict --model qwen3-30b-a3b --cluster dgx-h100 --gpus 8 --seq 8K --adapter 16:attention --frozen-weights nf4 || echo "exit $?"
# what is proposed trains the same adapters
longhaul predict $P --gpus 1 --adapter 16 --frozen-weights nf4 | grep 'longhaul plan'
# points that train different weights are not compared
longhaul sweep $P --gpus 8 --vary adapter=none,16 --vary zero=1,3 -o $T/adapters.csv 2> $T/note | sed -n 's/: .* with/: with/p'
