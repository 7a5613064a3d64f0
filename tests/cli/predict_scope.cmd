# A part of the model: kernels alone, messages alone, both at once. On the ideal cluster the forward
# operator takes 4 x 128 x 32 heads per visible pair, 65536 x 65537 / 2 pairs, over 8 GPUs of 1 PFLOP/s.
for scope in layer attention attention:fwd attention:bwd; do
    longhaul predict --model llama3-8b --cluster 1x8xideal --seq 64K --strategy ring --profile published --scope $scope | grep '^part'
done
# a run says that it is of a part
longhaul run --model longhaul-3m --gpus 1 --seq 64 --scope attention | sed -n 's/^ran *\(.*\); .*/\1/p'
longhaul run --model longhaul-3m --gpus 1 --seq 64 | sed -n 's/^ran *\(.*\); .*/\1/p'
longhaul predict --model gpt2 --cluster ideal --gpus 4 --seq 1K --scope attention --tokens 1B
