torchrun --nproc_per_node 8 pretrain_gpt.py \
  --num-layers 12 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 \
  --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --norm-epsilon 1e-5 \
  --disable-bias-linear --untie-embeddings-and-output-weights --position-embedding-type rope \
  --vocab-size 128256 --seq-length 4096 --max-position-embeddings 4096 \
  --micro-batch-size 1 --global-batch-size 16 --tensor-model-parallel-size 2 --sequence-parallel \
  --use-distributed-optimizer --attention-dropout 0 --hidden-dropout 0 --bf16 \
  --cross-entropy-loss-fusion --no-create-attention-mask-in-dataloader
