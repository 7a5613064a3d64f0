#!/usr/bin/env python3
"""One training step in PyTorch: the one that `longhaul run --strategy local --profile neutral` takes.

The same layers (layer norms, q k v of one product, RoPE, scaled_dot_product_attention, GELU; the
embedding is the head), bf16 with fp32 masters and AdamW, every layer recomputed in backward. Like for like: weights
begin as longhaul's do, tokens are random, attention is cuDNN's unless --attention says otherwise, steps are timed as
longhaul times them (the host waits for the device after each), after warm-up of some seconds. Prints the versions,
and one line of CSV per way of running it (eager, compiled with --compile; "queued": no waits between steps) and per
kernel called alone. Without PyTorch or a GPU: one line that says why, exit code 77."""
import argparse
import contextlib
import math
import statistics
import time

from skip import skip

# Dense bf16, of NVIDIA's data sheets: the first name that the device's has in it.
PEAKS = (("H100 PCIe", 756e12), ("H100 NVL", 835e12), ("H100", 989.4e12), ("H800", 989.4e12), ("H200", 989.4e12),
         ("GH200", 989.4e12), ("A100", 312e12), ("A800", 312e12))


def peak_of(device):
    """Of a device by its name; NaN, and so no percents: it is none of these."""
    return next((peak for name, peak in PEAKS if name in device), math.nan)

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch.utils.checkpoint import checkpoint
except ImportError as error:
    skip(f"no PyTorch: {error}")


class Layer(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def rotate(self, x, cos, sin):
        half = x.shape[-1] // 2
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def forward(self, x, cos, sin):
        rows, hidden = x.shape
        q, k, v = (part.view(rows, self.heads, -1).transpose(0, 1).unsqueeze(0)
                   for part in self.qkv(self.norm_1(x)).split(hidden, dim=-1))
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(o.squeeze(0).transpose(0, 1).reshape(rows, hidden))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embedding = nn.Embedding(a.vocab, a.hidden)
        self.layers = nn.ModuleList(Layer(a.hidden, a.heads, a.ffn) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.hidden)

    def forward(self, tokens, labels, cos, sin):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, cos, sin, use_reentrant=False)
        logits = F.linear(self.norm(x), self.embedding.weight)
        return F.cross_entropy(logits, labels)


class Master:
    """AdamW on fp32 copies of bf16 parameters."""

    def __init__(self, model):
        self.params = list(model.parameters())
        self.masters = [p.detach().float().requires_grad_() for p in self.params]
        for m in self.masters:
            m.grad = torch.empty_like(m)
        self.optimizer = torch.optim.AdamW(self.masters, lr=1e-3, fused=True)

    def step(self):
        torch._foreach_copy_([m.grad for m in self.masters], [p.grad for p in self.params])
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_([p.data for p in self.params], [m.data for m in self.masters])


def timed(call, warmup, repeats):
    """Seconds of each call, by events. All are queued one behind the other, the first ones not counted: no event is
    on an empty stream, as none is in a step of longhaul's."""
    events = []
    for i in range(warmup + repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        if i >= warmup:
            events.append((begin, end))
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1e3 for begin, end in events]


def timed_steps(call, least, warm_s, repeats):
    """Seconds of each step as longhaul times its own: from the first call until the device is idle. Before, at least
    `least` steps and warm_s seconds of them are run, in which the clock settles."""
    seconds, begin = [], time.perf_counter()
    while len(seconds) < least or time.perf_counter() - begin < warm_s:
        call()
        torch.cuda.synchronize()
        seconds.append(0)
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return seconds


def begin_as_longhaul(model):
    """Weights as `longhaul run` begins with: norms 1, biases 0, matrices normal with a deviation of cols^-0.5."""
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 2:
                p.normal_(0, p.shape[1] ** -0.5)
        for module in model.modules():
            if isinstance(module, (nn.LayerNorm, nn.Linear)) and module.bias is not None:
                module.bias.zero_()
            if isinstance(module, nn.LayerNorm):
                module.weight.fill_(1)


