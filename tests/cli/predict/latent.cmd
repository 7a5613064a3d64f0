# Latent attention, and the configuration files of nine models: at least seven are predicted, the others refused by name with what is missing
for m in qwen3-0.6b qwen3-8b qwen3-32b qwen3-30b-a3b qwen3-next-80b-a3b gpt-oss-20b deepseek-v3 gemma-3-1b mistral-7b-v0.1; do
  longhaul predict --model $S/tests/data/configs/$m.json --cluster dgx-h100 --nodes 8 --seq 32K --quick 2>&1 | sed -n 's|[^ ]*tests/data/configs/||; /^model/p; /error/p' | cut -c1-220
done | tee $T/nine
grep -c "^model" $T/nine
# the numbers in which published weights are stored say nothing of training
longhaul list models $S/tests/data/configs/gpt-oss-20b.json 2>&1 | grep -o "quantization_config: .*"
# parameters and those that a token passes, as published: 236 and 21, 671 and 37, 1026 and 33, 15.7 and 2.7 billion
for m in deepseek-v2 deepseek-v3 kimi-k2 deepseek-v2-lite; do longhaul list models $m | grep parameters; done
# SimuMax's peaks of allocated memory, DeepSeek-V3 with four layers on 8 B200s: 104.3 GiB with ep 8, 114.0 with ep 4 and two stages
for l in "--batch 32 --dp 8 --ep 8" "--batch 32 --dp 4 --pp 2 --pipeline 1f1b --ep 4"; do
  longhaul predict --quick --model $S/traces/published/external-models/deepseek-v3-l4.json --cluster b200 --gpus 8 --strategy local --profile megatron --seq 4096 \
    --micro-batch 1 --zero 1 --activations keep $l --all 2> $T/note | grep -o "tensors [0-9.]* GiB"
done
# what is sent is expanded: keys and values of 192 + 128 columns a head; the stages of upipe are refused
longhaul schedule --model deepseek-v2-lite --set layers=1,dense_layers=0 --cluster dgx-h100 --gpus 2 --seq 4K --strategy ulysses --hp 2 2> $T/note | grep -o "all_to_all .*comm.hp group=hp bytes=[0-9]*" | head -4
longhaul schedule --model deepseek-v2-lite --set layers=1,dense_layers=0 --cluster dgx-h100 --gpus 2 --seq 4K --strategy ring 2> $T/note | grep -o "shift .* bytes=[0-9]*" | head -1
longhaul predict --quick --model deepseek-v2-lite --cluster dgx-h100 --seq 32K --strategy upipe 2>&1 || echo "exit $?"
longhaul predict --quick --model deepseek-v3 --set positions=none --cluster dgx-h100 --seq 32K 2>&1 || echo "exit $?"
# arguments of Megatron-LM, in which the preset is found; of sizes that are left out its defaults
sizes="--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --kv-channels 128 --multi-latent-attention --q-lora-rank 1536 --qk-layernorm
  --swiglu --normalization RMSNorm --norm-epsilon 1e-6 --disable-bias-linear --untie-embeddings-and-output-weights --position-embedding-type rope --rotary-base 10000
  --vocab-size 129280 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --attention-dropout 0 --num-experts 256
  --moe-layer-freq '([0]*3+[1]*58)' --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 --moe-router-topk 8 --moe-router-score-function sigmoid
  --moe-router-topk-scaling-factor 2.5 --expert-model-parallel-size 64 --bf16"
longhaul predict --from "$sizes" --cluster 8x8xb200 --quick 2>&1 | grep -e --model
longhaul predict --from "$sizes --kv-lora-rank 256 --qk-head-dim 64 --qk-pos-emb-head-dim 32 --v-head-dim 96" --cluster 8x8xb200 --quick 2>&1 | grep -o "head_dim=[0-9]*\|[a-z]*_latent=[0-9]*\|rope_dim=[0-9]*\|v_dim=[0-9]*"
longhaul predict --from "$sizes --qk-pos-emb-head-dim 33" --cluster 8x8xb200 --quick 2>&1 || echo "exit $?"
for m in mla_up_proj "mla_up_proj mlp" core_attn "core_attn moe_act layernorm" "shared_experts moe" "mlp gdn_norm_out"; do
  longhaul predict --from "$sizes --recompute-granularity selective --recompute-modules $m" --cluster 8x8xb200 --quick 2>&1 | tr -s ' \\\n' ' ' | grep -o -e "--activations [a-z-]*" -e "--recompute-modules [a-z_,]*" -e "module gdn[a-z_]* is not known" | sort -u | tr '\n' ','; echo
