# torchtitan's selective checkpoints: between keeping all and recomputing all, in time as in memory, and written as its settings
step="--model llama3-8b --cluster dgx-a100 --gpus 8 --strategy local --profile torchtitan --seq 8K --quick"
for order in "keep selective-op selective full" "keep selective-layer selective full"; do
    for activations in $order; do
        longhaul predict $step --activations $activations --json 2> /dev/null | grep -m1 '"step_s"' | grep -oE '[0-9.]+,' | tr -d ,
    done > $T/seconds
    sort -c -n $T/seconds 2> /dev/null && echo "less is kept, more is computed" || cat $T/seconds
done
for activations in selective-op selective-layer; do
    longhaul plan ${step% --quick} --checkpoint $activations --emit torchtitan 2> /dev/null | sed -n '/activation_checkpoint/,/^$/p'
done
longhaul plan --model llama3-8b --set layers=4 --cluster dgx-a100 --gpus 8 --strategy megatron-sp --seq 8K --checkpoint selective-op --emit megatron --emit-winner 2> /dev/null | grep "every second"
longhaul plan --model llama3-8b --set layers=4 --cluster dgx-a100 --gpus 8 --strategy megatron-sp --seq 8K --checkpoint selective-core --emit megatron 2> /dev/null | grep recompute
