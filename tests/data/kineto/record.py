"""Records the profiler files of this folder: training steps of two small transformers on the CPU.

    python3 record.py                      # needs torch; writes NAME.json for each of CASES

Each is a plain PyTorch model of the sizes in NAME.config.json, with random weights and tokens. One
step is forward, backward and AdamW. To stay small, the files lose what no reader of ours asks for:
blanks between tokens, the arrows from forward to backward, operators that do nothing by themselves
and the arguments in UNUSED. README.md says which version of torch made them.
"""
import json
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

FOLDER = pathlib.Path(__file__).resolve().parent
SEQ = 512


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


class LlamaLayer(nn.Module):
    """Separate projections, grouped keys and values, rotary embedding, SwiGLU."""

    def __init__(self, c):
        super().__init__()
        h = c["hidden_size"]
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.dim = h // self.heads
        self.norm1 = RMSNorm(h, c["rms_norm_eps"])
        self.norm2 = RMSNorm(h, c["rms_norm_eps"])
        self.q = nn.Linear(h, self.heads * self.dim, bias=False)
        self.k = nn.Linear(h, self.kv_heads * self.dim, bias=False)
        self.v = nn.Linear(h, self.kv_heads * self.dim, bias=False)
        self.o = nn.Linear(h, h, bias=False)
        self.gate = nn.Linear(h, c["intermediate_size"], bias=False)
        self.up = nn.Linear(h, c["intermediate_size"], bias=False)
        self.down = nn.Linear(c["intermediate_size"], h, bias=False)

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        q = self.q(y).view(b, s, self.heads, self.dim).transpose(1, 2)
        k = self.k(y).view(b, s, self.kv_heads, self.dim).transpose(1, 2)
        v = self.v(y).view(b, s, self.kv_heads, self.dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        copies = self.heads // self.kv_heads
        if copies > 1:
            k = k.repeat_interleave(copies, dim=1)
            v = v.repeat_interleave(copies, dim=1)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(o.transpose(1, 2).reshape(b, s, h))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embedding = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(LlamaLayer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)

        dim = c["hidden_size"] // c["num_attention_heads"]
        rate = c["rope_theta"] ** (-torch.arange(0, dim, 2) / dim)
        angle = torch.outer(torch.arange(SEQ), rate).repeat(1, 2)
        self.cos, self.sin = angle.cos(), angle.sin()

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x))


class GptLayer(nn.Module):
    """One projection for queries, keys and values; attention written out; biases; GELU."""

    def __init__(self, c):
        super().__init__()
        h = c["n_embd"]
        self.heads, self.dim = c["n_head"], h // c["n_head"]
        self.norm1, self.norm2 = nn.LayerNorm(h), nn.LayerNorm(h)
        self.qkv, self.o = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.up, self.down = nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def forward(self, x, mask):
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, self.dim).permute(2, 0, 3, 1, 4)
        score = (q @ k.transpose(-2, -1)) * self.dim**-0.5
        p = torch.softmax(score.masked_fill(mask, float("-inf")), dim=-1)
        x = x + self.o((p @ v).transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.token = nn.Embedding(c["vocab_size"], c["n_embd"])
        self.place = nn.Embedding(c["n_positions"], c["n_embd"])
        self.layers = nn.ModuleList(GptLayer(c) for _ in range(c["n_layer"]))
        self.norm = nn.LayerNorm(c["n_embd"])
        self.head = nn.Linear(c["n_embd"], c["vocab_size"], bias=False)
        self.head.weight = self.token.weight
        self.mask = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
        self.places = torch.arange(SEQ)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(self.places)
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.head(self.norm(x))


# model, steps recorded, AdamW as one operator
CASES = {"llama": (Llama, 1, True), "gpt": (Gpt, 1, False), "gpt-steps": (Gpt, 3, True)}
UNUSED = ("Concrete Inputs", "Input Strides", "Input type", "Ev Idx", "Record function id",
          "Sequence number", "Fwd thread id")
IDLE = ("aten::as_strided", "aten::resolve_conj", "aten::empty", "aten::empty_strided",
        "aten::empty_like", "aten::detach", "detach")


def save(profiler, name):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        trace = json.loads(path.read_text())
    trace["traceName"] = f"{name}.json"
    trace.pop("host_name", None)
    trace["traceEvents"] = [e for e in trace["traceEvents"]
                            if e.get("cat") != "fwdbwd" and e.get("name") not in IDLE]
    for event in trace["traceEvents"]:
        for key in UNUSED:
            event.get("args", {}).pop(key, None)
    (FOLDER / f"{name}.json").write_text(json.dumps(trace, separators=(",", ":")) + "\n")


def record(name):
    model_class, steps, fused = CASES[name]
    config = json.loads((FOLDER / f"{name}.config.json").read_text())
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = model_class(config)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused, foreach=False)
    batch = torch.randint(config["vocab_size"], (1, SEQ + 1))
    tokens, labels = batch[:, :-1].clone(), batch[0, 1:].clone()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                 schedule=schedule(wait=1, warmup=2, active=steps)) as profiler:
        for _ in range(3 + steps):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), labels)
            loss.backward()
            adamw.step()
            adamw.zero_grad()
            profiler.step()
    save(profiler, name)


if __name__ == "__main__":
    print("torch", torch.__version__)
    for case in sys.argv[1:] or CASES:
        record(case)
