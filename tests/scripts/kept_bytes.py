#!/usr/bin/env python3
"""Records the bytes that PyTorch keeps of one layer from its forward to its backward, and the most that its backward holds.

    kept_bytes.py > tests/data/pytorch/kept.csv      (torch and transformers; no GPU)

Layers run on fake tensors: shapes without data. What is kept without checkpointing is measured on fake CUDA tensors, so
CUDA's dispatch and lists of autocast apply. Backward passes and compiled layers run on fake CPU tensors, with the
operators of CUDA called by name, since autograd refuses fake CUDA tensors without a GPU. Each width is its own number, so
that a tensor's bytes name its shape. `kept` and `peak` are bytes a token; `peak` lies above what is kept and the gradient of
the layer's output. The layer's input counts as kept. On fake CPU tensors norms are decomposed, and casts of weights are
alive: what they keep more than fake CUDA tensors, without the layer's input, is subtracted from the peak of what is recomputed.
"""
import csv
import os
import subprocess
import sys
import weakref

h, f, H, HK, d, T = 640, 1792, 8, 2, 64, 1024
q, kv = H * d, HK * d
LAYERS = ("titan", "llama", "qwen3", "gemma3", "gpt2", "phi3")


def run(device):
    import torch
    import torch.nn as nn
    from torch.nn import functional
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, CheckpointPolicy
    import transformers

    aten = torch.ops.aten

    def flash(Q, K, V, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, **_):
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else Q.dtype
        return aten._scaled_dot_product_flash_attention(Q.to(dtype), K.to(dtype), V.to(dtype), 0.0, True, scale=scale)[0]

    functional.scaled_dot_product_attention = flash
    if device == "cpu":
        functional.rms_norm = lambda x, shape, weight=None, eps=None: aten._fused_rms_norm.default(x, list(shape), weight, eps)[0]

    class Autocast:
        def __init__(self, on):
            self.on = on

        def __enter__(self):
            if self.on:
                torch.set_autocast_enabled(device, True)
                torch.set_autocast_dtype(device, torch.bfloat16)
                torch.autocast_increment_nesting()

        def __exit__(self, *_):
            if self.on:
                torch.autocast_decrement_nesting()
                torch.set_autocast_enabled(device, False)
                torch.clear_autocast_cache()

    class Titan(nn.Module):
        """A layer as torchtitan's llama3: F.rms_norm, three projections, RoPE in fp32, silu(w1) w3."""

        def __init__(self, dtype):
            super().__init__()
            linear = lambda i, o: nn.Linear(i, o, bias=False, device=device, dtype=dtype)
            self.n1, self.n2 = (nn.RMSNorm(h, 1e-5, device=device, dtype=dtype) for _ in "12")
            self.wq, self.wk, self.wv, self.wo = linear(h, q), linear(h, kv), linear(h, kv), linear(q, h)
            self.w1, self.w3, self.w2 = linear(h, f), linear(h, f), linear(f, h)

        def aux(self):
            return torch.empty(1, T, 1, d, device=device), torch.empty(1, T, 1, d, device=device)

        def forward(self, x, angles):
            b, s, _ = x.shape
            a = self.n1(x)
            Q, K, V = (w(a).view(b, s, -1, d) for w in (self.wq, self.wk, self.wv))
            half = lambda t: torch.cat((-t[..., d // 2:], t[..., :d // 2]), -1)
            Q, K = ((t.float() * angles[0] + half(t.float()) * angles[1]).type_as(t) for t in (Q, K))
            o = functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (Q, K, V)), is_causal=True)
            y = x + self.wo(o.transpose(1, 2).contiguous().view(b, s, -1))
            z = self.n2(y)
            return y + self.w2(functional.silu(self.w1(z)) * self.w3(z))

    class Hub(nn.Module):
        """A layer of transformers."""

        def __init__(self, dtype, kind):
            super().__init__()
            before = torch.get_default_dtype()
            torch.set_default_dtype(dtype)
            self.kind, self.dtype = kind, dtype
            sizes = dict(hidden_size=h, intermediate_size=f, num_attention_heads=H, num_key_value_heads=HK, head_dim=d,
                         num_hidden_layers=1, vocab_size=64, attn_implementation="sdpa")
            with torch.device(device):
                if kind == "llama":
                    from transformers.models.llama.modeling_llama import LlamaDecoderLayer as layer
                    self.m = layer(transformers.LlamaConfig(**sizes), 0)
                elif kind == "qwen3":
                    from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer as layer
                    self.m = layer(transformers.Qwen3Config(**sizes), 0)
                elif kind == "gemma3":
                    from transformers.models.gemma3.modeling_gemma3 import Gemma3DecoderLayer as layer
                    self.m = layer(transformers.Gemma3TextConfig(**sizes), 0)
                elif kind == "phi3":
                    from transformers.models.phi3.modeling_phi3 import Phi3DecoderLayer as layer
                    self.m = layer(transformers.Phi3Config(**sizes, pad_token_id=0, resid_pdrop=0.0), 0)
                else:
                    from transformers.models.gpt2.modeling_gpt2 import GPT2Block as layer
                    self.m = layer(transformers.GPT2Config(n_embd=h, n_inner=f, n_head=h // d, attn_implementation="sdpa",
                                                           resid_pdrop=0.0, attn_pdrop=0.0), 0)
            torch.set_default_dtype(before)

        def aux(self):
            return tuple(torch.empty(1, T, d, device=device, dtype=self.dtype) for _ in "12")

        def forward(self, x, angles):
            y = self.m(x) if self.kind == "gpt2" else self.m(x, position_embeddings=angles)
            return y if isinstance(y, torch.Tensor) else y[0]

    def make(name, dtype):
        return Titan(dtype) if name == "titan" else Hub(dtype, name)

    class Track(TorchDispatchMode):
        """Bytes of the storages that are alive, watched at every operator's outputs."""

        def __init__(self, ignore):
            super().__init__()
            self.ignore = {t.untyped_storage()._cdata for t in ignore}
            self.live, self.now, self.most = {}, 0, 0

        def drop(self, key):
            self.now -= self.live.pop(key, 0)

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for t in tree_leaves(result):
                if isinstance(t, torch.Tensor):
                    storage = t.untyped_storage()
                    key = storage._cdata
                    if key not in self.live and key not in self.ignore:
                        self.live[key] = storage.nbytes()
                        self.now += storage.nbytes()
                        self.most = max(self.most, self.now)
                        weakref.finalize(storage, self.drop, key)
            return result

    def fake():
        return FakeTensorMode(allow_non_fake_inputs=True)

    def kept_of(name, dtype):
        with fake():
            m = make(name, dtype)
            x = torch.empty(1, T, h, device=device, dtype=dtype, requires_grad=True)
            angles, kept = m.aux(), {}
            seen = {t.untyped_storage()._cdata for t in [*m.parameters(), *m.buffers(), *tree_leaves(angles)]}

            def pack(t):
                storage = t.untyped_storage()
                if storage._cdata not in seen and T in t.shape:  # the rest are casts of weights
                    kept[storage._cdata] = (storage.nbytes(), t)
                return t

            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t), Autocast(dtype == torch.float32):
                m(x, angles)
            own = x.untyped_storage()
            total = sum(n for n, _ in kept.values())
            return total / T, (total - (own.nbytes() if own._cdata in kept else 0)) / T

    def policy():
        from torch._functorch.partitioners import get_default_op_list
        save = {op.default for op in get_default_op_list().compute_intensive_ops} | {aten.linear.default}
        count = {}

        def choose(ctx, function, *args, **kwargs):
            if function in (aten.mm.default, aten.linear.default):
                count[ctx.is_recompute] = count.get(ctx.is_recompute, 0) + 1
                if count[ctx.is_recompute] % 2 == 0:
                    return CheckpointPolicy.PREFER_RECOMPUTE
            return CheckpointPolicy.MUST_SAVE if function in save else CheckpointPolicy.PREFER_RECOMPUTE
        return create_selective_checkpoint_contexts(choose)

    def peak_of(name, dtype, mode):
        torch.autograd.set_multithreading_enabled(False)
        with fake():
            m = make(name, dtype)
            x = torch.empty(1, T, h, device=device, dtype=dtype).requires_grad_()
            angles = m.aux()
            track = Track([*m.parameters(), *m.buffers(), *tree_leaves(angles), x])
            options = dict(use_reentrant=False, preserve_rng_state=False)
            if mode == "selective-op":
                options["context_fn"] = policy
            with track:
                with Autocast(dtype == torch.float32):
                    y = m(x, angles) if mode == "keep" else checkpoint(m, x, angles, **options)
                kept = track.now - y.untyped_storage().nbytes()
                g = torch.empty_like(y)
                track.most = before = track.now
                y.backward(g)
            return kept / T, (track.most - before) / T

    def layer_norm(x, shape, weight, bias, eps):
        """LayerNorm as torch/_refs decomposes it, with CUDA's fp32 statistics: for a CPU it casts them to x's dtype."""
        axes = list(range(x.ndim - len(shape), x.ndim))
        y, mean, rstd = torch._refs._normalize(x, axes, eps)
        return (y * weight + bias).to(x.dtype), mean, rstd

    def compiled_of(name, dtype):
        from functorch.compile import aot_function, min_cut_rematerialization_partition
        from torch._inductor.decomposition import select_decomp_table
        with fake():
            m = make(name, dtype)
            x = torch.empty(1, T, h, device=device, dtype=dtype).requires_grad_()
            angles, weights, graph = m.aux(), dict(m.named_parameters()), {}

            def call(x, angles, *w):
                with Autocast(dtype == torch.float32):
                    return torch.func.functional_call(m, dict(zip(weights, w)), (x, angles))

            def forward(g, _):
                graph["forward"] = g
                return g
            aot_function(call, forward, lambda g, _: g, partition_fn=min_cut_rematerialization_partition,
                         decompositions={**select_decomp_table(), aten.native_layer_norm.default: layer_norm})(x, angles, *weights.values())
            outputs, seen, total = list(graph["forward"].graph.find_nodes(op="output"))[0].args[0], set(), 0
            for node in outputs[1:]:
                t = node.meta.get("val") if node is not None else None
                if not isinstance(t, torch.Tensor) or T not in t.shape:
                    continue
                if node.op == "placeholder" and tuple(t.shape) != (1, T, h):
                    continue
                key = t.untyped_storage()._cdata
                total += 0 if key in seen else t.untyped_storage().nbytes()
                seen.add(key)
            return total / T

    write = csv.writer(sys.stdout, lineterminator="\n").writerow
    for name in LAYERS:
        for mode, dtype in (("bf16", torch.bfloat16), ("autocast", torch.float32)):
            if device == "cuda":
                kept, made = kept_of(name, dtype)
                write([name, mode, "eager", "keep", f"{kept:g}", "", f"{made:g}"])
                continue
            for recompute in ("keep", "selective-op", "full"):
                try:
                    kept, peak = peak_of(name, dtype, recompute)
                except Exception as error:  # autograd of some layers refuses fake tensors
                    print(f"{name} {mode} {recompute}: {error!r:.200}", file=sys.stderr)
                    continue
                if recompute == "keep":
                    beside = kept - float(os.environ[f"KEPT_{name}_{mode}"])
                else:
                    kept += h * dtype.itemsize
                    peak -= beside
                write([name, mode, "eager", recompute, "" if recompute == "keep" else f"{kept:g}", f"{peak:g}"])
            try:
                write([name, mode, "compiled", "keep", f"{compiled_of(name, dtype):g}", ""])
            except Exception as error:
                print(f"{name} {mode} compiled: {error!r:.200}", file=sys.stderr)


if len(sys.argv) > 1:
    run(sys.argv[1])
else:
    print("layer,dtype,kernels,activations,kept,peak", flush=True)
    known = dict(os.environ)
    for where in ("cuda", "cpu"):
        rows = subprocess.run([sys.executable, __file__, where], check=True, env=known, stdout=subprocess.PIPE, text=True).stdout
        for row in csv.reader(rows.splitlines()):
            print(*row[:6], sep=",")
            known[f"KEPT_{row[0]}_{row[1]}"] = row[-1]
