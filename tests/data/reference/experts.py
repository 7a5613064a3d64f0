#!/usr/bin/env python3
"""Records what Hugging Face's transformers say about four tiny mixtures of experts: experts.json.

    pip install torch transformers numpy
    python3 tests/data/reference/experts.py

The models are built from a configuration, in float64, with the weights of exec/reference.h; nothing is downloaded. Their
routers score as they do, but the experts of a token are those that our routing deals it (schedule/ir/routing.h, even
routing of one sequence), which replace the result of torch.topk. tests/exec/test_reference_recorded.c compares the loss and
the gradient of every tensor.
"""

import json
import pathlib
import unittest.mock

import torch
import transformers

from record import ENTRIES, fnv1a64, splitmix64, text, weight

BASE = dict(layers=3, hidden=16, heads=4, vocab=19, ffn=24, rope_theta=10000.0, norm_eps=1e-6, experts=6,
            experts_per_token=4, expert_ffn=10, activation="swiglu", norm="rmsnorm", norm_place="before", positions="rope")

MODELS = (
    dict(name="qwen3-moe", seed=21, sequences=2, seq_len=11, kind="Qwen3MoeForCausalLM",
         transformer=dict(BASE, kv_heads=2, head_dim=6, qk_norm=True, router="softmax", router_norm=True,
                          experts_every=2)),
    dict(name="deepseek-v3", seed=22, sequences=2, seq_len=9, kind="DeepseekV3ForCausalLM",
         transformer=dict(BASE, kv_heads=4, head_dim=10, rope_dim=4, v_dim=7, q_latent=12, kv_latent=8,
                          router="sigmoid", router_norm=True, router_scale=2.5, shared_ffn=20, dense_layers=1)),
    dict(name="gpt-oss", seed=23, sequences=2, seq_len=10, kind="GptOssForCausalLM",
         transformer=dict(BASE, kv_heads=2, head_dim=6, ffn=10, activation="swiglu-clamped", attention_window=4,
                          full_attention_every=2, bias_qkv=True, bias_o=True, bias_ffn=True, router="chosen",
                          router_bias=True, attention_sinks=True)),
    dict(name="llama-4", seed=24, sequences=2, seq_len=12, kind="Llama4ForCausalLM",
         transformer=dict(BASE, layers=4, kv_heads=2, head_dim=6, experts_per_token=1, shared_ffn=10, attention_window=5,
                          full_attention_every=4, window_chunks=True, unrotated_every=4, qk_norm=True, qk_norm_bare=True,
                          experts_every=2, router="sigmoid", router_on_input=True)),
)


def has_experts(t, layer):
    every = t.get("experts_every", 1)
    return layer >= t.get("dense_layers", 0) and (layer + 1) % every == 0


