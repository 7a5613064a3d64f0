accelerate launch --num_processes 8 --use_fsdp --fsdp_version 2 --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP \
  --use_parallelism_config --parallelism_config_cp_size 8 -m trl.scripts.sft \
  --model_name_or_path Qwen/Qwen3-8B --max_length 1048576 --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 1 --packing true --packing_strategy wrapped --bf16 true --attn_implementation sdpa \
  --gradient_checkpointing true --activation_offloading true --loss_type chunked_nll
