"""A step of two small blocks: operators.py step is the program that longhaul.record records; operators.py profile > FILE is
a recording of the PyTorch profiler of three such steps, as it would be of a GPU.

The operators, their shapes and their nesting are those of PyTorch's own profile of the program on the CPU. No GPU ran:
every operator that does work gets the call that launches its kernel and the kernel, in the form of
libkineto/src/output_json.cpp in pytorch/kineto; the times of kernels are those of `seconds` below, and the host takes HOST
of what the CPU took. Attention has the name that it has on a GPU.
"""
import json
import math
import sys
import tempfile

import torch
from torch import nn

WIDTH, HEADS, TOKENS, STEPS = 256, 4, 512, 2
HOST = 0.01  # of the CPU's times, as if it dispatched operators and computed nothing
BYTES_PER_S, START_US = 1.5e12, 2.5  # of a kernel
VIEWS = """empty empty_strided empty_like as_strided view t transpose detach reshape _unsafe_view permute unsqueeze squeeze expand
    select slice alias unbind split chunk _reshape_alias resolve_conj resolve_neg set_ is_nonzero item result_type lift_fresh
    new_empty new_empty_strided""".split()
CPU_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def steps(device):
    model = nn.Sequential(Block(), Block()).to(device, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    while True:
        x = torch.randn(2, TOKENS, WIDTH, device=device, dtype=torch.bfloat16)
        model(x).float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


def seconds(dims):
    """The time of a kernel by the elements of its inputs."""
    flat = [entry for entry in dims if entry and isinstance(entry[0], int)]
    flat += [shape for entry in dims if entry and isinstance(entry[0], list) for shape in entry]
    return START_US + 2e6 * sum(math.prod(shape) for shape in flat) / BYTES_PER_S


def on_gpu(trace):
    """Adds launches and kernels to the profile of a CPU."""
    operators = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]
    rest = [event for event in trace["traceEvents"] if event.get("cat") == "user_annotation" and event.get("ph") == "X"]
    made, correlation, free = [], 1000, 0.0
    first = min(event["ts"] for event in rest + operators)
    for event in rest + operators:
        event["ts"], event["dur"] = HOST * (event["ts"] - first), HOST * event["dur"]
    for event in operators:
        event["name"] = event["name"].replace(CPU_ATTENTION, "_scaled_dot_product_cudnn_attention")
        arguments = event["args"]
        event["args"] = {key: arguments[key] for key in ("External id", "Input Dims", "Input type") if key in arguments}
        end = event["ts"] + event["dur"]
        leaf = not any(other is not event and other["tid"] == event["tid"] and event["ts"] <= other["ts"] < end
                       and other["name"].removeprefix("aten::") not in VIEWS
                       and other["ts"] + other["dur"] <= end for other in operators)
        if not event["name"].startswith("aten::") or not leaf or event["name"].removeprefix("aten::") in VIEWS:
            continue
        correlation += 1
        external, dims = arguments["External id"], arguments.get("Input Dims", [])
        start = event["ts"] + event["dur"] / 2
        made.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": event["pid"], "tid": event["tid"],
                     "ts": start, "dur": event["dur"] / 4,
                     "args": {"External id": external, "cbid": 211, "correlation": correlation}})
        free = max(free, start + 3)
        made.append({"ph": "X", "cat": "kernel", "name": f"void kernel_of_{event['name'].removeprefix('aten::')}", "pid": 0,
                     "tid": 7, "ts": free, "dur": seconds(dims),
                     "args": {"External id": external, "device": 0, "context": 1, "stream": 7, "correlation": correlation}})
        free += seconds(dims)
    for event in rest + operators + made:
        event["ts"], event["dur"] = round(event["ts"], 3), round(event["dur"], 3)
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "none: see operators.py"}],
            "traceEvents": rest + operators + made}


def profile():
    torch.set_num_threads(1)
    run = steps("cpu")
    next(run)
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, schedule=schedule) as profiler:
        for _ in range(STEPS + 1):
            next(run)
            profiler.step()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profiler.export_chrome_trace(file.name)
        json.dump(on_gpu(json.load(open(file.name))), sys.stdout, separators=(",", ":"))


if sys.argv[1] == "profile":
    profile()
else:
    for _ in steps("cuda"):
        pass
