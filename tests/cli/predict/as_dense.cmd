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
file bloom.json <<'END'
{"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880}
END
file mamba.json <<'END'
{"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 32768}
END
file broken.json <<'END'
{"model_type": "mixtral", "hidden_size": 4096}
END
file scout.json <<'END'
{"model_type": "llama4", "vision_config": {}, "text_config": {"hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
 "num_attention_heads": 40, "num_hidden_layers": 48, "num_experts_per_tok": 1, "num_local_experts": 16, "vocab_size": 202048}}
END
file gpt_oss.json <<'END'
{"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64, "head_dim": 64, "num_hidden_layers": 2,
 "num_experts_per_tok": 4, "vocab_size": 201088, "layer_types": ["sliding_attention", "full_attention"], "quantization_config": {}}
END
what="--cluster 2x8xh100 --seq 4K --strategy local --quick"
for m in bloom mamba broken scout gpt_oss; do longhaul predict --model $T/$m.json $what 2>&1 | sed "s|$T/||"; done
for m in mamba broken; do longhaul predict --model $T/$m.json --as-dense $what 2>&1 | sed "s|$T/||g"; done
# keys that nothing reads are named, unless the caller knows of them; a layer with a window and one without take less time than two without
for ignore in "" "--ignore quantization_config" "--ignore quantization_config,layer_types,sliding_window"; do
  longhaul predict --model $T/gpt_oss.json --as-dense $ignore --cluster dgx-h100 --gpus 1 --seq 64K --strategy local --quick 2>&1 | sed "s|$T/||g" | grep -E "note|^step"
done
# text, JSON, CSV, a plan, a page
longhaul predict --model $T/mixtral.json --as-dense $what 2> $T/note | sed -n "s|$T/||g; /^model/p"
longhaul predict --model $T/mixtral.json --as-dense $what --json 2> $T/note | grep -o '"model": ".*proxy.*"' | sed "s|$T/||"
longhaul sweep --model $T/mixtral.json --as-dense --cluster 2x8xh100 --strategy local --vary seq=4K 2> $T/note | sed "s|$T/||" | grep -i proxy
longhaul plan --model $T/mixtral.json --as-dense --set layers=2 --cluster 2x8xh100 --gpus 2 --seq 4K --strategy local --top 1 2> $T/note | sed "s|$T/||" | grep -i proxy
sed "s|$T/||g" $T/note
# the line that the refusal names is the same model
line=$(longhaul predict --model $T/bloom.json $what 2>&1 | sed 's/.*proxy: //')
longhaul predict --model "$line" $what 2> $T/note | sed -n '/^model/p; /^step/p'
longhaul predict --model $T/bloom.json --as-dense $what 2> $T/note | sed -n '/^step/p'
# a model whose parts are all modelled becomes dense, too, if that is asked for
longhaul predict --model $T/deepseek.json --as-dense $what 2> $T/note | sed -n "s|$T/||g; /^model/p; /^step/p"
longhaul predict --model deepseek-v3 --as-dense $what 2> $T/note | sed -n '/^model/p; /^step/p'
# of arguments of Megatron-LM, whose experts have biases
args="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --vocab-size 32000 --swiglu --num-experts 8 --moe-router-topk 2 --seq-length 4096 --bf16"
longhaul predict --from "$args" --cluster 2x8xh100 --quick 2> $T/note | sed -n '/^model/p'
longhaul predict --from "$args" --as-dense --cluster 2x8xh100 --quick 2> $T/note | sed -n '/^model/p'
grep -o 'proxy=[a-z]*' $T/note
