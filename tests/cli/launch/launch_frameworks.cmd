# Frameworks of table files (launch/NAME.csv): what is understood of each kind of file, of commands between quotes, of a
# user's own framework, and what adapters and reinforcement learning say
small="--cluster dgx-h100 --nodes 1 --quick"
file() { cat > $T/$1; }
of() { longhaul predict "$@" $small 2>&1 >/dev/null | sed "s|$T/||g; /^note: /d"; }
line() { longhaul predict --from "$@" $small 2>&1 >/dev/null | sed "s|$T/||g; /^note: /d"; }

# Axolotl shares learning_rate, bf16, gradient_checkpointing and fsdp_config with Trainer
printf 'base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\nsequence_len: 16384\nsample_packing: true\nlearning_rate: 0.0002\nbf16: auto\nfsdp_config:\n  offload_params: false\ncontext_parallel_size: 2\noptimizer: paged_adamw_8bit\ngradient_checkpointing: offload\n' | file recipe.yaml; of $T/recipe.yaml
printf 'base_model: x/y\nadapter: qlora\nload_in_4bit: true\nlora_r: 8\nmicro_batch_size: 2\nsequence_len: 4096\n' | file recipe.yaml; of $T/recipe.yaml --model llama3-8b
# an adapter over weights in 8 bits, and experts over ranks
printf 'base_model: x/y\nload_in_8bit: true\nadapter: lora\nlora_r: 8\nmicro_batch_size: 2\nsequence_len: 4096\nsample_packing: true\n' | file recipe.yaml; of $T/recipe.yaml --model llama3-8b
printf 'base_model: Qwen/Qwen3-30B-A3B\nexpert_parallel_size: 4\nmicro_batch_size: 1\nsequence_len: 2048\nsample_packing: true\nbf16: true\n' | file recipe.yaml; of $T/recipe.yaml
# a key of 0.12 beside the name that it replaced: both say the same field
printf 'base_model: Qwen/Qwen3-8B\nsequence_len: 8192\ncontext_parallel_size: 2\nsequence_parallel_degree: 4\n' | file recipe.yaml; of $T/recipe.yaml
# LLaMA-Factory shares nearly all
printf 'model_name_or_path: Qwen/Qwen3-4B\nstage: sft\nfinetuning_type: full\ndeepspeed: examples/deepspeed/ds_z3_offload_config.json\ncutoff_len: 8192\nper_device_train_batch_size: 1\nlearning_rate: 1.0e-5\nbf16: true\nflash_attn: fa2\n' | file recipe.yaml; of $T/recipe.yaml
printf 'model_name_or_path: Qwen/Qwen3-4B\nstage: dpo\ncutoff_len: 8192\nper_device_train_batch_size: 1\n' | file recipe.yaml; of $T/recipe.yaml
line "NNODES=1 NPROC_PER_NODE=4 llamafactory-cli train --model_name_or_path Qwen/Qwen3-4B --finetuning_type full --cutoff_len 4096 --deepspeed ds_z2_config.json --bf16 true --per_device_train_batch_size 2"
# its Megatron engine, whose batch is counted by rank
printf 'model_name_or_path: Qwen/Qwen3-30B-A3B-Instruct-2507\nstage: sft\ndo_train: true\nfinetuning_type: full\ncutoff_len: 4096\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\ntensor_model_parallel_size: 1\npipeline_model_parallel_size: 4\nuse_distributed_optimizer: true\nmoe_token_dispatcher_type: alltoall\nexpert_model_parallel_size: 2\nrecompute_granularity: full\n' | file recipe.yaml; of $T/recipe.yaml
# ms-swift, both trainers
line "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --train_type full --deepspeed zero3_offload --max_length 8192 --sequence_parallel_size 4 --attn_impl flash_attn"
line "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --train_type full --tensor_model_parallel_size 4 --sequence_parallel true --micro_batch_size 1 --global_batch_size 16 --max_length 8192 --recompute_granularity full --recompute_method uniform --recompute_num_layers 1"
line "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --train_type full --fsdp fsdp2 --max_length 8192 --packing true"
# verl: supervised fine-tuning, whose model is known by the end of its path, and the policy's update of GRPO
printf '#!/bin/bash\nset -x\ntorchrun --nnodes=1 --nproc_per_node=8 \\\n  -m verl.trainer.fsdp_sft_trainer \\\n  data.max_length=16384 data.micro_batch_size_per_gpu=4 \\\n  model.partial_pretrain=$HOME/m/Qwen3-8B optim.lr=1e-6 $@ ulysses_sequence_parallel_size=8\n' | file recipe.sh; of $T/recipe.sh
line "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=1024 data.max_prompt_length=512 data.max_response_length=7680 actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.rollout.n=5 actor_rollout_ref.rollout.gpu_memory_utilization=0.6 trainer.n_gpus_per_node=8 trainer.nnodes=1"
# its Megatron engine, whose micro-batches are filled up to a number of tokens; rows without padding are shorter than the longest
line "python3 -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml' data.max_prompt_length=2048 data.max_response_length=6144 actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.rollout.n=8 actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=20000 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 actor_rollout_ref.actor.megatron.expert_model_parallel_size=2 +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method=uniform +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers=1 trainer.n_gpus_per_node=8 trainer.nnodes=1"
line "python3 -m verl.trainer.main_ppo data.max_prompt_length=512 data.max_response_length=1536 actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.model.use_remove_padding=False actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 trainer.n_gpus_per_node=8 trainer.nnodes=1"
# OpenRLHF, by its names with dots and without
line "deepspeed --module openrlhf.cli.train_sft --max_len 8192 --pretrain meta-llama/Meta-Llama-3-8B --zero_stage 3 --micro_train_batch_size 1 --train_batch_size 128 --bf16 --gradient_checkpointing --packing_samples --ring_attn_size 2 --ring_head_stride 2"
line "deepspeed --module openrlhf.cli.train_sft --data.max_len 8192 --model.model_name_or_path meta-llama/Meta-Llama-3-8B --zero_stage 3 --ds.ring_attn_size 2"
# Megatron-Bridge, NeMo 2, nanotron
printf 'train:\n  train_iters: 20\n  micro_batch_size: 1\n  global_batch_size: 32\nmodel:\n  seq_length: 8192\n  tensor_model_parallel_size: 2\n  sequence_parallel: true\n  recompute_granularity: selective\n' | file recipe.yaml; of $T/recipe.yaml --model llama3-8b
# products in 8 and 4 bits: the recipe of a name, its fields, and Megatron-LM's arguments; layers at the ends in 16 bits
for p in bf16-with-fp8-current-scaling-mixed nanov2_bf16_with_fp8_current_scaling_mixed bf16_with_mxfp8_mixed nemotron_3_super_bf16_with_nvfp4_mixed \
    '{fp8: e4m3, fp8_recipe: mxfp8, first_last_layers_bf16: true, num_layers_at_start_in_bf16: 2}' '{fp4: e2m1}'; do
    printf 'train:\n  train_iters: 20\n  micro_batch_size: 1\n  global_batch_size: 32\nmodel:\n  seq_length: 8192\nmixed_precision: %s\n' "$p" | file recipe.yaml
    { longhaul predict $T/recipe.yaml --model llama3-8b --cluster 1x8xb200 --quick 2>&1 > $T/out || true; } | tr -s '\\\\\n ' ' ' | grep -o -e '--products [^ ]*\( --bf16-layers [0-9]*\)*' -e '[0-9]* first and.*ends'