def tensors(t):
    """Every tensor of the model, in the order of models/transformer.h: name -> (shape, names of theirs, row after row)."""
    h, f = t["hidden"], t["expert_ffn"]
    q, kv = t["heads"] * t["head_dim"], t["kv_heads"] * t["head_dim"]
    out = {"embedding.weight": ((t["vocab"], h), ["model.embed_tokens.weight"])}
    for i in range(t["layers"]):
        def put(ours, shape, *theirs):
            name = ours if ours == "sinks" or ours.endswith(".bias") else ours + ".weight"
            out[f"layers.{i}.{name}"] = (shape, [f"model.layers.{i}.{x}" for x in theirs])

        block = "feed_forward" if "router_on_input" in t else "mlp"

        put("norm1", (h,), "input_layernorm.weight")
        if "kv_latent" in t:
            low, rope, v = t["kv_latent"], t["rope_dim"], t["v_dim"]
            put("q_a", (t["q_latent"], h), "self_attn.q_a_proj.weight")
            put("q_a_norm", (t["q_latent"],), "self_attn.q_a_layernorm.weight")
            put("q_b", (q, t["q_latent"]), "self_attn.q_b_proj.weight")
            put("kv_a", (low + rope, h), "self_attn.kv_a_proj_with_mqa.weight")
            put("kv_a_norm", (low,), "self_attn.kv_a_layernorm.weight")
            put("kv_b", (t["heads"] * (t["head_dim"] - rope + v), low), "self_attn.kv_b_proj.weight")
            put("wo", (h, t["heads"] * v), "self_attn.o_proj.weight")
        else:
            put("wqkv", (q + 2 * kv, h), *(f"self_attn.{x}_proj.weight" for x in "qkv"))
            if "bias_qkv" in t:
                put("wqkv.bias", (q + 2 * kv,), *(f"self_attn.{x}_proj.bias" for x in "qkv"))
            if t.get("qk_norm") and "qk_norm_bare" not in t:
                put("q_norm", (t["head_dim"],), "self_attn.q_norm.weight")
                put("k_norm", (t["head_dim"],), "self_attn.k_norm.weight")
            if "attention_sinks" in t:
                put("sinks", (t["heads"], 1), "self_attn.sinks")
            put("wo", (h, q), "self_attn.o_proj.weight")
            if "bias_o" in t:
                put("wo.bias", (h,), "self_attn.o_proj.bias")
        put("norm2", (h,), "post_attention_layernorm.weight")
        if not has_experts(t, i):
            put("w13", (2 * t["ffn"], h), f"{block}.gate_proj.weight", f"{block}.up_proj.weight")
            put("w2", (h, t["ffn"]), f"{block}.down_proj.weight")
            continue
        biases = "router_bias" in t
        put("router", (t["experts"], h), f"{block}.{'router' if biases or 'router_on_input' in t else 'gate'}.weight")
        if biases:
            put("router.bias", (t["experts"],), "mlp.router.bias")
        put("experts.w13", (t["experts"] * 2 * f, h), f"{block}.experts.gate_up_proj")
        if biases:
            put("experts.w13.bias", (t["experts"] * 2 * f,), "mlp.experts.gate_up_proj_bias")
        put("experts.w2", (t["experts"] * h, f), f"{block}.experts.down_proj")
        if biases:
            put("experts.w2.bias", (t["experts"] * h,), "mlp.experts.down_proj_bias")
        if "router_on_input" in t:
            put("shared.w13", (2 * t["shared_ffn"], h), f"{block}.shared_expert.gate_proj.weight",
                f"{block}.shared_expert.up_proj.weight")
            put("shared.w2", (h, t["shared_ffn"]), f"{block}.shared_expert.down_proj.weight")
            continue
        if "shared_ffn" in t:
            put("shared.w13", (2 * t["shared_ffn"], h), "mlp.shared_experts.gate_proj.weight",
                "mlp.shared_experts.up_proj.weight")
            put("shared.w2", (h, t["shared_ffn"]), "mlp.shared_experts.down_proj.weight")
    out["norm.weight"] = ((h,), ["model.norm.weight"])
    out["head.weight"] = ((t["vocab"], h), ["lm_head.weight"])
    return out


