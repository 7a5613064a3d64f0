# Settings files and scripts that a command names are read too: beside the script, or where the command stands; what the command
# says counts more. Commands as they stand in the documents of each framework.
mkdir -p $T/conf $T/mymodel
cd $T
file() { cat > $T/$1; }
of() { longhaul predict "$@" --cluster dgx-h100 --nodes 1 --quick 2>&1 >/dev/null | sed "s|$T/||g; /^note: /d" | sed -n '/options:/,/^  \(not modelled\|unknown\|ignored\)/p' | sed '/^  \(not modelled\|unknown\|ignored\)/d'; }
printf 'base_model: Qwen/Qwen3-8B\nsequence_len: 32768\nmicro_batch_size: 1\nsample_packing: true\ngradient_checkpointing: true\n' | file conf/ax.yml
of "axolotl train conf/ax.yml"
of "CUDA_VISIBLE_DEVICES=0,1 accelerate launch -m axolotl.cli.train conf/ax.yml --micro-batch-size 2"
of "axolotl train missing.yml" --model qwen3-8b --seq 4K
printf '{"train_batch_size":"auto","train_micro_batch_size_per_gpu":"auto","zero_optimization":{"stage":3},"bf16":{"enabled":"auto"}}' | file conf/ds3.json
printf 'model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: full\ndeepspeed: ds3.json\ncutoff_len: 8192\nper_device_train_batch_size: 1\nbf16: true\n' | file conf/lf.yaml
of "FORCE_TORCHRUN=1 llamafactory-cli train conf/lf.yaml cutoff_len=16384"
of conf/lf.yaml
printf 'distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n' | file conf/acc.yaml
printf 'model_name_or_path: meta-llama/Llama-3.1-8B\nmax_length: 16384\nper_device_train_batch_size: 1\ngradient_checkpointing: true\nbf16: true\npacking: true\n' | file conf/sft.yaml
of "accelerate launch --config_file conf/acc.yaml --num_processes 4 sft.py --config conf/sft.yaml --max_length 32768"
of "trl sft --config conf/sft.yaml --accelerate_config conf/acc.yaml"
of "trl dpo --config conf/sft.yaml --accelerate_config zero2"
of "deepspeed --include localhost:0,1,2 train.py --deepspeed conf/ds3.json --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --max_length 4096 --bf16 true --gradient_checkpointing true"
printf '#!/bin/bash\ncd examples\naccelerate launch --config_file acc.yaml sft.py --config sft.yaml\n' | file conf/run.sh
of conf/run.sh
of "bash conf/run.sh"
of "bash conf/run.sh" > $T/plain && of "bash -x conf/run.sh" | cmp - $T/plain && echo "the same with -x"
longhaul predict "bash missing.sh" --cluster dgx-h100 || echo "exit $?"
printf '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 8192\nlocal_batch_size = 1\n[activation_checkpoint]\nmode = "full"\n' | file conf/titan.toml
of "torchrun --nproc_per_node=4 -m torchtitan.train --job.config_file conf/titan.toml --training.seq_len 16384"
of "NGPU=4 CONFIG_FILE=conf/titan.toml ./run_train.sh"
of "MODULE=qwen3 CONFIG=qwen3_1_7b ./run_train.sh"
cp $S/tests/data/launch/nanotron-qwen2-3b.yaml conf/nt.yaml
of "CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nproc_per_node=4 run_train.py --config-file conf/nt.yaml"
cp $S/tests/data/launch_measured/llm-foundry-008.yaml conf/mpt.yaml
of "composer -n 8 train.py conf/mpt.yaml global_train_batch_size=256"
longhaul predict "nemo llm finetune --factory llama3_8b" --cluster dgx-h100 --quick 2>&1 >/dev/null | grep -A 2 subcommand
# mixtures of experts by their paths on the hub; a path that only begins like one is none of them
for m in deepseek-ai/DeepSeek-V3 deepseek-ai/DeepSeek-R1 deepseek-ai/DeepSeek-V2 deepseek-ai/DeepSeek-V2-Lite moonshotai/Kimi-K2-Instruct zai-org/GLM-4.5 zai-org/GLM-4.5-Air MiniMaxAI/MiniMax-M2 zai-org/GLM-4.5V; do
  printf "model_name_or_path: $m\nmax_length: 4096\n" > $T/hub.yaml
  echo "$m $(longhaul predict $T/hub.yaml --cluster dgx-h100 --nodes 64 --quick 2>&1 | grep -o -e '--model [a-z0-9.-]* \|missing *model_name_or_path' | head -1)"
done
# experts of a preset's sizes with another router are another model, in a file of Megatron's and for a name on the hub
moe() {
    echo "torchrun --nproc_per_node 8 pretrain_gpt.py --use-mcore-models --num-layers 48 --hidden-size 2048 --num-attention-heads 32 --group-query-attention --num-query-groups 4 --kv-channels 128 --ffn-hidden-size 6144 --normalization RMSNorm --norm-epsilon 1e-6 --qk-layernorm --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --position-embedding-type rope --rotary-base 1000000 --vocab-size 151936 --make-vocab-size-divisible-by 1 --num-experts 128 --moe-router-topk 8 --moe-ffn-hidden-size 768 --expert-model-parallel-size 8 --seq-length 4096 --micro-batch-size 1 --global-batch-size 8 --bf16 --use-distributed-optimizer $*" > $T/moe.sh
    longhaul predict --from $T/moe.sh --cluster dgx-h100 --quick 2>&1 > $T/out | grep -o '^ *--model *[^ \\]*\|experts=.*'
}
moe
moe --moe-router-score-function sigmoid
moe --moe-router-pre-softmax
moe --moe-router-topk-scaling-factor 2.5
for field in router=sigmoid experts_every=2 rope_scaled=true; do
    longhaul plan --longest --emit trl --model qwen3-30b-a3b --set $field --cluster dgx-h100 --nodes 1 2>&1 | cut -d : -f 3 | cut -c 1-90
done