done
line "torchrun pretrain_gpt.py --seq-length 8192 --micro-batch-size 1 --fp8-format e4m3 --fp8-recipe blockwise --first-last-layers-bf16 --num-layers-at-start-in-bf16 2 --num-layers-at-end-in-bf16 2" --model llama3-8b | grep -o -e "--bf16-layers.*"
# a converter of linear layers leaves experts in 16 bits
for q in '"quantize.linear.mx"' '"quantize.linear.mx", "quantize.grouped_mm.mx"'; do
    printf '[model]\nname = "deepseek_v3"\nflavor = "16B"\nconverters = [%s]\n[training]\nlocal_batch_size = 1\nseq_len = 4096\n' "$q" > $T/titan.toml
    { longhaul predict $T/titan.toml --model deepseek-v2-lite --cluster 1x8xb200 --quick 2>&1 > $T/out || true; } | tr -s '\\\\\n ' ' ' | grep -o -e '--products [^ ]*' -e 'experts multiply in 16 bits[^.]*here' | sed 's/ 8192.*//'
done
line "nemo llm pretrain --factory llama3_8b_64k trainer.num_nodes=2" --gpus 8
line "nemo llm pretrain --factory mixtral_8x7b"
line "nemo llm pretrain --factory mixtral_8x7b trainer.strategy.expert_model_parallel_size=2" | head -4
line "nemo llm pretrain --factory qwen3_30b_a3b trainer.strategy.tensor_model_parallel_size=1 trainer.strategy.pipeline_model_parallel_size=1"
printf 'model:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 2048\n    intermediate_size: 11008\n    num_attention_heads: 16\n    num_hidden_layers: 36\n    num_key_value_heads: 4\n    rms_norm_eps: 1.0e-06\n    rope_theta: 10000.0\n    tie_word_embeddings: true\n    vocab_size: 128256\noptimizer:\n  zero_stage: 0\nparallelism:\n  dp: 2\n  pp: 1\n  tp: 2\n  tp_mode: REDUCE_SCATTER\ntokens:\n  batch_accumulation_per_replica: 4\n  micro_batch_size: 3\n  sequence_length: 4096\n' | file recipe.yaml; of $T/recipe.yaml
# a framework of the user's own
printf 'setting,use,to,words,note,since,until\nname,is,,our trainer,,,\nfamily,is,,trainer,,,\nkeys,is,,tokens_a_row,,,\ntokens_a_row,sets,seq,,,,\nhow,sets,--weights,sharded=zero3 whole=replicated,,,\n' | file ours.csv
printf 'tokens_a_row: 8192\nhow: sharded\nwho: me\n' | file recipe.yaml; of $T/recipe.yaml --from $T/ours.csv --model llama3-8b
printf 'tokens_a_row: 8192\nhow: sharded\n' | file recipe.yaml; of $T/recipe.yaml --model llama3-8b | cut -c 1-60
sed 's/seq/sequence/' $T/ours.csv | file theirs.csv; of $T/recipe.yaml --from $T/theirs.csv --model llama3-8b
# options that a table's rows name, and values that they give them, are checked before a file is read
row() { (grep -v '^how' $T/ours.csv; echo "how,$1") | file theirs.csv; longhaul predict $T/recipe.yaml --from $T/theirs.csv --model llama3-8b $small > $T/out 2> $T/err && echo taken || echo "exit $?"; sed "s|$T/||g; /error/!d" $T/err; }
row 'sets,--wieghts,sharded=zero3,,,'
row 'implies,--frobnicate,,,,'
row 'sets,--cluster,,,,'
row 'sets,--zero,sharded=3,,,'
row 'sets,--compile,sharded=true,,,'
row 'sets,--weights,whole=replicated sharded=zero4,,,'
row 'sets,--ffn-chunks,sharded=0 *=-,,,'
row 'sets,--weights,sharded zero3,,,'
row 'sets,--weights,sharded=,,,'
row 'sets,--weights,,,,'
row 'sets,--strategy,sharded=ring whole=ulises,,,'
row 'implies,--profile,sharded=deepsped,,,'
row 'sets,profile,sharded=megatorn,,,'
(cat $T/ours.csv; echo ',unset,profile,hff,,,') | file theirs.csv; of $T/recipe.yaml --from $T/theirs.csv --model llama3-8b
row 'sets,--offload-ratio,sharded=1.5,,,'
row 'sets,--share-units,sharded=most,,,'
# Liger's kernels and loss: a loss of pairs has its logits, tensor ranks share theirs, and options stand above the file
printf 'model_name_or_path: Qwen/Qwen3-4B\nenable_liger_kernel: true\nstage: sft\nfinetuning_type: full\ncutoff_len: 8192\n' | file recipe.yaml; of $T/recipe.yaml | head -4
sed 's/sft/dpo/' $T/recipe.yaml | file pairs.yaml; of $T/pairs.yaml | head -4
of $T/recipe.yaml --compile --loss eager | grep -A 1 instead
printf 'base_model: Qwen/Qwen3-8B\nsequence_len: 8192\ntensor_parallel_size: 2\nmicro_batch_size: 1\nliger_rope: true\nliger_rms_norm: false\nliger_fused_linear_cross_entropy: true\n' | file recipe.yaml; of $T/recipe.yaml
# what an optimizer on the host is copied from
printf '{"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": false}}}' | file ds.json; of $T/ds.json --model llama3-8b --seq 4K | grep -A 2 pin_memory
# GRPO of TRL: prompts and answers make the length; bytes of what is not modelled
printf 'model_name_or_path: Qwen/Qwen3-4B\nmax_prompt_length: 1024\nmax_completion_length: 7168\nper_device_train_batch_size: 2\npacking: true\ngradient_checkpointing: true\nuse_vllm: true\nvllm_gpu_memory_utilization: 0.4\nbeta: 0.04\nuse_peft: true\ntemperature: 0.9\n' | file grpo.yaml; of $T/grpo.yaml
# Megatron's loss: its own, its fused kernel, TransformerEngine's, which the fusion switches on
# an answer with its continued lines joined, so that a value stands beside its option
joined() { of "$1" > $T/answer; sed -e ':a' -e '/\\$/N; s/ *\\\n */ /; ta' $T/answer; }
found() { grep -E "$1" $T/found || { grep -q 'as options:' $T/found && echo "none: $2"; }; }
loss() { joined "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 16 --vocab-size 32000 --bf16 --attention-dropout 0 $*" > $T/found; found 'error|loss|fusion' "$*"; }
loss
loss --cross-entropy-loss-fusion --cross-entropy-fusion-impl te
loss --cross-entropy-fusion-impl te
loss --cross-entropy-loss-fusion --cross-entropy-fusion-impl linear
loss --cross-entropy-loss-fusion --cross-entropy-fusion-impl tee
loss --context-parallel-size 2
loss --context-parallel-size 2 --cross-entropy-loss-fusion --cross-entropy-fusion-impl te
# compilers: DeepCompile, and Accelerate's
printf 'base_model: Qwen/Qwen3-4B\nsequence_len: 4096\nmicro_batch_size: 1\npretraining_sample_concatenation: true\ndeepspeed: deepspeed_configs/zero3.json\ndeepcompile: true\nchunked_cross_entropy: true\nchunked_cross_entropy_num_chunks: 12\n' | file recipe.yaml; of $T/recipe.yaml
for backend in inductor no aot_eager; do of "accelerate launch --num_processes 4 --use_fsdp --dynamo_backend $backend sft.py --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 1 --max_length 4096 --packing true --gradient_checkpointing true" > $T/found; found 'kernels|compiler|error' $backend; done
# tensor ranks of DeepSpeed keep all tokens
printf '{"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 2}, "compile": {"deepcompile": true}}' | file ds.json; of $T/ds.json --model llama3-8b --seq 4K
# torchtitan's models of today: by flavor, and by the recipes of --config; what is not modelled is refused by name
flavor() { printf '[model]\nname = "%s"\nflavor = "%s"\n[training]\nseq_len = 4096\nlocal_batch_size = 1\n[parallelism]\nexpert_parallel_degree = %s\n' $1 $2 ${3:-1} | file titan.toml; of $T/titan.toml | grep -E 'error|model'; }
flavor llama3 1B
flavor qwen3 0.6B
flavor qwen3 32B
flavor qwen3 30B-A3B
flavor qwen3 30B-A3B 8
flavor gpt_oss 20b
flavor llama4 17bx16e
flavor deepseek_v3 16B
titan() { line "torchrun --nproc_per_node 8 -m torchtitan.train $*"; }
titan --module qwen3 --config qwen3_14b
titan --module llama3 --config llama3_8b --training.max_context_length 32768 --training.num_tokens_per_microbatch_per_dp_rank 65536 --training.num_tokens_per_train_step 1048576
titan --module llama3 --config llama3_8b --training.num_tokens_per_microbatch_per_dp_rank 10000
titan --module llama3 --config llama3_9b
# stages: by torchtitan's own split both ends count as a layer; async TP of compiled layers, and of others
stages() { printf '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 4096\nlocal_batch_size = 4\n[parallelism]\npipeline_parallel_degree = 2\ntensor_parallel_degree = 2\nenable_async_tensor_parallel = true\n%s' "$1" | file titan.toml; of $T/titan.toml; }
stages
stages 'pipeline_parallel_first_stage_less_layers = 0
[compile]
enable = true'
stages 'pipeline_parallel_first_stage_less_layers = 0
pipeline_parallel_last_stage_less_layers = 2'
# details of adapters and of rollout engines are lists: a misspelt one is unknown, a member of one is its detail
printf 'base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nadapter: lora\nlora_r: 8\nlora_alhpa: 16\nlora_alpha_pattern:\n  q_proj: 32\nvllm:\n  max_model_len: 4096\n  max_model_length: 4096\n' | file recipe.yaml; of $T/recipe.yaml | sed '/not modelled/,$!d'
# what the run does less: rows without padding are shorter than the longest, and those that a framework pads or packs are not
most() { joined "$@" > $T/found; grep -oE -e 'error.*' -e '--adapter [0-9a-z:,]+' -e '--at-most [a-z,]+' $T/found || found none "$*"; }
sft="torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer data.max_length=2048 model.path=Qwen/Qwen3-8B"
most "$sft model.use_remove_padding=True"
most "$sft model.use_remove_padding=False"
axolotl() { printf 'base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 1\n%s\n' "$1" | file recipe.yaml; most $T/recipe.yaml; }
axolotl 'pad_to_sequence_len: false'
axolotl 'pad_to_sequence_len: true'
factory() { printf 'model_name_or_path: '${model:-Qwen/Qwen3-8B}'\ncutoff_len: 4096\nfinetuning_type: full\nper_device_train_batch_size: 1\n%s\n' "$1" | file recipe.yaml; most $T/recipe.yaml; }
factory 'stage: sft'
factory 'stage: pt'
factory 'stage: pt
packing: false'
factory 'tensor_model_parallel_size: 2'
factory 'tensor_model_parallel_size: 2
use_packed_sequences: true'
model=Qwen/Qwen3-30B-A3B factory 'expert_model_parallel_size: 2'
# Megatron Bridge shards states by default, LLaMA-Factory's other Megatron engine does not
for engine in 'mixed_precision: bf16_mixed' 'apply_rope_fusion: false'; do factory "tensor_model_parallel_size: 2
$engine"; grep -oE 'weights [a-z0-9]+' $T/found; done
# a file of FSDP's settings, and FSDP's own recomputation beside gradient_checkpointing
for fsdp in fsdp2 ./my/fsdp2.json; do line "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --train_type full --fsdp $fsdp --gradient_checkpointing false --max_length 8192" | sed '/not modelled/,$d'; done
# verl's Megatron engine, told by a value: of Hydra's defaults, of the configuration's name, and of the engine
printf 'defaults:\n  - ppo_megatron_trainer\n  - _self_\ndata:\n  max_prompt_length: 2048\n  max_response_length: 2048\n  train_batch_size: 256\n' | file recipe.yaml; of $T/recipe.yaml --model llama3-8b
sed 's/_megatron//' $T/recipe.yaml | file fsdp.yaml; of $T/fsdp.yaml --model llama3-8b | head -3
for engine in --config-name=ppo_megatron_trainer.yaml --config-name=ppo_trainer actor_rollout_ref.actor.strategy=megatron engine=megatron engine=fsdp2; do line "python3 -m verl.trainer.main_ppo $engine data.max_length=4096 actor_rollout_ref.model.path=Qwen/Qwen3-8B" | head -3; done
# LLaMA-Factory's second interface: weights are all trained unless peft_config says otherwise
v1() { printf 'model: Qwen/Qwen3-4B\nmodel_class: llm\ndist_config:\n  name: fsdp2\n  dcp_path: null\ntrain_dataset: a.yaml\nmicro_batch_size: 2\nlearning_rate: 1.0e-4\n%s\n' "$1" | file recipe.yaml; of $T/recipe.yaml; }
v1 'peft_config: null'
v1 'cutoff_len: 4096
peft_config:
  name: lora
  r: 16
