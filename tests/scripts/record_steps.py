"""Records training steps of small Llamas on processors with PyTorch, for tests/data/recorded.

    python3 record_steps.py FOLDER [CASE ...]      # needs torch and cc; CASES lists what there is

A case is a model, a length and a number of ranks: one process, or FSDP (fully_shard of each layer) over gloo. One
step is forward, backward and AdamW; five are recorded after two. Each process runs one thread of PyTorch, with a clock
of processor time (processor_clock.c): what other programs take of the machine is in no event. The speed of a processor
still changes while others use caches and memory, so behind each step the process times PROBES products of 512 cubed,
which belong to no step: a set of cases whose probes lie far apart was not recorded at one speed.

FOLDER/steps.csv gets a row for each case: the time of the five steps, ms, of the slowest rank, and the middle probe.
Cases in TRACED leave their recordings too, as CASE.RANK.json: blanks, arrows, views and arguments that no reader of
ours asks for are left out. The models are those of tests/data/kineto/record.py, with the sizes of
FOLDER/NAME.config.json.
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / "data" / "kineto" / "record.py"

# name: model, tokens, ranks
CASES = {f"{model}-{ranks}x{seq}": (model, seq, ranks)
         for model, ranks, seqs in [("llama-a", 1, (512, 768, 1024, 2048)), ("llama-a", 2, (512, 768, 1024, 2048)),
                                    ("llama-b", 1, (1024,)), ("llama-b", 2, (1024,))]
         for seq in seqs}
TRACED = ("llama-a-1x512", "llama-a-2x512")
STEPS, WARM, PROBES = 5, 2, 4

KEPT_ARGUMENTS = ("External id", "Input Dims")
IDLE = ("aten::as_strided", "aten::resolve_conj", "aten::empty", "aten::empty_strided", "aten::empty_like",
        "aten::detach", "detach", "aten::transpose", "aten::t", "aten::view", "aten::select", "aten::slice",
        "aten::expand", "aten::unsqueeze", "aten::squeeze", "aten::alias", "aten::split_with_sizes", "aten::split")


# ---- the process of one rank ----

def train(model_name, seq, ranks, path):
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.profiler import ProfilerActivity, profile, record_function, schedule
    spec = importlib.util.spec_from_file_location("record", MODELS)
    record = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(record)
    record.SEQ = seq
    config = json.loads((path.parent / f"{model_name}.config.json").read_text())
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = record.Llama(config)
    rank = int(os.environ.get("RANK", 0))
    if ranks > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        dist.init_process_group("gloo")
        mesh = init_device_mesh("cpu", (ranks,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True, foreach=False)
    batch = torch.randint(config["vocab_size"], (1, seq + 1))
    tokens, labels = batch[:, :-1].clone(), batch[0, 1:].clone()
    square = torch.rand(512, 512)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                 schedule=schedule(wait=0, warmup=WARM, active=STEPS, repeat=1)) as profiler:
        for _ in range(WARM + STEPS):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), labels)
            loss.backward()
            adamw.step()
            adamw.zero_grad()
            with record_function("probe"):
                for _ in range(PROBES):
                    torch.mm(square, square)
            profiler.step()
    profiler.export_chrome_trace(f"{path}.{rank}.raw")
    if ranks > 1:
        dist.destroy_process_group()


# ---- what is kept of a recording ----

def steps_of(events):
    """Name, begin and end (of its probe's begin) and probe of each step, us."""
    probes = [e for e in events if e.get("name") == "probe" and e.get("cat") == "user_annotation"]
    steps = {}
    for e in events:
        if e.get("name", "").startswith("ProfilerStep#") and e.get("cat") == "user_annotation":
            probe, = [p for p in probes if e["ts"] <= p["ts"] < e["ts"] + e["dur"]]
            steps[e["name"]] = {"begin": e["ts"], "end": probe["ts"], "probe": probe["dur"] / PROBES}
    return steps


def trim(trace, steps, name):
    trace["traceName"] = name
    for key in ("host_name", "ERROR", "WARNING", "trace_id"):
        trace.pop(key, None)
    spans = [(s["begin"], s["end"]) for s in steps]
    first = min(begin for begin, _ in spans)
    kept = []
    for e in trace["traceEvents"]:
        wanted = e.get("cat") == "cpu_op" or (e.get("cat") == "user_annotation" and
                                             e["name"].startswith(("ProfilerStep#", "Optimizer.", "gloo:")))
        if e.get("ph") != "X" or not wanted or e["name"] in IDLE:
            continue
        within = [span for span in spans if span[0] <= e["ts"] < span[1]]
        if not within or (e["name"].startswith("ProfilerStep#") and e["cat"] != "user_annotation"):
            continue
        arguments = {k: v for k, v in e.get("args", {}).items() if k in KEPT_ARGUMENTS}
        if e["name"].startswith("gloo:"):
            arguments["Input type"] = e["args"]["Input type"]
        kept.append({"ph": "X", "cat": e["cat"], "name": e["name"], "pid": e["pid"], "tid": e["tid"],
                     "ts": round(e["ts"] - first, 1), "dur": round(min(e["dur"], within[0][1] - e["ts"]), 1),
                     "args": arguments})
    trace["traceEvents"] = kept
    return json.dumps(trace, separators=(",", ":")) + "\n"


# ---- the runs ----

def run_ranks(case, folder, library):
    _, _, ranks = CASES[case]
    processes = []
    for rank in range(ranks):
        variables = dict(os.environ, LD_PRELOAD=str(library))
        if ranks > 1:
            variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "WORLD_SIZE": str(ranks),
                          "RANK": str(rank)}
        processes.append(subprocess.Popen([sys.executable, __file__, str(folder), "--rank", case], env=variables,
                                          stderr=subprocess.DEVNULL))
    if any([p.wait() for p in processes]):
        sys.exit(f"{case}: a rank failed")
    raws = [pathlib.Path(f"{folder / case}.{rank}.raw") for rank in range(ranks)]
    traces = [json.loads(raw.read_text()) for raw in raws]
    for raw in raws:
        raw.unlink()
    return traces


