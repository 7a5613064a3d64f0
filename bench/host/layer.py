"""Times one layer of Megatron-Core on the host, module by module, where CUDA and cuBLAS return at once (bench/host/run).

Prints, in microseconds and in times of torch.nn.Linear on this core, what each module takes by itself (without what it
calls that has a line of its own), the kernels it launches and the products it calls. Forward lines begin with f,
backward lines with b; what is in no line of the backward is autograd's own time. All times are the tenth percentile."""
import argparse
import ctypes
import gc
import os
import time

import numpy as np
import torch
import torch.distributed
import torch.nn.functional as F
from torch.testing._internal.distributed.fake_pg import FakeStore

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--products", choices=["bf16", "mxfp8", "fp8-tensor"], default="bf16")
parser.add_argument("--ep", type=int, default=8, help="ranks that 128 experts are spread over")
parser.add_argument("--dense", action="store_true", help="a layer without experts")
parser.add_argument("--sigmoid", action="store_true", help="the router of DeepSeek-V3")
parser.add_argument("--router-by-operators", action="store_true")
parser.add_argument("--steps", type=int, default=30)
options = parser.parse_args()

EXPERTS, CHOSEN, TOKENS, HIDDEN = 128, 8, 4096, 2048
COUNTERS = ("launches", "products", "copies", "syncs")

nothing = ctypes.CDLL(None)
nothing.stub_set_device(b"nothing", 12080, 10, 0, 148, ctypes.c_size_t(180 << 30))
counters = [ctypes.c_long.in_dll(nothing, "nothing_" + name) for name in COUNTERS]
os.environ.update(RANK="0", WORLD_SIZE=str(options.ep), LOCAL_RANK="0")
torch.distributed.init_process_group("fake", rank=0, world_size=options.ep, store=FakeStore())

from megatron.core import parallel_state
from megatron.core.fp8_utils import get_fp8_context
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_with_transformer_engine_spec
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer import attention
from megatron.core.transformer.moe import token_dispatcher
from megatron.core.transformer.spec_utils import build_module
from megatron.core.transformer.transformer_config import TransformerConfig
import transformer_engine.pytorch.cpp_extensions.fused_attn as fused_attention
import transformer_engine_torch

parallel_state.initialize_model_parallel(
    expert_model_parallel_size=options.ep, expert_tensor_parallel_size=1, create_gloo_process_groups=False)
model_parallel_cuda_manual_seed(1)

settings = dict(
    num_layers=1, bf16=True, params_dtype=torch.bfloat16, hidden_size=HIDDEN, num_attention_heads=32, num_query_groups=4,
    kv_channels=128, ffn_hidden_size=6144, qk_layernorm=True, normalization="RMSNorm", add_bias_linear=False,
    gated_linear_unit=True, activation_func=F.silu, hidden_dropout=0.0, attention_dropout=0.0, apply_rope_fusion=True,
    bias_activation_fusion=True, bias_dropout_fusion=True, masked_softmax_fusion=True, gradient_accumulation_fusion=True)
if not options.dense:
    settings.update(
        num_moe_experts=EXPERTS, moe_router_topk=CHOSEN, moe_ffn_hidden_size=768, moe_grouped_gemm=True,
        moe_token_dispatcher_type="alltoall", moe_permute_fusion=True, expert_model_parallel_size=options.ep,
        expert_tensor_parallel_size=1, moe_router_load_balancing_type="aux_loss", moe_aux_loss_coeff=1e-3,
        moe_router_force_load_balancing=True, moe_router_fusion=not options.router_by_operators)
if options.sigmoid:
    settings.update(
        moe_router_score_function="sigmoid", moe_router_enable_expert_bias=True, moe_router_num_groups=8,
        moe_router_group_topk=4, moe_router_pre_softmax=True, moe_router_topk_scaling_factor=2.5, moe_router_dtype="fp32")
if options.products != "bf16":
    mx = options.products == "mxfp8"
    settings.update(fp8="e4m3" if mx else "hybrid", fp8_recipe="mxfp8" if mx else "tensorwise")
