# A part of the model: kernels alone, messages alone, both at once. On the ideal cluster the forward
# operator takes 4 x 128 x 32 heads per visible pair, 65536 x 65537 / 2 pairs, over 8 GPUs of 1 PFLOP/s.
for scope in layer attention attention:fwd attention:bwd; do
    longhaul predict --model llama3-8b --cluster 1x8xideal --seq 64K --strategy ring --profile published --scope $scope | grep '^part'
done
# one GPU has no all-to-alls and no communication, and packing is among its kernels; nothing that a part does not use takes memory
number() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),*/\1/p" $1 | head -1; }
for scope in attention layers; do
    longhaul predict --model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 1 --strategy local --seq 8K --scope $scope --json > $T/part
    for name in all_to_all_s communication_alone_s peak_optimizer_bytes; do echo $scope $name $(number $T/part $name); done
    test $(number $T/part peak_bytes) -le $(number $T/part reserved_tensors_bytes) || echo "the peak is above what is reserved"
done
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 1 --strategy local --seq 8K --scope attention | grep '^part' | sed 's/[0-9.]* ms/N ms/g'
# a run says that it is of a part
longhaul run --model longhaul-3m --gpus 1 --seq 64 --scope attention | sed -n 's/^ran *\(.*\); .*/\1/p'
longhaul run --model longhaul-3m --gpus 1 --seq 64 | sed -n 's/^ran *\(.*\); .*/\1/p'
longhaul predict --model gpt2 --cluster ideal --gpus 4 --seq 1K --scope attention --tokens 1B
