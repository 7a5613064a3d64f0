torchrun --nproc_per_node 1 run_clm.py --model_name_or_path meta-llama/Llama-3.2-1B --block_size 16384 \
  --per_device_train_batch_size 1 --bf16 true --gradient_checkpointing true --attn_implementation sdpa \
  --optim adamw_torch_fused
