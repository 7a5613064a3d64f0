# Launch files of public repositories (tests/data/launch/README.md): what is understood of each, and the step that is
# predicted. The predictions are recorded; nothing was measured.
D=$S/tests/data/launch
h100="--cluster 16x8xh100"
read_it() { # FILE OPTIONS
    echo "== $*" | sed "s|$D/||g"
    longhaul predict "$D/$@" --quick > $T/out 2> $T/err || true
    sed '/^note: /d' $T/err
    sed -n 's/^\(Fits\|Probably fits\|Probably does not fit\|Does not fit\)[:, ].*/\1/p; s/^step  *\([0-9.]* m*s\) .*/step \1/p' $T/out
}
# Megatron-LM
read_it megatron-gpt3-175b.sh $h100
read_it megatron-gpt3-175b.sh $h100 --gpus 128 --batch 192
read_it megatron-llama3-8b-fp8.sh $h100
read_it megatron-gpt2-345m.sh $h100
# torchtitan
read_it torchtitan-llama3-8b.toml --cluster dgx-a100 --nodes 8
read_it torchtitan-llama3-70b.toml --cluster dgx-a100 --nodes 8
read_it torchtitan-llama3-405b.toml $h100
# DeepSpeed
read_it deepspeed-llama-7b.json $h100 --gpus 8 --model llama2-7b --seq 4K
read_it megatron-deepspeed-llama2.sh $h100
read_it megatron-deepspeed-llama2.sh $h100 --set vocab=32000
read_it megatron-deepspeed-fpdt.sh $h100 --gpus 4 --micro-batch 1
# TRL and Accelerate
read_it trl-zephyr-7b.yaml --from $D/accelerate-deepspeed-zero3.yaml $h100 --gpus 8
read_it trl-smollm3-64k.yaml --from $D/accelerate-fsdp2.yaml $h100
read_it trl-smollm3-64k.yaml --from $D/accelerate-fsdp2.yaml $h100 --model layers=36,hidden=2048,heads=16,kv_heads=4,ffn=11008,vocab=128256,tied_head=true
# one GPU, or DDP: autocast over fp32 parameters, or parameters that stay in 16 bits
printf 'model_name_or_path: x\nmax_length: 8192\nper_device_train_batch_size: 1\nbf16: true\n' > $T/sft.yaml
printf 'torch_dtype: bfloat16\n' | cat $T/sft.yaml - > $T/narrow.yaml
printf 'compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 8\n' > $T/ddp.yaml
for file in sft narrow; do
    for ddp in "" "--from $T/ddp.yaml"; do
        longhaul predict $T/$file.yaml $ddp --cluster h200 --gpus $(test -n "$ddp" && echo 8 || echo 1) --model llama3-8b --set layers=8 --quick 2> $T/err > $T/out || true
        grep -o -e '--profile [a-z-]*\|--states [a-z0-9]*\|--weights [a-z0-9]*' $T/err | tr '\n' ' '
        sed -n 's/^step  *\([0-9.]* m*s\) .*/step \1/p' $T/out
    done
done
read_it accelerate-context-parallel.yaml $h100 --model llama3-8b --seq 32K --activations full