config = TransformerConfig(**settings)
layer = build_module(
    get_gpt_layer_with_transformer_engine_spec(
        num_experts=config.num_moe_experts, moe_grouped_gemm=not options.dense, qk_layernorm=True),
    config=config, layer_number=1).cuda()
layer.train()


def add_hooks():
    """Gives each weight a gradient buffer and a hook, as Megatron-Core's data parallelism does."""
    accumulators = []
    for parameter in layer.parameters():
        parameter.main_grad = torch.empty_like(parameter, dtype=torch.bfloat16)
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]

        def hook(*_, parameter=parameter):
            if parameter.grad is not None and (
                    not parameter.grad_added_to_main_grad or getattr(parameter, "zero_out_wgrad", False)):
                parameter.main_grad.add_(parameter.grad.data)
            parameter.grad = None

        accumulator.register_hook(hook)
        accumulators.append(accumulator)
    return accumulators


accumulators = add_hooks()


def deal_evenly():
    """Replaces the counts that the host reads, which no kernel has computed, by even ones."""
    dispatcher = token_dispatcher.MoEAlltoAllTokenDispatcher
    original = dispatcher._maybe_dtoh_and_synchronize
    rows = TOKENS * CHOSEN

    def synchronize(self, point, tokens_per_expert=None):
        counts = original(self, point, tokens_per_expert)
        for name in ("input_splits", "output_splits"):
            splits = getattr(self, name, None)
            if isinstance(splits, np.ndarray):
                setattr(self, name, np.full(len(splits), rows // len(splits)))
        if isinstance(getattr(self, "output_splits_tp", None), np.ndarray):
            self.output_splits_tp = np.full(len(self.output_splits_tp), rows // len(self.output_splits_tp))
        if isinstance(self.num_out_tokens, torch.Tensor):
            self.num_out_tokens = rows
        of_ranks = self.num_global_tokens_per_local_expert
        if of_ranks is not None and not of_ranks.is_cuda:
            self.num_global_tokens_per_local_expert = torch.full_like(of_ranks, rows // of_ranks.numel())
        if counts is not None and not counts.is_cuda:
            counts = torch.full_like(counts, rows // counts.numel())
        return counts

    dispatcher._maybe_dtoh_and_synchronize = synchronize


def leave_out_attention_kernels():
    """cuDNN plans its kernels for a real device: in their place are allocations of what they write."""
    def forward(*arguments, **_):
        query = next(a for a in arguments if isinstance(a, torch.Tensor) and a.dim() >= 3)
        sums = torch.empty(query.shape[1], query.shape[2], query.shape[0], 1, device="cuda")
        return [torch.empty_like(query), sums, torch.empty(2, device="cuda", dtype=torch.int64)]

    def backward(*arguments, **_):
        operands = [a for a in arguments if isinstance(a, torch.Tensor) and a.dim() >= 3]
        return [torch.empty_like(a) for a in operands[:3]] + [None, None]

    backend = transformer_engine_torch.NVTE_Fused_Attn_Backend.NVTE_F16_arbitrary_seqlen
    transformer_engine_torch.get_fused_attn_backend = lambda *_, **__: backend
    fused_attention.tex.fused_attn_fwd = forward
    fused_attention.tex.fused_attn_bwd = backward


# What the timing of a call adds to its caller, in seconds: two readings of the clock and of the counters.
TIMING_S = 2.2e-6
calls = {}  # by label: (step, seconds without calls inside, counters)
children_s = []  # of the calls that are under way: seconds of the calls inside
current_step = 0


def timed(function, label):
    def call(*arguments, **named):
        before = [c.value for c in counters]
        children_s.append(0.0)
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            seconds = time.perf_counter() - start
            own = seconds - children_s.pop()
            if children_s:
                children_s[-1] += seconds + TIMING_S
            counted = [c.value - b for c, b in zip(counters, before)]
            calls.setdefault(label, []).append((current_step, own, counted))
    return call


def wrap(owner, name, label=None):
    setattr(owner, name, timed(getattr(owner, name), "f " + (label or name)))


def wrap_forward():
    attn, mlp = layer.self_attention, layer.mlp
    wrap(layer, "_forward_attention", "attention rest")
    wrap(layer, "_forward_mlp", "mlp rest")
    wrap(attn, "forward", "self_attention rest")
    wrap(attn, "get_query_key_value_tensors", "query, key, value rest")
    wrap(attention, "apply_rotary_pos_emb", "rope")
    for name in ("linear_qkv", "q_layernorm", "k_layernorm", "core_attention", "linear_proj"):
        wrap(getattr(attn, name), "forward", name)
    wrap(layer.pre_mlp_layernorm, "forward", "pre_mlp_layernorm")
    for name in ("self_attn_bda", "mlp_bda"):
        def bda(*arguments, make=getattr(layer, name)):
            return timed(make(*arguments), "f bias, dropout, add")
        setattr(layer, name, bda)
    wrap(mlp, "forward", "mlp forward rest")
    products = mlp if options.dense else mlp.experts
    for name in ("linear_fc1", "linear_fc2"):
        wrap(getattr(products, name), "forward", name)
    if options.dense:
        return
    wrap(mlp.router, "forward", "router")
    wrap(mlp.experts, "forward", "experts rest")
    for name in ("dispatch_preprocess", "preprocess", "token_dispatch", "dispatch_postprocess", "combine_preprocess",
                 "token_combine", "combine_postprocess"):
        wrap(mlp.token_dispatcher, name)
    for name in ("permute", "unpermute", "sort_chunks_by_idxs", "all_to_all"):
        wrap(token_dispatcher, name)


def wrap_backward():
    waiting = [torch.autograd.Function]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            backward = kind.__dict__.get("backward")
            if isinstance(backward, staticmethod):
                kind.backward = staticmethod(timed(backward.__func__, "b " + kind.__name__))


def tenth(values):
    return sorted(values)[len(values) // 10]


def time_linear_us():
    linear = torch.nn.Linear(64, 64, bias=False, device="cuda", dtype=torch.bfloat16)
    x = torch.empty(64, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    times = []
    for _ in range(400):
        start = time.perf_counter()
        linear(x)
        times.append(time.perf_counter() - start)
    return 1e6 * tenth(times)


deal_evenly()
leave_out_attention_kernels()
wrap_forward()
wrap_backward()
x = torch.empty(TOKENS, 1, HIDDEN, device="cuda", dtype=torch.bfloat16, requires_grad=True)
angles = torch.empty(TOKENS, 1, 1, 128, device="cuda")
totals = {"forward": [], "backward": []}
gc.disable()  # Megatron-Core collects by hand, every 100 steps
WARM_UP = 3
for current_step in range(WARM_UP + options.steps):
    for parameter in layer.parameters():
        parameter.grad_added_to_main_grad = False
    start = time.perf_counter()
    with get_fp8_context(config, 0):
        y, _ = layer(x, attention_mask=None, rotary_pos_emb=angles)
    middle = time.perf_counter()
    gradient = torch.empty_like(y)
    begin = time.perf_counter()
    y.backward(gradient)
    end = time.perf_counter()
    x.grad = None
    if current_step >= WARM_UP:
        totals["forward"].append(1e6 * (middle - start))
        totals["backward"].append(1e6 * (end - begin))
    if current_step % 10 == 9:
        gc.collect()

linear_us = time_linear_us()
print(f"torch.nn.Linear {linear_us:.2f} us")
for label, times in totals.items():
    print(f"{label} {tenth(times):.0f} us, {tenth(times) / linear_us:.0f}")
for label, made in sorted(calls.items()):
    by_step = {}
    for step, own_s, counted in made:
        if step >= WARM_UP:
            entry = by_step.setdefault(step, [0.0, 0, [0] * len(COUNTERS)])
            entry[0] += 1e6 * own_s
            entry[1] += 1
            entry[2] = [a + b for a, b in zip(entry[2], counted)]
    us = tenth([entry[0] for entry in by_step.values()])
    last = by_step[max(by_step)]
    counted = " ".join(f"{name}={n}" for name, n in zip(COUNTERS, last[2]) if n)
    print(f"  {label:34} {us:6.0f} us {us / linear_us:6.1f}  calls={last[1]} {counted}")