kernel_config:
  name: liger_kernel
cp_size: 2
batching_strategy: padding_free
enable_activation_checkpointing: false'
v1 'kernel_config:
  name: auto
bf16: false'
sed 's/name: fsdp2/name: deepspeed/; s|dcp_path: null|config_file: examples/deepspeed/ds_z2_config.json|' $T/recipe.yaml | file ds.yaml; of $T/ds.yaml | head -6
# TRL's adapters: a flag, a value, and details that do nothing without it; torchtitan's switch
for peft in --use_peft '--use_peft --lora_r 16' '--use_peft true' '--use_peft false --lora_r 16' '--lora_r 16'; do most "accelerate launch --num_processes 4 sft.py --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 1 --max_length 4096 --packing true $peft" | sed 's/^none.*true /none: /'; done
for peft in true false; do printf '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 4096\nlocal_batch_size = 1\n[lora]\nrank = 8\n[peft]\nenable_peft = %s\n' $peft | file titan.toml; most $T/titan.toml; done
# Axolotl's two names of a format are two settings: one that is off leaves the other
for numbers in 'fp16: false\nfloat16: true' 'bf16: false\nbfloat16: true' 'fp16: true\nfloat16: false' 'bf16: false\nfp16: false\nfloat16: false' 'bf16: true'; do printf "base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 1\nsample_packing: true\n$numbers\n" | file recipe.yaml; joined $T/recipe.yaml | grep -oE -e 'error.*' -e '--dtype [a-z0-9]+'; done
# entries of keys without a name, between two blanks or before a value, are none
sed 's/^keys,is,,tokens_a_row/keys,is,," =sharded  how=sha* "/' $T/ours.csv | file theirs.csv
for how in sharded whole; do printf "tokens_a_row: 8192\nhow: $how\n" | file recipe.yaml; of $T/recipe.yaml --from $T/theirs.csv --model llama3-8b | cut -c 1-60 | head -1; done
# weights in 8 bits beside the adapter that a file names, modules that are trained whole, another fused kernel of attention
axolotl 'adapter: lora
load_in_8bit: true
lora_modules_to_save: [embed_tokens, lm_head]
attn_implementation: flex_attention' > $T/shown; of $T/recipe.yaml | sed '1,/not modelled/d'
