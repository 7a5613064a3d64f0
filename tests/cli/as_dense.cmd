# Families that are not modelled: what is missing, what the nearest dense model is, and that every output of a proxy says so
file() { cat > $T/$1; }
file mixtral.json <<'END'
{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
 "num_key_value_heads": 8, "num_experts_per_tok": 2, "num_local_experts": 8, "vocab_size": 32000, "rope_theta": 1000000.0}
END
file deepseek.json <<'END'
{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 128,
 "num_hidden_layers": 61, "num_key_value_heads": 128, "num_experts_per_tok": 8, "n_routed_experts": 256, "n_shared_experts": 1,
 "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
 "vocab_size": 129280, "rope_theta": 10000}
END
file qwen3.json <<'END'
{"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_attention_heads": 32, "head_dim": 128,
 "num_hidden_layers": 48, "num_key_value_heads": 4, "num_experts_per_tok": 8, "num_experts": 128, "decoder_sparse_step": 1, "vocab_size": 151936}
END
file bloom.json <<'END'
{"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880}
END
file mamba.json <<'END'
{"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 32768}
END
file broken.json <<'END'
{"model_type": "mixtral", "hidden_size": 4096}
END
what="--cluster 2x8xh100 --seq 4K --strategy local --quick"
for m in mixtral deepseek qwen3 bloom mamba broken; do longhaul predict --model $T/$m.json $what 2>&1 | sed "s|$T/||"; done
for m in mamba broken; do longhaul predict --model $T/$m.json --as-dense $what 2>&1 | sed "s|$T/||g"; done
# text, JSON, CSV, a plan, a page
longhaul predict --model $T/mixtral.json --as-dense $what 2> $T/note | sed -n "s|$T/||g; /^model/p"
longhaul predict --model $T/mixtral.json --as-dense $what --json 2> $T/note | grep -o '"model": ".*proxy.*"' | sed "s|$T/||"
longhaul sweep --model $T/mixtral.json --as-dense --cluster 2x8xh100 --strategy local --vary seq=4K 2> $T/note | sed "s|$T/||" | grep -i proxy
longhaul plan --model $T/mixtral.json --as-dense --set layers=2 --cluster 2x8xh100 --gpus 2 --seq 4K --strategy local --top 1 2> $T/note | sed "s|$T/||" | grep -i proxy
sed "s|$T/||g" $T/note
# the line that the refusal names is the same model
line=$(longhaul predict --model $T/qwen3.json $what 2>&1 | sed 's/.*proxy: //')
longhaul predict --model "$line" $what 2> $T/note | sed -n '/^model/p; /^step/p'
longhaul predict --model $T/qwen3.json --as-dense $what 2> $T/note | sed -n '/^step/p'
# of arguments of Megatron-LM
args="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --vocab-size 32000 --swiglu --num-experts 8 --moe-router-topk 2 --seq-length 4096 --bf16"
longhaul predict --from "$args" --cluster 2x8xh100 --quick 2>&1 || echo "exit $?"
longhaul predict --from "$args" --as-dense --cluster 2x8xh100 --quick 2> $T/note | sed -n '/^model/p'
grep -o 'proxy=[a-z]*' $T/note
