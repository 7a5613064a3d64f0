# implementations differ in the kernels of attention: a ranking says so, and which option makes them alike
# as published; those of neutral are the same for all strategies
what="--model gpt2 --cluster 1x4xh100 --seq 1K" own="--profile published"
longhaul sweep $what --vary strategy=ulysses,megatron-sp,ring -o $T/n.csv 2> $T/note | grep -c '^kernels' || :
longhaul sweep $what $own --vary strategy=ulysses,megatron-sp,ring -o $T/s.csv 2> $T/note | grep '^kernels'
longhaul sweep $what $own --attention cudnn --vary strategy=ulysses,megatron-sp,ring -o $T/alike.csv 2> $T/note | grep -c '^kernels' || :
longhaul sweep $what --strategy ring --vary profile=internevo,megatron-te,ideal -o $T/p.csv 2> $T/note | grep '^kernels'
longhaul sweep $what --vary attention=fa2,cudnn -o $T/a.csv 2> $T/note | grep -c '^kernels' || :
longhaul plan $what $own --pp 1 --weights zero1 --checkpoint none 2> $T/note | grep '^kernels'
longhaul plan $what $own --pp 1 --weights zero1 --checkpoint none --attention fa2 2> $T/note | grep -c '^kernels' || :
for strategy in ulysses megatron-sp; do longhaul predict $what $own --strategy $strategy --quick -o $T/$strategy > $T/note; done
longhaul compare $T/ulysses $T/megatron-sp | grep '^kernels'
longhaul compare $T/ulysses $T/ulysses | grep -c '^kernels' || :
# model flops at peak over the step is MFU by our convention, but for s + 1 keys in place of s; pieces that
# are computed again are no model flops
fpdt="--model gpt-2.7b --set layers=2 --cluster fpdt-a100-80g --nodes 1 --gpus 4 --strategy fpdt"
same() { awk -F'[:,]' '/"step_s"/ && !step { step = $2 } /"model_flops_at_peak_s"/ { peak = $2 } /"mfu_longhaul"/ { mfu = $2 }
    END { d = peak / step / mfu - 1; print (d < 1e-4 && d > -1e-4 ? "the same" : d) }' $T/json; }
for profile in deepspeed neutral; do
    longhaul predict $fpdt --profile $profile --seq 64K --chunk 16K --quick --json > $T/json
    same
done
# the peak is the cluster's, whatever that of the devices is of which the costs are
longhaul predict --model llama3-8b --set layers=2 --cluster 1x4xh100 --costs a100-80g --seq 64K --quick --json > $T/json
same
# ... and a prediction says that they are of others; an ideal device's costs are of any
longhaul predict --model gpt2 --cluster 1x4xh100 --costs a100-80g --seq 1K --quick | grep -o 'costs are of [^;.]*'
longhaul predict --model gpt2 --cluster 1x4xh100 --costs ideal --seq 1K --quick | grep -c 'costs are of' || :
longhaul predict $(echo $fpdt | sed 's|2.7b|6.7b|') --profile neutral --seq 1M --chunk 512K --quick --mfu deepspeed | sed -n 's/^MFU *[0-9.]* %/MFU N %/p'
# small steps are bound by the host where it takes long: DTensors that are not compiled, Grace, TransformerEngine's modules
small="--model layers=8,hidden=1024,heads=8,ffn=4096,vocab=8192 --gpus 4"
for o in 'dgx-h100 --seq 2K --strategy megatron-sp --tp 4 --profile torchtitan' 'dgx-h100 --seq 2K --strategy megatron-sp --tp 4 --profile torchtitan --compile' \
    'b200 --seq 1K --strategy local --profile megatron' 'gb200 --seq 1K --strategy local --profile megatron' \
    'h200 --seq 1K --strategy local --profile megatron' 'h200 --seq 1K --strategy local --profile megatron-te'; do
    echo "$o: $(longhaul predict --quick $small --cluster $o 2> /dev/null | tr '\n' ' ' | grep -oE 'host-bound: for *[0-9]+ %')"
done