def record(case, folder, library):
    """Runs a case; its row of steps.csv."""
    traces = run_ranks(case, folder, library)
    found = [steps_of(t["traceEvents"]) for t in traces]
    probes = sorted(f[n]["probe"] / 1e3 for f in found for n in f)
    times = [max(f[n]["end"] - f[n]["begin"] for f in found) / 1e3 for n in found[0]]
    for rank, trace in enumerate(traces if case in TRACED else []):
        (folder / f"{case}.{rank}.json").write_text(trim(trace, found[rank].values(), f"{case}.{rank}.json"))
    return ",".join([case, *map(str, CASES[case]), *(f"{t:.3f}" for t in times), f"{probes[len(probes) // 2]:.3f}"])


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) > 3 and sys.argv[2] == "--rank":
        model, seq, ranks = CASES[sys.argv[3]]
        return train(model, seq, ranks, folder / sys.argv[3])
    import torch
    library = folder / "processor_clock.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / "processor_clock.c"], check=True)
    rows = {}
    csv = folder / "steps.csv"
    if csv.exists():
        rows = {line.split(",")[0]: line for line in csv.read_text().splitlines() if line[0] not in "#c"}
    for case in sys.argv[2:] or CASES:
        rows[case] = record(case, folder, library)
        print(rows[case], flush=True)
    head = (f"# torch={torch.__version__}\n# date={time.strftime('%Y-%m-%d')}\n"
            "case,model,seq,ranks,step1_ms,step2_ms,step3_ms,step4_ms,step5_ms,probe_ms\n")
    csv.write_text(head + "".join(rows[c] + "\n" for c in CASES if c in rows))
    library.unlink()


if __name__ == "__main__":
    main()