done
# what modules drop, in bytes: of 5 layers with experts 4096 tokens x 8 copies x 2048 x 2; of 8 norms before latent attention and 5 before experts 4096 x (7168 x 2 + 4); of 3
# dense layers 4096 x 18432 x 6; of 5 shared experts 4096 x 2048 x 6 (the peak is at the head, before the backward)
for m in none moe_act layernorm mlp moe shared_experts; do
  longhaul predict --model deepseek-v3 --set layers=8 --cluster gb200 --gpus 64 --strategy local --profile megatron-te --seq 4096 --batch 64 --ep 64 --zero 1 --activations keep --recompute-modules $m --json 2> $T/note |
    sed -n 's/^ *"peak_activation_bytes": *\([0-9]*\).*/'$m' \1/p'
done
longhaul predict --model qwen3-8b --cluster dgx-h100 --seq 8K --quick --profile megatron-te --recompute-modules layernorm 2>&1 | grep note
longhaul predict --model qwen3-8b --cluster dgx-h100 --seq 8K --quick --recompute-modules mlp,act 2>&1 || echo "exit $?"
longhaul predict --model qwen3-8b --cluster dgx-h100 --seq 8K --quick --recompute-modules mlp --activations full 2>&1 || echo "exit $?"
# expanded queries, keys and values that are made again: 12 ops of two layers, and less memory
for u in keep recompute; do
  longhaul schedule --model deepseek-v2-lite --set layers=2 --cluster dgx-h100 --gpus 1 --seq 4K --strategy local --activations keep --up-projection $u 2> $T/note | grep -c recompute || true
  longhaul predict --quick --model deepseek-v3 --cluster gb200 --gpus 256 --strategy local --profile megatron-te --seq 4096 --micro-batch 1 --batch 2048 --dp 64 --pp 4 --pipeline interleaved \
    --virtual-stages 4 --ep 64 --zero 1 --activations keep --up-projection $u 2> $T/note | sed -n 's/.*\(a GPU needs.*\)/\1/p; s/.*\(activations [^,]*\),.*/\1/p' | head -2
done
longhaul predict --model qwen3-8b --cluster dgx-h100 --seq 8K --quick --up-projection recompute 2>&1 | grep note
# latents that head ranks send: 8.9 times fewer elements with 8 ranks, (512 + 64) x 8 instead of 128 x (192 + 128); and fpdt's copies to the host, of a rank's own tokens
for x in expanded latent; do
  longhaul schedule --model deepseek-v3 --set layers=1,dense_layers=0 --cluster dgx-h100 --seq 8K --strategy ulysses --hp 8 --mla-exchange $x 2> $T/note > $T/$x.ir
  grep -o "all_to_all .*comm.hp group=hp bytes=[0-9]*\|all_gather comm.hp .*bytes=[0-9]*" $T/$x.ir | head -4
  longhaul check $T/$x.ir > $T/checked
  longhaul schedule --model deepseek-v3 --set layers=1,dense_layers=0 --cluster dgx-h100 --seq 8K --strategy fpdt --hp 8 --chunk 2K --mla-exchange $x 2> $T/note | grep -o "d2h d2h bytes=[0-9]*" | head -3
done
longhaul predict --model deepseek-v3 --cluster dgx-h100 --nodes 64 --seq 256K --strategy ulysses --hp 64 --ep 8 --activations selective-offload --loss-chunks 8 --ffn-chunks 8 --attention fa3 2> $T/note | sed -n '/^What to try/,/^ *Search/p' | head -5
longhaul predict --quick --model deepseek-v3 --set experts=0,experts_per_token=0,expert_ffn=0,shared_ffn=0,dense_layers=0 --cluster dgx-h100 --seq 8K --hp 8 --mla-exchange latent --products fp8-tensor 2>&1 || echo "exit $?"
longhaul predict --model qwen3-8b --cluster dgx-h100 --seq 8K --quick --mla-exchange latent 2>&1 | grep note
# plan searches both exchanges, and only the one that is given
for x in "" "--mla-exchange expanded"; do
  longhaul plan --model deepseek-v3 --set layers=4 --cluster dgx-h100 --nodes 1 --seq 128K --strategy ulysses --hp 8 --micro-batch 1 --top 1 $x 2> $T/note | sed -n '/^searched/s/:.*//p; /^  longhaul predict/p'
done
# parameters, gradients and optimizer states of four layers, by hand: 37.55 and 92.78 GiB a rank with ep 8, 39.34 and 106.17 on the second of two stages
for s in "--dp 8 --ep 8" "--dp 4 --pp 2 --ep 4"; do
  for m in v2 v3; do
    longhaul predict --model $S/traces/published/external-models/deepseek-$m-l4.json --cluster b200 --gpus 8 --strategy local --profile megatron --seq 4096 --micro-batch 1 --batch 16 --zero 1 $s --activations keep --quick --json 2> $T/note |
      awk -F'[:,]' '/"peak_(parameter|gradient|optimizer)_bytes"/ { sum += $2 } END { printf "states of %s: %.2f GiB\n", name, sum / 1024 ^ 3 }' name="$m $s" -
  done
done
