# --host-layers: what the first layers save is on the host between forward and backward. The device needs less, the host
# more, in the same proportion, and copies take no time while other layers compute for longer than they take.
P='--model llama3-70b --cluster gb300 --gpus 64 --strategy local --profile megatron-te --seq 8192 --micro-batch 2 --batch 256 --dp 64 --zero 3 --products fp8-tensor --gradients 16bit --activations keep'
for n in '' '--host-layers 20' '--host-layers 40'; do
    longhaul predict --quick $P $n --json 2>/dev/null | python3 -c '
import json, sys
p = json.load(sys.stdin)
print("%-16s step %.3f s, activations %.0f GiB, pinned %.0f GiB" % (
    sys.argv[1], p["step_s"], p["memory"]["at_peak"]["peak_activation_bytes"] / 2**30,
    p["memory"]["pinned_arena_bytes"] / 2**30))' "$n"
done
longhaul predict --quick $P --host-layers 20 2>/dev/null | grep ^layout
# the schedule obeys the rules, and its gradients are exact; tensors of 1,024 x 256 elements are the smallest that go
M='--model layers=3,hidden=256,heads=4,ffn=256,vocab=64 --cluster cpu-node --seq 1024 --strategy local --activations keep --host-layers 2'
longhaul schedule $M --gpus 1 > $T/host.ir
longhaul check $T/host.ir | tail -1
grep -c d2h $T/host.ir
grep -c h2d $T/host.ir
longhaul run --check $M --gpus 1 --dtype f32 2>/dev/null | tail -1
# so does that of a profile whose layers keep more than ops write (schedule/choices/kept.def)
longhaul schedule $M --gpus 1 --profile torchtitan > $T/eager.ir
longhaul check $T/eager.ir | tail -1
B='--model layers=3,hidden=256,heads=4,ffn=256,vocab=64 --cluster cpu-node --seq 1024 --strategy local'
for o in '--gpus 1 --activations full --host-layers 2' '--gpus 2 --pp 2 --batch 2 --activations keep --host-layers 1' '--gpus 1 --activations keep --host-layers 3'; do
    longhaul predict --quick $B $o || echo "exit $?"
done
# settings of frameworks
longhaul predict --quick --from 'pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 1 --vocab-size 512 --cpu-offloading-num-layers 2 --bf16' --cluster 1x1xh100 2>/dev/null | sed -n 's/^layout.*\(activations keep.*\), optimizer on.*/\1/p'
sed 's/^model:$/&\n  cpu_offloading: true\n  cpu_offloading_num_layers: 2/' $S/tests/data/launch/megatron-bridge-llama32-1b.yaml > $T/on.yaml
sed 's/cpu_offloading: true/cpu_offloading: false/' $T/on.yaml > $T/off.yaml
for file in on off; do
    longhaul predict --quick --from $T/$file.yaml --model llama3.2-1b --cluster 1x8xh100 2>/dev/null | sed -n 's/^layout.*\(activations keep.*\), optimizer on.*/\1/p'
done
