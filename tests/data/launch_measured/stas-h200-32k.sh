cat > ds.json <<EOF
{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 1,
  "bf16": { "enabled": true },
  "zero_optimization": { "stage": 3, "offload_optimizer": { "device": "cpu", "pin_memory": true } }
}
EOF
deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path meta-llama/Llama-3.1-8B --max_length 32768 \
  --per_device_train_batch_size 1 --gradient_checkpointing true --use_liger_kernel true --bf16 true \
  --attn_implementation flash_attention_3 --packing true