def attention_by(who):
    """What makes a context in which scaled_dot_product_attention is computed by one library, and a name of it."""
    if who == "auto":
        return contextlib.nullcontext, "auto"
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        backend = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION"}[who]
        chosen = getattr(SDPBackend, backend)
        return lambda: sdpa_kernel(chosen), who
    except (ImportError, AttributeError):
        return contextlib.nullcontext, f"auto: this PyTorch cannot choose {who}"


def numbers(*shape):
    """Those of `longhaul bench`: normal, since positive numbers, constants and zeros draw less power."""
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def put(what, seconds, flops, peak):
    median = statistics.median(seconds)
    print(f"{what},{median:.6g},{min(seconds):.6g},{max(seconds):.6g},{flops / median / 1e12:.4g},"
          f"{100 * flops / median / peak:.3g}", flush=True)


def step_flops(a):
    """Of the model, 6 per weight and token and attention on the masked half: no recomputation."""
    weights = a.layers * (4 * a.hidden * a.hidden + 2 * a.hidden * a.ffn) + a.vocab * a.hidden
    return 6 * weights * a.seq + 3 * a.layers * 2 * a.seq * a.seq * a.hidden


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("layers", 4), ("hidden", 2560), ("heads", 20), ("ffn", 10240),
                        ("vocab", 50304), ("seq", 32768), ("steps", 5)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--peak", type=float, help="bf16 FLOP/s of the device; without it by the device's name")
    parser.add_argument("--compile", action="store_true", help="also by torch.compile")
    parser.add_argument("--attention", choices=("cudnn", "flash", "auto"), default="cudnn")
    parser.add_argument("--warm", type=float, default=5, help="seconds of steps before those that are timed")
    a = parser.parse_args()
    if not torch.cuda.is_available():
        skip("PyTorch sees no GPU")
    if a.peak is None:
        a.peak = peak_of(torch.cuda.get_device_name())
    torch.manual_seed(1)
    attention, attention_name = attention_by(a.attention)
    print(f"# torch={torch.__version__} cuda={torch.version.cuda} cudnn={torch.backends.cudnn.version()}"
          f" device={torch.cuda.get_device_name()} attention={attention_name}"
          f" compile={'default' if a.compile else 'no'}")
    print("what,median_s,least_s,most_s,tflop_per_s,percent_of_peak", flush=True)
    half = a.hidden // a.heads // 2
    angle = torch.arange(a.seq)[:, None] * 10000.0 ** (-torch.arange(half) / half)
    cos, sin = (f(angle).to("cuda", torch.bfloat16) for f in (torch.cos, torch.sin))
    model = Model(a).to("cuda", torch.bfloat16)
    begin_as_longhaul(model)
    master = Master(model)
    tokens = torch.randint(a.vocab, (a.seq,), device="cuda")
    labels = torch.roll(tokens, -1)

    def step(forward):
        def call():
            for p in model.parameters():
                p.grad = None
            with attention():
                forward(tokens, labels, cos, sin).backward()
            master.step()
        return call

    put("step eager", timed_steps(step(model), 2, a.warm, a.steps), step_flops(a), a.peak)
    put("step eager queued", timed(step(model), 2, a.steps), step_flops(a), a.peak)
    rows, dim = a.seq, a.hidden // a.heads
    # laid out as rows of heads, as products leave them
    q, k, v = (numbers(1, rows, a.heads, dim).transpose(1, 2) for _ in range(3))
    put("attention forward alone", timed(
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), 3, 10),
        2 * rows * rows * a.hidden, a.peak)
    for m, n, depth in ((8192, 8192, 8192), (rows, 3 * a.hidden, a.hidden), (rows, a.ffn, a.hidden),
                        (rows, a.hidden, a.ffn)):
        x, w = (numbers(s, depth) for s in (m, n))
        put(f"matmul {m} {n} {depth}", timed(lambda x=x, w=w: x @ w.t(), 3, 20), 2 * m * n * depth,
            a.peak)
    if a.compile:
        compiled = step(torch.compile(model))
        put("step compiled", timed_steps(compiled, 3, a.warm, a.steps), step_flops(a), a.peak)
        put("step compiled queued", timed(compiled, 2, a.steps), step_flops(a), a.peak)


if __name__ == "__main__":
    main()
