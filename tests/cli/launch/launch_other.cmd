# Files of programs that are not read are refused by name; here-documents; how many GPUs launchers start; what FSDP and recomputation
# of Trainer and Megatron leave unsaid
small="--cluster dgx-h100 --nodes 1 --model llama2-7b --quick"
file() { cat > $T/$1; }
bad() { longhaul predict "$@" $small --seq 4K 2>&1 >/dev/null | sed -n 's/; give its settings.*//; /error/p' | sed "s|$T/||g"; }
of() { longhaul predict "$@" $small 2>&1 >/dev/null | sed "s|$T/||g; /^note: /d"; }
gpus() { longhaul predict --from "$1" --cluster 4x8xh100 --model llama2-7b --seq 4K --batch 768 --strategy local --quick 2>&1 >/dev/null | grep -o -e '--gpus [0-9]*\|error.*' || echo "all GPUs"; }

# torchtune: refused with what to give instead
printf 'tokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n  max_seq_len: 8192\nbatch_size: 2\n' | file recipe.yaml
longhaul predict $T/recipe.yaml $small 2>&1 >/dev/null | sed "s|$T/||g"
printf 'composer train/train.py train/yamls/pretrain/mpt-125m.yaml\n' | file recipe.sh; bad $T/recipe.sh
printf 'torchrun --nproc_per_node 8 my_own.py --batch 8 lr=1e-4 notes.yaml\n' | file recipe.sh; bad $T/recipe.sh | cut -c 1-55
# what is read of a recognised program, and a word of which nothing is known
printf 'torchrun --nproc_per_node 8 sft.py extra.yaml --model_name_or_path x/y --max_length 4096 --packing true +trainer.lr=1 --config more.yaml --fsdp "full_shard auto_wrap offload" --fsdp_config fsdp.json --bf16 true --tf32 true\n' | file recipe.sh; of $T/recipe.sh

# FSDP under Trainer: what its settings mean
printf 'model_name_or_path: x/y\nmax_length: 8192\nper_device_train_batch_size: 1\npacking: true\npacking_strategy: wrapped\nbf16: true\nfsdp: auto_wrap shard_grad_op\nfsdp_config:\n  transformer_layer_cls_to_wrap: LlamaDecoderLayer\n  activation_checkpointing: true\n  offload_params: true\n  limit_all_gathers: true\ngradient_checkpointing: false\n' | file sft.yaml; of $T/sft.yaml
sed 's/^fsdp: .*/fsdp: full_shard/' $T/sft.yaml | file sft2.yaml; of $T/sft2.yaml | grep -A 2 auto_wrap
sed 's/^fsdp: .*/fsdp: ""/' $T/sft.yaml | file sft2.yaml; of $T/sft2.yaml | grep -o -e '--weights [a-z0-9]*' | sort -u
sed 's/^fsdp: .*/fsdp: half_shard/' $T/sft.yaml | file sft2.yaml; bad $T/sft2.yaml
# every word of a list is known, and is one as a whole
sed 's/^fsdp: .*/fsdp: full_shard half_shard/' $T/sft.yaml | file sft2.yaml; bad $T/sft2.yaml
sed 's/^fsdp: .*/fsdp: full_shard_offload/' $T/sft.yaml | file sft2.yaml; bad $T/sft2.yaml
sharding() { of "$@" | grep -o -e '--weights [a-z0-9]*\|--reshard [a-z]*' | sort -u; }
sed 's/^fsdp: .*/fsdp: hybrid_shard_zero2 auto_wrap/' $T/sft.yaml | file sft2.yaml; sharding $T/sft2.yaml
printf 'distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: 5\nnum_processes: 8\n' | file acc.yaml; sharding $T/acc.yaml --seq 4K
reshard() { printf 'distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: %s\nnum_processes: 8\n' $1 | file acc.yaml; }
for word in true off SHARD_GRAD_OP 3; do reshard $word; sharding $T/acc.yaml --seq 4K; done
reshard sometimes; bad $T/acc.yaml
printf '[model]\nflavor = "8B"\nname = "llama3"\n[training]\nseq_len = 8192\nlocal_batch_size = 1\n[parallelism]\nfsdp_reshard_after_forward = "sometimes"\n' | file titan.toml; bad $T/titan.toml
# optimizers: AdamW in 32 and 8 bits is predicted, all others are said not to be
for name in adamw_torch_fused paged_adamw_32bit paged_adamw_8bit adamw_torch_4bit lion_8bit galore_adamw; do
    echo "$name: $(sed "\$aoptim: $name" $T/sft.yaml | file sft2.yaml; of $T/sft2.yaml | grep -o -e '--states [a-z0-9-]*\|AdamW is predicted' | sort -u | tr '\n' ' ')"
