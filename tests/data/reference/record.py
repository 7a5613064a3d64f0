#!/usr/bin/env python3
"""Records what PyTorch and Hugging Face's transformers say about a few tiny models: pytorch.json.

    pip install torch transformers numpy
    python3 tests/data/reference/record.py

The models below are built in float64 from plain torch operations and differentiated by autograd;
AdamW is torch.optim.AdamW. Where Hugging Face has the family, the same weights go into its own
implementation (built from a configuration, nothing is downloaded) and its loss and gradients are
recorded too. tests/exec/test_reference_recorded.c compares exec/reference.c with the file. Weights follow the
formula in exec/reference.h, so that they need not be stored.
"""

import json
import math
import pathlib

import numpy
import torch
import torch.nn.functional as F
import transformers

SIZES = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "max_positions")
SWITCHES = ("bias_qkv", "bias_o", "bias_ffn", "qk_norm", "qk_norm_wide", "tied_head")
ADAMW = {"lr": 0.01, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}
GATED = ("swiglu", "geglu")
STEPS = 3
ENTRIES = 4  # recorded elements of each tensor


def model(name, seed, sequences, seq_len, ignored=(), hugging_face=None, **fields):
    """fields are those of struct transformer; ignored are positions with label -1."""
    base = dict(layers=2, hidden=16, heads=4, kv_heads=4, head_dim=4, ffn=24, vocab=19,
                max_positions=0, attention_window=0, full_attention_every=0, unrotated_every=0,
                activation="swiglu", norm="rmsnorm", norm_place="before", positions="rope",
                rope_theta=10000.0, norm_eps=1e-5)
    base.update({switch: False for switch in SWITCHES})
    base.update(fields)
    return dict(name=name, seed=seed, sequences=sequences, seq_len=seq_len, ignored=ignored,
                hugging_face=hugging_face, transformer=base)


MODELS = (
    model("llama", 1, 2, 12, hugging_face="LlamaForCausalLM", kv_heads=2, rope_theta=500000.0),
    model("gpt2", 2, 2, 11, hugging_face="GPT2LMHeadModel", activation="gelu", norm="layernorm",
          positions="learned", max_positions=13, rope_theta=0.0, bias_qkv=True, bias_o=True,
          bias_ffn=True, tied_head=True, ffn=64),
    model("qwen2", 3, 1, 17, hugging_face="Qwen2ForCausalLM", layers=3, kv_heads=1, bias_qkv=True,
          tied_head=True, norm_eps=1e-6),
    model("qwen3", 4, 2, 9, hugging_face="Qwen3ForCausalLM", kv_heads=2, head_dim=6, qk_norm=True,
          norm_eps=1e-6, rope_theta=1000000.0),
    model("odd one out", 5, 3, 8, ignored=(0, 5, 6, 7, 20), layers=1, hidden=10, heads=3,
          kv_heads=3, head_dim=5, ffn=7, norm="layernorm", positions="none", rope_theta=0.0,
          bias_ffn=True, bias_o=True, norm_eps=1e-3),
    model("qk norm, GELU, learned", 6, 1, 70, hidden=8, heads=2, kv_heads=1, head_dim=6, ffn=9,
          activation="gelu", positions="learned", max_positions=70, rope_theta=0.0, qk_norm=True,
          bias_qkv=True),
    model("gemma3", 7, 2, 13, hugging_face="Gemma3ForCausalLM", layers=3, kv_heads=2, head_dim=6,
          activation="geglu", norm_place="both", qk_norm=True, attention_window=4,
          full_attention_every=3, norm_eps=1e-6),
    model("olmo2", 8, 2, 11, hugging_face="Olmo2ForCausalLM", kv_heads=2, norm_place="after",
          qk_norm=True, qk_norm_wide=True, rope_theta=500000.0),
    model("arcee", 9, 2, 10, hugging_face="ArceeForCausalLM", kv_heads=2, activation="relu2"),
    model("norms at both ends with biases, squared ReLU", 10, 1, 12, hidden=10, heads=2,
          kv_heads=1, head_dim=6, ffn=9, activation="relu2", norm="layernorm", norm_place="both",
          qk_norm=True, qk_norm_wide=True, tied_head=True),
    model("smollm3", 11, 2, 11, hugging_face="SmolLM3ForCausalLM", layers=3, kv_heads=2,
          unrotated_every=2, tied_head=True, norm_eps=1e-6, rope_theta=5000000.0),
    model("exaone4", 12, 2, 13, hugging_face="Exaone4ForCausalLM", layers=3, kv_heads=2, head_dim=6,
          norm_place="after", qk_norm=True, attention_window=4, full_attention_every=3,
          unrotated_every=3),
)