def place(t, name, x, to):
    """Our rows x as their parameter, like `to`. gpt-oss has gate and up in turn, and both it and Llama 4 have experts'
    matrices transposed; Llama 4 rotates neighbouring columns, and we the two halves of a head."""
    e, f, h = t["experts"], t["expert_ffn"], t["hidden"]
    if "router_bias" in t and "gate_up_proj" in name:
        x = x.reshape(e, 2, f, -1).transpose(1, 2).reshape(e, 2 * f, -1)
        return (x.transpose(1, 2) if to.dim() == 3 else x).reshape(to.shape)
    if ("router_bias" in t or "router_on_input" in t) and to.dim() == 3:
        return x.reshape(e, -1, to.shape[1]).transpose(1, 2)
    if "router_on_input" in t and ("q_proj" in name or "k_proj" in name):
        return x.reshape(-1, 2, t["head_dim"] // 2, h).transpose(1, 2).reshape(to.shape)
    return x.reshape(to.shape)


def back(t, name, x):
    """The inverse of place(), flat."""
    e, f, h = t["experts"], t["expert_ffn"], t["hidden"]
    if "router_bias" in t and "gate_up_proj" in name:
        x = (x.transpose(1, 2) if x.dim() == 3 else x).reshape(e, f, 2, -1)
        return x.transpose(1, 2).flatten()
    if ("router_bias" in t or "router_on_input" in t) and x.dim() == 3:
        return x.transpose(1, 2).flatten()
    if "router_on_input" in t and ("q_proj" in name or "k_proj" in name):
        return x.reshape(-1, t["head_dim"] // 2, 2, h).transpose(1, 2).flatten()
    return x.flatten()


def network(m):
    t = m["transformer"]
    own = {}
    if m["kind"] == "DeepseekV3ForCausalLM":
        own = dict(qk_nope_head_dim=t["head_dim"] - t["rope_dim"], qk_rope_head_dim=t["rope_dim"], v_head_dim=t["v_dim"],
                   q_lora_rank=t["q_latent"], kv_lora_rank=t["kv_latent"], rope_interleave=False, n_group=1, topk_group=1,
                   n_routed_experts=t["experts"], n_shared_experts=t["shared_ffn"] // t["expert_ffn"],
                   first_k_dense_replace=t["dense_layers"], routed_scaling_factor=t["router_scale"])
    elif m["kind"] == "GptOssForCausalLM":
        own = dict(head_dim=t["head_dim"], num_local_experts=t["experts"], sliding_window=t["attention_window"],
                   layer_types=["full_attention" if (i + 1) % 2 == 0 else "sliding_attention" for i in range(t["layers"])],
                   attention_bias=True)
    elif m["kind"] == "Llama4ForCausalLM":
        own = dict(head_dim=t["head_dim"], num_local_experts=t["experts"], intermediate_size_mlp=t["ffn"],
                   interleave_moe_layer_step=t["experts_every"], attention_chunk_size=t["attention_window"],
                   use_qk_norm=True, attn_temperature_tuning=False)
    else:
        own = dict(head_dim=t["head_dim"], num_experts=t["experts"], decoder_sparse_step=t["experts_every"],
                   mlp_only_layers=[])
    config = getattr(transformers, m["kind"].replace("ForCausalLM", "TextConfig" if "Llama4" in m["kind"] else "Config"))(
        vocab_size=t["vocab"], tie_word_embeddings=False, pad_token_id=None, hidden_size=t["hidden"],
        num_hidden_layers=t["layers"], num_attention_heads=t["heads"], num_key_value_heads=t["kv_heads"],
        intermediate_size=t["expert_ffn"] if "num_local_experts" in own else t["ffn"],
        **({} if "num_local_experts" in own else dict(moe_intermediate_size=t["expert_ffn"],
                                                      norm_topk_prob=t["router_norm"])),
        num_experts_per_tok=t["experts_per_token"], rms_norm_eps=t["norm_eps"], max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": t["rope_theta"]}, **own)
    # the eager one takes its softmax in float32, but that of gpt-oss, which is the only one with sinks
    config._attn_implementation = "eager" if m["kind"] == "GptOssForCausalLM" else "sdpa"
    config._experts_implementation = "eager"  # a loop over experts: the grouped one has no float64
    return getattr(transformers, m["kind"])(config).double()


def dealt(m):
    """The experts of each token: copy j of token i of a sequence is slot j n + i of its n k slots, in the order of experts, of
    which the first have one more where they do not divide."""
    t, n = m["transformer"], m["seq_len"]
    slots = n * t["experts_per_token"]
    each, more = divmod(slots, t["experts"])
    expert = [e for e in range(t["experts"]) for _ in range(each + (e < more))]
    one = [[expert[j * n + i] for j in range(t["experts_per_token"])] for i in range(n)]
    return torch.tensor(one * m["sequences"])


def record(m):
    t = m["transformer"]
    net, parts = network(m), tensors(t)
    ids = [z % t["vocab"] for z in splitmix64(m["seed"] + fnv1a64("tokens"), m["sequences"] * m["seq_len"])]
    tokens = torch.tensor(ids).reshape(m["sequences"], m["seq_len"])
    theirs = dict(net.named_parameters())
    with torch.no_grad():
        for name, (shape, names) in parts.items():
            value, first = weight(m["seed"], name, shape).detach(), 0
            for part in names:
                to = theirs[part]
                rows = to.numel() // (shape[1] if len(shape) > 1 else 1)
                to.copy_(place(t, part, value[first:first + rows], to))
                first += rows
            assert first == shape[0], name
    used = {part for _, names in parts.values() for part in names}
    assert used == set(theirs), used ^ set(theirs)  # no parameter of theirs is left at random

    experts, real, calls = dealt(m), torch.topk, []

    def topk(x, k, dim=-1, **options):
        if x.shape != (len(ids), t["experts"]) or k != t["experts_per_token"]:
            return real(x, k, dim=dim, **options)
        calls.append(x)
        return x.gather(1, experts), experts

    with unittest.mock.patch("torch.topk", topk):
        loss = net(tokens, labels=tokens).loss
    assert len(calls) == sum(has_experts(t, i) for i in range(t["layers"]))
    loss.backward()
    rows = []
    for name, (shape, names) in parts.items():
        g = torch.cat([back(t, part, theirs[part].grad) for part in names])
        entries = sorted({z % g.numel() for z in splitmix64(fnv1a64(name), ENTRIES)})
        rows.append(dict(name=name, gradient_norm=g.norm().item(), entries=entries,
                         gradients=[g[i].item() for i in entries]))
    print(f"{m['name']}: loss {loss.item():.12f}")
    return dict(name=m["name"], **{"class": m["kind"]}, transformer={key: text(value) for key, value in t.items()},
                seed=m["seed"], sequences=m["sequences"], seq_len=m["seq_len"], tokens=ids, loss=loss.item(), tensors=rows)


def main():
    torch.set_num_threads(1)
    models = [record(m) for m in MODELS]
    path = pathlib.Path(__file__).with_name("experts.json")
    lines = []
    for m in models:  # a line for each tensor
        rows = ",\n   ".join(json.dumps(row) for row in m.pop("tensors"))
        lines.append(json.dumps(m)[:-1] + f', "tensors": [\n   {rows}]}}')
    versions = f'"torch": "{torch.__version__}",\n "transformers": "{transformers.__version__}"'
    path.write_text(f'{{\n {versions},\n "models": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
