# Launch files of public repositories (tests/data/launch/README.md) that are read by table files: the options that are
# understood, what is said beside them, and the step that is predicted. Nothing was measured.
D=$S/tests/data/launch
read_it() { # FILE OPTIONS
    echo "== $*"
    longhaul predict $D/"$@" --cluster 16x8xh100 --quick > $T/out 2> $T/err || true
    sed "/^note: /d; /^  ignored/,\$d; s|$D/||g" $T/err
    grep -a error $T/err | sed "s|$D/||g"
    sed -n 's/^\(Fits\|May fit\|Probably fits\|Probably does not fit\|Does not fit\)[:, ].*/\1/p; s/^step  *\([0-9.]* m*s\) .*/step \1/p' $T/out
}
read_it axolotl-llama3-8b-500k.yaml --gpus 8
read_it axolotl-llama3-8b-hsdp-tp.yaml --gpus 16
read_it axolotl-llama3-8b-liger.yaml --gpus 8
read_it axolotl-llama3-70b-qlora.yaml --gpus 8
read_it llama-factory-llama3-8b-fp8.yaml --gpus 8
read_it llama-factory-qwen2-muon.yaml --gpus 8
read_it llama-factory-qwen3-4b.yaml --gpus 8
read_it ms-swift-full.sh
read_it ms-swift-qwen2.5-32b.sh
read_it ms-swift-megatron-long-text.sh
read_it ms-swift-megatron-qwen3-32b.sh
read_it verl-grpo-qwen3-8b.sh
read_it verl-sft-qwen2.5-0.5b.sh --gpus 8
read_it openrlhf-sft-llama3-8b.sh --gpus 8
read_it openrlhf-dpo-llama3-8b.sh --gpus 8 --model llama3-8b
read_it megatron-bridge-llama32-1b.yaml --gpus 8 --model llama3.2-1b
read_it megatron-bridge-llama3-8b.yaml --gpus 8 --model llama3-8b --seq 8K
read_it nemo-llama3-8b-tp2.sh
read_it nemo-mixtral-ep4.sh
read_it nanotron-qwen2-3b.yaml
read_it nanotron-tiny-llama.yaml
