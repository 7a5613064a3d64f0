#!/usr/bin/env python3
"""Records the bytes that PyTorch keeps of one layer whose weights are frozen and whose linear layers have PEFT's adapters.

    adapter_bytes.py > tests/data/pytorch/adapters.csv      (torch, transformers and peft; no GPU)

A layer of Transformers in bf16 with adapters in fp32, which are PEFT's default, runs under autocast on fake CUDA tensors:
shapes without data. `kept` is bytes a token, with the layer's input, and without the weights, their casts, and the cosines and sines.
"""
import csv
import sys
from unittest import mock

import torch
import transformers
from peft import LoraConfig
from peft.tuners.lora import layer as lora
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

h, f, H, HK, d, T, RANK = 640, 1792, 8, 2, 64, 1024, 16
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def flash(Q, K, V, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, **_):
    Q, K, V = (t.to(torch.bfloat16) for t in (Q, K, V))
    return torch.ops.aten._scaled_dot_product_flash_attention(Q, K, V, 0.0, True, scale=scale)[0]


def layer_of(name):
    shape = dict(hidden_size=h, intermediate_size=f, num_attention_heads=H, num_key_value_heads=HK, head_dim=d,
                 num_hidden_layers=1, attn_implementation="sdpa")
    if name == "llama":
        from transformers.models.llama.modeling_llama import LlamaDecoderLayer as Layer
        config = transformers.LlamaConfig(**shape)
    elif name == "qwen3":
        from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer as Layer
        config = transformers.Qwen3Config(**shape)
    else:
        from transformers.models.gemma3.modeling_gemma3 import Gemma3DecoderLayer as Layer
        config = transformers.Gemma3TextConfig(**shape, sliding_window_pattern=1)
    return Layer(config, 0)


def add_adapters(layer, targets):
    config = LoraConfig(r=RANK, target_modules=targets)
    for name, module in list(layer.named_modules()):
        if name.split(".")[-1] in targets:
            parent, _, leaf = name.rpartition(".")
            with mock.patch.object(lora.LoraLayer, "_move_adapter_to_device_of_base_layer", lambda *_, **__: None):
                setattr(layer.get_submodule(parent), leaf,
                        lora.Linear(module, "default", r=RANK, config=config, init_lora_weights=False))
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_("lora_" in name)


def kept_of(name, targets):
    kept = {}

    def pack(t):
        if T in t.shape and tuple(t.shape) != (1, T, d) and t.dim() > 1:
            kept[t.untyped_storage()._cdata] = t
        return t

    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        layer = layer_of(name).train()
        torch.set_default_dtype(torch.float32)
        add_adapters(layer, targets)
        x = torch.empty(1, T, h, dtype=torch.bfloat16, requires_grad=True)
        angles = torch.empty(1, T, d, dtype=torch.bfloat16), torch.empty(1, T, d, dtype=torch.bfloat16)
        aside = {t.untyped_storage()._cdata for t in (*layer.parameters(), *angles)}
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", torch.bfloat16)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            layer(x + 0, position_embeddings=angles)
        torch.set_autocast_enabled("cuda", False)
        torch.clear_autocast_cache()
    alive = {k: t for k, t in kept.items() if k not in aside}
    unsqueezed = sum(t.untyped_storage().nbytes() for t in alive.values() if tuple(t.shape) == (1, 1, T, d))
    return (sum(t.untyped_storage().nbytes() for t in alive.values()) - unsqueezed) // T


functional.scaled_dot_product_attention = flash
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(("layer", "targets", "kept"))
for layer in ("llama", "qwen3", "gemma3"):
    for targets in (ALL, ["q_proj", "v_proj"], ["k_proj", "down_proj"]):
        out.writerow((layer, " ".join(t.removesuffix("_proj") for t in targets), kept_of(layer, targets)))