# ---- weights and tokens ----

def splitmix64(state, count):
    mask = (1 << 64) - 1
    out = []
    for i in range(count):
        z = (state + (i + 1) * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out.append(z ^ (z >> 31))
    return out


def fnv1a64(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return value


def weight(seed, name, shape):
    count = math.prod(shape)
    u = numpy.array([z >> 11 for z in splitmix64(seed + fnv1a64(name), count)], float) * 2.0**-53
    bias, norm = name.endswith(".bias"), "norm" in name and not name.endswith(".bias")
    width = 0.1 if bias or norm else math.sqrt(3 / shape[1])
    values = ((1.0 if norm else 0.0) + width * (2 * u - 1)).astype(numpy.float32)
    return torch.tensor(values.astype(float).reshape(shape), requires_grad=True)


def shapes(t):
    """Every tensor of the model: name -> shape, in the order of models/transformer.h."""
    q, kv, h = t["heads"] * t["head_dim"], t["kv_heads"] * t["head_dim"], t["hidden"]
    out = {"embedding.weight": (t["vocab"], h)}
    if t["positions"] == "learned":
        out["positions.weight"] = (t["max_positions"], h)

    def put(name, shape, bias):
        out[name + ".weight"] = shape
        if bias:
            out[name + ".bias"] = shape[:1]

    layernorm = t["norm"] == "layernorm"
    for i in range(t["layers"]):
        at = f"layers.{i}."
        before, after = t["norm_place"] != "after", t["norm_place"] != "before"
        if before:
            put(at + "norm1", (h,), layernorm)
        put(at + "wqkv", (q + 2 * kv, h), t["bias_qkv"])
        if t["qk_norm"]:
            put(at + "q_norm", (q if t["qk_norm_wide"] else t["head_dim"],), False)
            put(at + "k_norm", (kv if t["qk_norm_wide"] else t["head_dim"],), False)
        put(at + "wo", (h, q), t["bias_o"])
        if after:
            put(at + "norm1_after", (h,), layernorm)
        if before:
            put(at + "norm2", (h,), layernorm)
        if t["activation"] in GATED:
            put(at + "w13", (2 * t["ffn"], h), t["bias_ffn"])
        else:
            put(at + "w1", (t["ffn"], h), t["bias_ffn"])
        put(at + "w2", (h, t["ffn"]), t["bias_ffn"])
        if after:
            put(at + "norm2_after", (h,), layernorm)
    put("norm", (h,), layernorm)
    if not t["tied_head"]:
        out["head.weight"] = (t["vocab"], h)
    return out


# ---- the model, from plain operations ----

def rms(x, w, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w


def rope(x, theta):
    """x (sequences, heads, seq_len, dim)"""
    half = x.shape[-1] // 2
    turn = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * turn
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def logits(t, w, tokens):
    eps, dim = t["norm_eps"], t["head_dim"]

    def norm(x, name):
        if name + ".weight" not in w:  # a branch without a norm at this end
            return x
        if t["norm"] == "rmsnorm":
            return rms(x, w[name + ".weight"], eps)
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], eps)

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))

    n, s = tokens.shape
    x = w["embedding.weight"][tokens]
    if t["positions"] == "learned":
        x = x + w["positions.weight"][:s]
    for i in range(t["layers"]):
        at = f"layers.{i}."
        hidden = torch.ones(s, s, dtype=torch.bool).triu(1)
        every = t["full_attention_every"]
        if t["attention_window"] and not (every and (i + 1) % every == 0):
            hidden |= torch.ones(s, s, dtype=torch.bool).tril(-t["attention_window"])
        qkv = linear(norm(x, at + "norm1"), at + "wqkv")
        q, k, v = qkv.split([t["heads"] * dim, t["kv_heads"] * dim, t["kv_heads"] * dim], -1)
        if t["qk_norm_wide"]:
            q, k = rms(q, w[at + "q_norm.weight"], eps), rms(k, w[at + "k_norm.weight"], eps)
        q, k, v = (y.reshape(n, s, -1, dim).transpose(1, 2) for y in (q, k, v))
        if t["qk_norm"] and not t["qk_norm_wide"]:
            q, k = rms(q, w[at + "q_norm.weight"], eps), rms(k, w[at + "k_norm.weight"], eps)
        turns = not t["unrotated_every"] or (i + 1) % t["unrotated_every"]
        if t["positions"] == "rope" and turns:
            q, k = rope(q, t["rope_theta"]), rope(k, t["rope_theta"])
        k, v = (y.repeat_interleave(t["heads"] // t["kv_heads"], 1) for y in (k, v))
        score = (q @ k.transpose(-1, -2) / math.sqrt(dim)).masked_fill(hidden, -math.inf)
        o = (score.softmax(-1) @ v).transpose(1, 2).reshape(n, s, -1)
        x = x + norm(linear(o, at + "wo"), at + "norm1_after")
        y = norm(x, at + "norm2")
        if t["activation"] in GATED:
            gate, up = linear(y, at + "w13").chunk(2, -1)
            gate = F.silu(gate) if t["activation"] == "swiglu" else F.gelu(gate, approximate="tanh")
            y = gate * up
        else:
            y = linear(y, at + "w1")
            y = F.relu(y) ** 2 if t["activation"] == "relu2" else F.gelu(y, approximate="tanh")
        x = x + norm(linear(y, at + "w2"), at + "norm2_after")
    x = norm(x, "norm")
    return F.linear(x, w["embedding.weight" if t["tied_head"] else "head.weight"])


def mean_loss(t, w, tokens, labels):
    return F.cross_entropy(logits(t, w, tokens).flatten(0, 1), labels.flatten(), ignore_index=-1)


# ---- Hugging Face's implementations ----

def hugging_face(kind, t, w, tokens):
    """Loss by its own shift of the labels, and gradients under our names."""
    common = dict(vocab_size=t["vocab"], tie_word_embeddings=t["tied_head"],
                  pad_token_id=None)  # the row of such a token would get no gradient
    if kind == "GPT2LMHeadModel":
        config = transformers.GPT2Config(
            n_embd=t["hidden"], n_layer=t["layers"], n_head=t["heads"], n_inner=t["ffn"],
            n_positions=t["max_positions"], layer_norm_epsilon=t["norm_eps"], resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0, **common)
    else:
        if kind == "Gemma3ForCausalLM":
            kinds = [(i + 1) % t["full_attention_every"] for i in range(t["layers"])]
            base = {"rope_type": "default", "rope_theta": t["rope_theta"]}
            common.update(query_pre_attn_scalar=t["head_dim"], sliding_window=t["attention_window"],
                          layer_types=["sliding_attention" if k else "full_attention" for k in kinds],
                          rope_parameters={"sliding_attention": base, "full_attention": base})
        else:
            common.update(rope_parameters={"rope_type": "default", "rope_theta": t["rope_theta"]})
        if kind == "SmolLM3ForCausalLM":
            common.update(no_rope_layer_interval=t["unrotated_every"])
        if kind == "Exaone4ForCausalLM":  # layers with a window rotate
            common.update(sliding_window=t["attention_window"],
                          sliding_window_pattern=t["full_attention_every"])
        name = {"Gemma3ForCausalLM": "Gemma3TextConfig"}.get(kind, kind.replace("ForCausalLM", "Config"))
        config = getattr(transformers, name)(
            hidden_size=t["hidden"], num_hidden_layers=t["layers"], head_dim=t["head_dim"],
            num_attention_heads=t["heads"], num_key_value_heads=t["kv_heads"],
            intermediate_size=t["ffn"], rms_norm_eps=t["norm_eps"], max_position_embeddings=64,
            **common)
    config._attn_implementation = "sdpa"  # the eager one takes its softmax in float32
    net = getattr(transformers, kind)(config).double()

    # Our name -> (parameters in order of our rows, transposed?)
    parts = {}
    if kind == "GPT2LMHeadModel":
        parts["embedding.weight"], parts["positions.weight"] = ["transformer.wte.weight"], [
            "transformer.wpe.weight"]
        names = {"norm1": "ln_1", "wqkv": "attn.c_attn", "wo": "attn.c_proj", "norm2": "ln_2",
                 "w1": "mlp.c_fc", "w2": "mlp.c_proj"}
        for i in range(t["layers"]):
            for ours, theirs in names.items():
                for end in ("weight", "bias"):
                    parts[f"layers.{i}.{ours}.{end}"] = [f"transformer.h.{i}.{theirs}.{end}"]
        for end in ("weight", "bias"):
            parts[f"norm.{end}"] = [f"transformer.ln_f.{end}"]
    else:
        parts["embedding.weight"] = ["model.embed_tokens.weight"]
        names = {"norm1.weight": ["input_layernorm.weight"],
                 "wqkv.weight": [f"self_attn.{x}_proj.weight" for x in "qkv"],
                 "wqkv.bias": [f"self_attn.{x}_proj.bias" for x in "qkv"],
                 "q_norm.weight": ["self_attn.q_norm.weight"],
                 "k_norm.weight": ["self_attn.k_norm.weight"],
                 "wo.weight": ["self_attn.o_proj.weight"],
                 "norm2.weight": ["post_attention_layernorm.weight"],
                 "w13.weight": ["mlp.gate_proj.weight", "mlp.up_proj.weight"],
                 "w1.weight": ["mlp.up_proj.weight"],
                 "w2.weight": ["mlp.down_proj.weight"],
                 "norm1_after.weight": ["post_attention_layernorm.weight"],
                 "norm2_after.weight": ["post_feedforward_layernorm.weight"]}
        if t["norm_place"] == "both":
            names["norm2.weight"] = ["pre_feedforward_layernorm.weight"]
        for i in range(t["layers"]):
            for ours, theirs in names.items():
                if f"layers.{i}.{ours}" in w:
                    parts[f"layers.{i}.{ours}"] = [f"model.layers.{i}.{x}" for x in theirs]
        parts["norm.weight"], parts["head.weight"] = ["model.norm.weight"], ["lm_head.weight"]

    def turned(name):  # GPT-2 keeps (inputs, outputs)
        return kind == "GPT2LMHeadModel" and name.endswith(".weight") and "layers" in name \
            and "norm" not in name

    # Gemma's norms multiply by 1 + weight, and its embedding by the root of the width.
    gemma = kind == "Gemma3ForCausalLM"
    scale = math.sqrt(t["hidden"]) if gemma else 1.0
    theirs = dict(net.named_parameters())
    with torch.no_grad():
        for name, value in w.items():
            value = value.t() if turned(name) else value
            value = value - 1 if gemma and "norm" in name else value
            value = value / scale if name == "embedding.weight" else value
            first = 0
            for part in parts[name]:
                rows = theirs[part].shape[0]
                theirs[part].copy_(value[first:first + rows])
                first += rows
            assert first == value.shape[0], name
    used = {part for name in w for part in parts[name]}
    assert used == set(theirs), set(theirs) ^ used  # no parameter of theirs is left at random

    loss = net(tokens, labels=tokens).loss
    loss.backward()
    gradients = {}
    for name in w:
        g = torch.cat([theirs[part].grad for part in parts[name]])
        g = g / scale if name == "embedding.weight" else g
        gradients[name] = g.t() if turned(name) else g
    return loss.item(), gradients


# ---- recording ----

def text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def record(m):
    t = m["transformer"]
    count = m["sequences"] * m["seq_len"]
    ids = [z % t["vocab"] for z in splitmix64(m["seed"] + fnv1a64("tokens"), count)]
    tokens = torch.tensor(ids).reshape(m["sequences"], m["seq_len"])
    labels = torch.cat([tokens[:, 1:], torch.full((m["sequences"], 1), -1)], 1)
    for i in m["ignored"]:
        labels.view(-1)[i] = -1
    w = {name: weight(m["seed"], name, shape) for name, shape in shapes(t).items()}
    start = {name: value.detach().clone() for name, value in w.items()}
    rows = {name: {"name": name} for name in w}
    chosen = {name: sorted({z % value.numel() for z in splitmix64(fnv1a64(name), ENTRIES)})
              for name, value in w.items()}

    optimizer = torch.optim.AdamW(w.values(), lr=ADAMW["lr"], eps=ADAMW["eps"],
                                  betas=(ADAMW["beta1"], ADAMW["beta2"]),
                                  weight_decay=ADAMW["weight_decay"])
    losses = []
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = mean_loss(t, w, tokens, labels)
        loss.backward()
        losses.append(loss.item())
        if step == 1:
            first = {name: value.grad.clone() for name, value in w.items()}
        optimizer.step()
        if step in (1, STEPS):
            for name, value in w.items():
                new = value.detach()
                rows[name][f"moved_{step}"] = (new - start[name]).norm().item()
                rows[name][f"params_{step}"] = [new.flatten()[i].item() for i in chosen[name]]
    for name in w:
        rows[name].update(gradient_norm=first[name].norm().item(), entries=chosen[name],
                          gradients=[first[name].flatten()[i].item() for i in chosen[name]])

    out = dict(name=m["name"], transformer={key: text(value) for key, value in t.items()},
               seed=m["seed"], sequences=m["sequences"], seq_len=m["seq_len"], tokens=ids,
               labels=labels.flatten().tolist(), losses=losses)
    if m["hugging_face"]:
        theirs, gradients = hugging_face(m["hugging_face"], t, start, tokens)
        worst = max(((gradients[n] - first[n]).norm() / first[n].norm()).item() for n in w)
        print(f"{m['name']}: loss {losses[0]:.12f}, {m['hugging_face']} {theirs:.12f}, "
              f"gradients differ by {worst:.2g}")
        assert abs(theirs - losses[0]) < 1e-5 * losses[0] and worst < 1e-4
        out["hugging_face"] = {"class": m["hugging_face"], "loss": theirs}
        for name in w:
            rows[name]["hugging_face_gradient_norm"] = gradients[name].norm().item()
    else:
        print(f"{m['name']}: loss {losses[0]:.12f}")
    out["tensors"] = list(rows.values())
    return out


def main():
    torch.set_num_threads(1)
    data = dict(torch=torch.__version__, transformers=transformers.__version__, adamw=ADAMW,
                steps=STEPS, models=[record(m) for m in MODELS])
    path = pathlib.Path(__file__).with_name("pytorch.json")
    lines = json.dumps(data, indent=1)
    # One line for each list of numbers.
    out, depth = [], 0
    for line in lines.splitlines():
        stripped = line.strip()
        if depth and out:
            out[-1] += (" " if not stripped.startswith("]") and not out[-1].endswith("[")
                        else "") + stripped
            depth -= stripped.startswith("]")
        else:
            out.append(line)
            depth = int(line.rstrip().endswith("[") and "models" not in line
                        and "tensors" not in line)
    path.write_text("\n".join(out) + "\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
