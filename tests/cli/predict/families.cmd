# Families beside Llama: what is read of their files, heads of 256 in attention's cost, and steps that run --check compares
configs=$S/tests/data/configs
for m in gemma-3-1b phi-4-mini minitron-4b granite-3.1-8b; do
    longhaul predict --model $configs/$m.json --cluster dgx-h100 --nodes 1 --seq 8K --quick 2>&1 | sed "s|$configs/||" | grep -E 'note|error'
done
# 22 of 26 layers of Gemma 3 1B have a window of 512: of 128K tokens the step takes less than a third of full attention's
step() { longhaul predict --model $configs/gemma-3-1b.json --cluster dgx-h100 --nodes 1 --seq 128K --quick --json "$@" 2> $T/note | sed -n 's/.*"step_s": *\([0-9.e-]*\).*/\1/p' | head -1; }
echo $(step) $(step --ignore sliding_window) | awk '{ print ($1 < $2 / 3 ? "less than a third" : $0) }'
# heads wider than those of measured steps are said to be so, with the ends of attention's rates
longhaul predict --quick --model gemma3-12b --cluster dgx-h100 --nodes 1 --seq 32K | grep -o 'heads of 256.*'
longhaul predict --quick --model gemma3-12b --cluster dgx-h100 --nodes 1 --seq 32K --json | grep -c 'heads of 256 were in no measured step'
longhaul predict --quick --model gemma3-27b --cluster dgx-h100 --nodes 1 --seq 32K | grep -c 'heads of' || true
# the work of a head is that of its width: 16 heads of 256 columns beside 28 that 3584 columns would make at 128
longhaul schedule --model gemma2-9b --cluster dgx-h100 --gpus 1 --seq 8K --set layers=2 --strategy local --flat | grep -m 2 -o 'attention compute q=.* mask=[a-z]*'
# exact gradients of small models of four families
for m in "gemma3-12b --set layers=6,attention_window=24" "olmo3-7b --set layers=4,attention_window=24" "$configs/minitron-4b.json --set layers=2" "$configs/starcoder2-7b.json --set layers=2,attention_window=24"; do
    longhaul run --model ${m%% *} ${m#* },hidden=64,heads=4,kv_heads=2,head_dim=16,ffn=96,vocab=101 --cluster cpu-node --gpus 2 --seq 64 --strategy ulysses --hp 2 --dtype f32 --check 2> $T/note | tail -n 1
done
# norms over all heads have no tensor ranks
longhaul predict --quick --model olmo3-7b --cluster dgx-h100 --nodes 1 --seq 8K --tp 2 || echo "exit $?"
longhaul predict --quick --model olmo3-7b --cluster dgx-h100 --nodes 1 --seq 8K --strategy upipe || echo "exit $?"
for framework in megatron torchtitan deepspeed; do longhaul plan --model gemma3-27b --set layers=6 --cluster dgx-h100 --gpus 8 --seq 8K --strategy ulysses --emit $framework | grep 'branches' | head -2; done