done
mpt() { printf 'max_seq_len: 2048\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1\nmodel:\n  name: mpt_causal_lm\n  d_model: 1024\n  n_heads: 8\n  n_layers: 4\nfsdp_config:\n  sharding_strategy: %s\n' $1 | file mpt.yaml; }
mpt HYBRID_SHARDS; bad $T/mpt.yaml
mpt _HYBRID_SHARD_ZERO2; sharding $T/mpt.yaml
printf 'torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 8 --seq-length 4096 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grad\n' | file recipe.sh; bad $T/recipe.sh
printf 'distributed_type: MEGATRON_LM\nnum_processes: 8\n' | file acc.yaml; bad $T/acc.yaml
printf 'accelerate launch --use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP --fsdp_offload_params true --num_processes 8 sft.py --model_name_or_path x/y --max_length 4096 --packing --gradient_checkpointing false\n' | file recipe.sh; of $T/recipe.sh

# here-documents: notes beside Megatron, a configuration whose values only a run knows, one that the command does not name
megatron="--num-layers 4 --hidden-size 1024 --num-attention-heads 8 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 8 --ffn-hidden-size 4096 --vocab-size 32000 --bf16"
printf 'cat > notes.json <<EOF\n{ "log": "run-x" }\nEOF\ncat <<EOF\n{{ no JSON }}\nEOF\ntorchrun --nproc_per_node=8 pretrain_gpt.py %s\n' "$megatron" | file recipe.sh; of $T/recipe.sh
file recipe.sh <<'END'
ZERO=${1:-1}
CONFIG=ds.json
cat <<EOT > other.json
{ "train_batch_size": "none", "zero_optimization": { "stage": 7 } }
EOT
cat <<EOT > $CONFIG
{ "train_micro_batch_size_per_gpu": 1, "zero_optimization": { "stage": $ZERO, "reduce_bucket_size": $BUCKET },
  "bf16": { "enabled": true }, "gradient_accumulation_steps": 1$2,
  "wandb": { "enabled": false, "job_name": "run \"$NAME\"" } }
EOT
END
printf 'deepspeed --num_gpus 8 pretrain_gpt.py --deepspeed --deepspeed_config ./$CONFIG --zero-stage $ZERO %s\n' "$megatron" >> $T/recipe.sh; of $T/recipe.sh
sed 's/"train_micro_batch_size_per_gpu": 1,/"train_micro_batch_size_per_gpu": 1 1,/' $T/recipe.sh | file recipe2.sh; bad $T/recipe2.sh
sed 's/> $CONFIG/> $OUT/; s/"train_micro_batch_size_per_gpu": 1,/"train_micro_batch_size_per_gpu": 1 1,/' $T/recipe.sh | file recipe2.sh; of $T/recipe2.sh | grep ignored

# GPUs
trainer="sft.py --model_name_or_path x/y --packing true"
gpus "deepspeed --include localhost:0,1,4,6 $trainer"
gpus "deepspeed --include worker-0:0,1@worker-1:0 $trainer"
gpus "deepspeed --include worker-0@worker-1:0,2 $trainer"
gpus "deepspeed --exclude localhost:1 $trainer"
gpus "CUDA_VISIBLE_DEVICES=0,2,5 deepspeed $trainer"
gpus "CUDA_VISIBLE_DEVICES=0,2 torchrun --nproc_per_node=gpu $trainer"
gpus "torchrun --nproc-per-node=gpu $trainer"
gpus "CUDA_VISIBLE_DEVICES=0,1,2,3 torchrun --nproc_per_node 2 $trainer"
gpus "CUDA_VISIBLE_DEVICES=3 python $trainer"
gpus "mpirun -np 16 python $trainer"
gpus "srun -N 2 -n 2 torchrun --nnodes 2 --nproc_per_node 8 $trainer"
of --from "deepspeed --exclude localhost:1 --hostfile hosts $trainer" --seq 4K | grep -A 2 -e exclude
of --from "deepspeed --include worker-0@worker-1:0,2 $trainer" --seq 4K | grep -A 1 -e include

# Megatron: the mask of S x S, and modules of selective recomputation
long="--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --swiglu --num-attention-heads 32 --seq-length 131072 --max-position-embeddings 131072 --micro-batch-size 1 --global-batch-size 1 --bf16 --tensor-model-parallel-size 8 --sequence-parallel"
of --from "pretrain_gpt.py $long --recompute-granularity selective --recompute-modules core_attn mlp layernorm" | sed -n '1,/^  ignored/p'
of --from "pretrain_gpt.py $long --no-create-attention-mask-in-dataloader --recompute-granularity selective --recompute-modules mlp" | tr -s " \n" " " | grep -o -e "mask" -e "--activations [a-z]*" -e "--recompute-modules [a-z_,]*"
# a key that another program has too does not make a file that program's
printf '{"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1, "ulysses_sequence_parallel_size": 8, "zero_optimization": {"stage": 3}}' | file ds.json; of $T/ds.json --seq 4K | grep -e from -e unknown
