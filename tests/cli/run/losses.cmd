# Every way to compute the loss makes schedules that the rules allow, and gradients that are exact.
MODEL='layers=2,hidden=64,heads=4,ffn=64,vocab=96'
M="--model $MODEL --cluster cpu-node --seq 64 --dtype bf16"
for loss in $(longhaul help run | tr '\n' ' ' | sed 's/| */|/g; s/.*--loss \([a-z0-9|]*\).*/\1/; s/|/ /g'); do
    degrees='--gpus 1 --strategy local'
    test $loss != parallel || degrees='--gpus 2 --tp 2 --strategy megatron-sp'
    for pieces in 1 3; do
        longhaul schedule $M $degrees --loss $loss --loss-chunks $pieces > $T/loss.ir 2> $T/note
        echo "$loss, $pieces: $(longhaul check $T/loss.ir | tail -1 | sed 's/:.*//'), $(longhaul run --check $T/loss.ir --model $MODEL 2> $T/note | tail -1 | sed 's/:.*//')"
    done
done
