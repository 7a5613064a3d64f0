#!/usr/bin/env python3
"""Checks longhaul.record with the PyTorch that is installed, or with that of the Python which $LONGHAUL_TORCH_PYTHON names.

    check_record.py SOURCE [TEST ...]

SOURCE is the source tree. Without PyTorch only what is refused without it is checked, and the exit code is 77."""
import contextlib
import gzip
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

other = os.environ.pop("LONGHAUL_TORCH_PYTHON", None)
if other:
    os.execv(other, [other, *sys.argv])
SOURCE = pathlib.Path(sys.argv.pop(1))
FOUND = importlib.util.find_spec("torch") is not None


def run(*words, python=sys.executable, **environment):
    """Runs a command in a folder of its own: its exit code, what it printed, its errors, the names of the files it left."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, *words], cwd=folder, env={**os.environ, **environment}, encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr, sorted(os.listdir(folder))


def record_script(text, *options):
    """Records a script by the command: its exit code, its last line of errors, the files, the recording."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "train.py").write_text(text)
        done = subprocess.run([sys.executable, "-W", "ignore", "-m", "longhaul.record", "-o", "step.json.gz", *options,
                               "train.py"], cwd=folder, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        path = pathlib.Path(folder, "step.json.gz")
        step = json.loads(gzip.decompress(path.read_bytes())) if path.exists() else None
        files = sorted(name for name in os.listdir(folder) if name != "train.py")
        return types.SimpleNamespace(code=done.returncode, out=done.stdout, files=files, step=step, errors=done.stderr,
                                     error=(done.stderr.strip().splitlines() or [""])[-1])


class WithoutTorch(unittest.TestCase):
    """What is refused before PyTorch is imported: the package of these cases is a version.py and nothing else."""

    def refused(self, version, python=sys.executable):
        with tempfile.TemporaryDirectory() as folder:
            if version is not None:
                os.mkdir(os.path.join(folder, "torch"))
                for name, text in ("__init__.py", "raise AssertionError('imported')"), ("version.py", version):
                    pathlib.Path(folder, "torch", name).write_text(text)
            path = os.pathsep.join([folder, os.environ["PYTHONPATH"]])
            flags = ["-S"] if version is None else []  # without site-packages there is no PyTorch
            code, _, error, files = run(*flags, "-m", "longhaul.record", "x.py", PYTHONPATH=path)
        self.assertEqual((code, files), (2, []))
        self.assertEqual(error.count("\n"), 1, error)
        return error

    def test_a_build_without_cuda(self):
        error = self.refused("__version__ = '2.15.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n")
        self.assertIn("torch 2.15.0+cpu is built without CUDA: recording needs a CUDA build, though no GPU", error)

    def test_a_build_for_rocm(self):
        error = self.refused("__version__ = '2.15.0+rocm6.4'\ncuda = None\nhip: Optional[str] = '6.4.4'\n")
        self.assertIn("torch 2.15.0+rocm6.4 is built for ROCm", error)

    def test_a_build_for_an_old_cuda(self):
        error = self.refused("__version__ = '2.1.0+cu118'\ncuda = '11.8'\nhip = None\n")
        self.assertIn("torch 2.1.0+cu118 is built for CUDA 11.8: recording knows CUDA 12 and 13", error)

    def test_no_torch_at_all(self):
        self.assertIn("PyTorch is not installed: pip install torch", self.refused(None))

    def test_a_module_without_the_stub(self):
        with mock.patch.dict(os.environ, LONGHAUL_RECORD_STUB="/no/such/libstub.so"):
            error = self.refused("__version__ = '2.15.0'\ncuda = '13.2'\n")
        self.assertIn("/no/such/libstub.so is missing", error)

    def test_know_does_nothing_outside_of_a_recording(self):
        import longhaul
        self.assertIsNone(longhaul.know(None, 1))


if FOUND:
    import longhaul.record
    import torch
    import torch.distributed as dist
    from torch import nn

    OLD = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15)

SCRIPT = """
import os, torch
model = torch.nn.Linear(64, 64).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for step in range(4):
    x = torch.randn(8, 64, device="cuda")
    loss = model(x).pow(2).mean()
    loss.backward()
    {here}
    optimizer.step()
    optimizer.zero_grad()
"""


TRAINER = """
import torch, transformers
words = WORDS
config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                  num_key_value_heads=4, vocab_size=256)
extra = {"ddp": {}, "fsdp": {"fsdp": "full_shard auto_wrap", "fsdp_config": {
    "fsdp_version": 2, "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}}}.get(words[0])
if extra is None:
    extra = {"deepspeed": {"zero_optimization": {"stage": words[1]}, "bf16": {"enabled": True},
                           "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}}
ids = torch.zeros(256, dtype=torch.int64)
trainer = transformers.Trainer(
    model=transformers.LlamaForCausalLM(config), train_dataset=[{"input_ids": ids, "labels": ids}] * 64,
    args=transformers.TrainingArguments("out", per_device_train_batch_size=2, max_steps=4, bf16=True, report_to=[],
                                        save_strategy="no", logging_steps=1, **extra))
trainer.train()
"""
ZERO_1 = """
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer
torch.distributed.init_process_group("nccl")
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64, bias=False) for _ in range(8)]).to("cuda")
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, fused=True)
while True:
    model(torch.randn(8, 64, device="cuda")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
PARAMETERS = 2 * 256 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64


def kernels(step, kind=None, phase=None):
    return [event for event in step["events"] if "k" in event and kind in (None, event["k"]) and phase in (None, event["ph"])]


def of(step, name):
    return [event for event in kernels(step) if event["op"].endswith(name)]


def comms_of_parameters(step):
    """Collectives that give all ranks the parameters of which each has updated a part."""
    return of(step, "broadcast_") + of(step, "_allgather_base_") + of(step, "allgather_")


def live_at(step, index):
    """Bytes of storages that live when an event is issued."""
    return sum(size for size, born, died, _ in step["storages"] if born <= index and (died < 0 or died > index))


def blocks(count, width=64):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, 4 * width, bias=False), nn.GELU(),
                                         nn.Linear(4 * width, width, bias=False)) for _ in range(count)])


@unittest.skipUnless(FOUND, "PyTorch is not installed")
class Recorded(unittest.TestCase):
    @contextlib.contextmanager
    def recording(self, **options):
        with longhaul.record.Step(**options) as rec:
            yield rec

    def record(self, build, **options):
        """Records the second step of the function that build(rec) returns."""
        with self.recording(**options) as rec:
            train = build(rec)
            train()
            with rec.step():
                train()
        return rec.content()

    # ---- the traps: each changed a recording, or stopped it, before it was known

    def test_1_fake_tensors_are_not_taken_for_tracing(self):
        try:
            import transformers
        except ImportError:
            self.skipTest("transformers is not installed")
        sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "vocab_size": 128}

        def build(rec):
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).to("cuda", torch.bfloat16)

            def train():
                ids = torch.randint(0, 128, (1, 32), device="cuda")
                model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
                model.zero_grad()
            return train

        step = self.record(build)
        forward = kernels(step, "sdpa", "f")
        self.assertEqual([event["in"][1][1] for event in forward], 2 * [[1, 2, 32, 16]])  # keys are not repeated
        self.assertEqual({len(event["in"]) for event in forward}, {3})                   # and there is no mask
        self.assertTrue(all(event["arg"]["is_causal"] for event in forward))
        self.assertEqual(step["tokens"], 32)
        self.assertIn("LlamaForCausalLM: the implementation of attention is sdpa", step["notes"])

    def test_2_modules_move_and_keep_their_ties(self):
        with self.recording():
            model = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Linear(8, 8), "norm": nn.BatchNorm1d(8)})
            model["b"].weight = model["a"].weight
            held = model["a"].weight
            held.note = "kept"
            held.grad = torch.ones_like(held)
            moved = model.to("cuda")
            self.assertIs(moved, model)
            self.assertIs(model["a"].weight, model["b"].weight)
            self.assertEqual({tensor.device.type for tensor in [*model.parameters(), *model.buffers()]}, {"cuda"})
            self.assertEqual(model["a"].weight.note, "kept")
            self.assertIs(model["a"].weight, held)  # as an optimizer may hold it
            model.to(torch.bfloat16)
            self.assertIs(model["a"].weight, model["b"].weight)
            self.assertEqual(model["norm"].running_mean.dtype, torch.bfloat16)
            self.assertEqual((held.dtype, held.grad.device.type, held.grad.dtype), (torch.bfloat16, "cuda", torch.bfloat16))
            held.data = torch.zeros(3)
            self.assertEqual((held.device.type, held.shape), ("cpu", (3,)))

    def fsdp(self, count=3):
        from torch.distributed.fsdp import fully_shard

        def build(rec):
            model = blocks(count, 256)  # FSDP2 moves it to the device
            for block in model:
                fully_shard(block)
            fully_shard(model)
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)

            def train():
                model(torch.randn(4, 256, device="cuda")).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            return train
        return build

    def test_3_storages_that_fsdp_frees_in_place_are_seen(self):
        step = self.record(self.fsdp(), world_size=4)
        whole = 4 * 256 * 1024
        lives = [(born, died) for size, born, died, role in step["storages"] if size == whole and role == "unsharded"]
        self.assertGreaterEqual(len(lives), 3 * 2 * 2)  # blocks, weights of each, forward and backward
        self.assertTrue(all(died > 0 for born, died in lives))
        most = max(sum(born <= at < died for born, died in lives) for at in range(len(step["events"])))
        self.assertLessEqual(most, 3 * 2 + 2)

    def test_models_are_divided_before_they_are_allocated(self):
        from torch.distributed.fsdp import fully_shard
        if OLD:
            self.skipTest("this PyTorch's random numbers of DTensors set a state of the device, which is fake")

        def build(rec):
            with torch.device("meta"):
                model = blocks(2, 256)
            for block in model:
                fully_shard(block)
            fully_shard(model)
            model.to_empty(device="cuda")
            with torch.no_grad():
                for parameter in model.parameters():  # of DTensors, whose random numbers are those of all ranks
                    nn.init.trunc_normal_(parameter, std=.02)

            def train():
                model(torch.randn(4, 256, device="cuda")).mean().backward()
                model.zero_grad()
            return train

        step = self.record(build, world_size=4)
        whole = 2 * 2 * 4 * 256 * 1024
        self.assertEqual(sum(event["full"] for event in of(step, "_reduce_scatter_base_")), whole)
        self.assertEqual(sum(size for size, _, _, role in step["storages"] if role.startswith("param ")), whole // 4)

    def test_operators_that_run_functions_are_refused(self):
        from torch.nn.attention.flex_attention import flex_attention
        if OLD:
            self.skipTest("this PyTorch refuses such operators itself")
        with self.recording():
            q = torch.randn(1, 2, 128, 64, device="cuda")
            with self.assertRaisesRegex(longhaul.record.Refused, "the operator flex_attention runs a function"):
                flex_attention(q, q, q)

    def test_4_small_integers_of_the_host_are_real(self):
        from torch.distributed.device_mesh import init_device_mesh
        with self.recording(world_size=8, rank=5):
            mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("replicate", "shard"))
            self.assertEqual(dist.get_process_group_ranks(mesh["shard"].get_group()), [4, 5, 6, 7])
            self.assertEqual(dist.get_process_group_ranks(mesh["replicate"].get_group()), [1, 5])
            self.assertEqual(torch.arange(4).tolist(), [0, 1, 2, 3])
            self.assertEqual(torch.tensor([3, 4]).sum().item(), 7)

    def test_5_callbacks_at_the_end_of_backward_belong_to_it(self):
        def build(rec):
            weight = torch.randn(8, 8, device="cuda", requires_grad=True)

            def train():
                def at_end():
                    weight.grad.mul_(2)
                weight.register_post_accumulate_grad_hook(
                    lambda _: torch.autograd.Variable._execution_engine.queue_callback(at_end))
                (weight @ weight).sum().backward()
                weight.grad = None
            return train

        self.assertEqual({event["ph"] for event in of(self.record(build), "mul_.Tensor")}, {"b"})

    def test_6_flops_of_grouped_products_and_causal_attention(self):
        def build(rec):
            x = torch.randn(64, 32, device="cuda", dtype=torch.bfloat16)
            weights = torch.randn(4, 32, 48, device="cuda", dtype=torch.bfloat16)
            ends = torch.tensor([16, 32, 48, 64], dtype=torch.int32, device="cuda")
            q = torch.randn(1, 2, 128, 64, device="cuda", dtype=torch.bfloat16)

            def train():
                torch._grouped_mm(x, weights, offs=ends)
                nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
            return train

        step = self.record(build)
        self.assertEqual([event["fl"] for event in of(step, "_grouped_mm")], [2 * 64 * 32 * 48])
        attention, = kernels(step, "sdpa")
        self.assertEqual(attention["fl"], 2 * 2 * 2 * 128 * 128 * 64)
        self.assertIs(attention["arg"]["is_causal"], True)

    def test_6_flops_of_triangular_systems(self):
        def build(rec):
            a, b = torch.randn(3, 16, 16, device="cuda"), torch.randn(3, 16, 5, device="cuda")
            return lambda: torch.linalg.solve_triangular(a, b, upper=False)

        self.assertEqual([event["fl"] for event in of(self.record(build), "linalg_solve_triangular")], [3 * 16 * 16 * 5])

    def test_7_histograms_of_integers(self):
        with self.recording():
            experts = torch.tensor([0, 2, 2, 3], device="cuda")
            self.assertEqual(torch.histc(experts, bins=4, min=0, max=3).tolist(), [1, 0, 2, 1])

    def test_8_one_thread_and_the_second_step(self):
        threads = set()

        def build(rec):
            model = blocks(1).to("cuda")
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)

            def train():
                y = model(torch.randn(4, 64, device="cuda"))
                y.register_hook(lambda gradient: threads.add(threading.get_ident()))
                y.mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            return train

        step = self.record(build)
        self.assertEqual(threads, {threading.get_ident()})
        states = [(size, born) for size, born, _, role in step["storages"] if role == "optimizer"]
        self.assertEqual(sorted(states), 2 * [(4, -1)] + 4 * [(65536, -1)])  # counters and moments of two weights
        self.assertEqual([event["op"] for event in kernels(step, phase="o")][-1], "_fused_adamw_")

    def test_9_questions_of_dtensor_are_no_work(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.experimental import context_parallel
        if OLD:
            self.skipTest("this PyTorch's context_parallel() cannot be recorded: it mixes fake tensors with real seeds")

        def build(rec):
            mesh = init_device_mesh("cuda", (4,))
            weight = torch.randn(64, 192, device="cuda", dtype=torch.bfloat16, requires_grad=True)

            def train():
                x = torch.randn(1, 512, 64, device="cuda", dtype=torch.bfloat16)
                with context_parallel(mesh, buffers=[x], buffer_seq_dims=[1], no_restore_buffers={x}):
                    q, k, v = (x @ weight).view(1, -1, 3, 1, 64).permute(2, 0, 3, 1, 4)
                    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION):
                        nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).mean().backward()
            return train

        step = self.record(build, world_size=4)
        attention = kernels(step, "sdpa")
        self.assertEqual(sorted({event["ph"] for event in attention}), ["b", "f"])
        self.assertEqual({max(tensor[1][2] for tensor in event["in"][:1]) for event in attention} - {64, 128}, set())
        collectives = [event for event in kernels(step, "comm") if "wait" not in event["op"]]
        self.assertTrue(collectives)
        self.assertTrue(all(step["groups"][event["g"]]["ranks"] == [0, 1, 2, 3] for event in collectives))

    def test_10_gradients_are_scattered_in_place(self):
        def build(rec):
            table = torch.randn(100, 64, device="cuda", requires_grad=True)

            def train():
                rows = table[torch.arange(8, device="cuda")]
                rows.gather(1, torch.zeros(8, 2, dtype=torch.int64, device="cuda")).sum().backward()
                table.grad = None
            return train

        step = self.record(build)
        names = [event["op"] for event in kernels(step, phase="b")]
        self.assertIn("scatter_add_", names)
        self.assertIn("index_put_", names)
        self.assertEqual(len([size for size, born, *_ in step["storages"] if born >= 0 and size == 4 * 100 * 64]), 1)

    # ---- programs

    def test_bytes_flops_and_lives_of_a_product(self):
        def build(rec):
            weight = torch.randn(32, 48, device="cuda")

            def train():
                y = torch.randn(16, 32, device="cuda") @ weight
                y.relu_()
            return train

        step = self.record(build)
        product, = kernels(step, "mm")
        self.assertEqual((product["fl"], product["rd"], product["wr"]), (2 * 16 * 32 * 48, 4 * (16 * 32 + 32 * 48), 4 * 16 * 48))
        relu, = of(step, "relu_")
        self.assertEqual((relu["rd"], relu["wr"]), (4 * 16 * 48, 4 * 16 * 48))
        self.assertEqual(step["peak"], 4 * (32 * 48 + 16 * 32 + 16 * 48))
        self.assertEqual(live_at(step, len(step["events"])), 4 * 32 * 48)

    def bytes_of(self, run):
        """Bytes that the last kernel of run() reads and writes."""
        event = kernels(self.record(lambda rec: run))[-1]
        return event["rd"], event["wr"]

    def test_bytes_of_what_is_overwritten_gathered_and_scattered(self):
        def filled(*shape, dtype=torch.float32):
            return torch.zeros(shape, device="cuda", dtype=dtype)

        table, rows, some = (lambda: filled(1000, 64)), (lambda: filled(8, 64)), (lambda: torch.arange(8, device="cuda"))
        row, index = 8 * 64 * 4, 8 * 8
        for run, read, wrote in (
            (lambda: table()[some()], row + index, row),
            (lambda: nn.functional.embedding(some(), table()), row + index, row),
            (lambda: table().index_copy_(0, some(), rows()), row + index, row),
            (lambda: table().index_add_(0, some(), rows()), 2 * row + index, row),
            (lambda: table().index_add(0, some(), rows()), 2 * row + index + 256000, row + 256000),
            (lambda: table().index_put_((some(),), rows()), row + index, row),
            (lambda: table().index_put_((some(),), filled()), 4 + index, row),
            (lambda: table().index_put_((some(),), rows(), accumulate=True), 2 * row + index, row),
            (lambda: table().index_fill_(0, some(), 1), index, row),
            (lambda: filled(64).scatter_(0, some(), filled(8)), 8 * 4 + index, 8 * 4),
            (lambda: filled(64).scatter_add_(0, some(), filled(9)), 2 * 8 * 4 + index, 8 * 4),
            (lambda: torch._foreach_copy_([rows()], [rows()]), row, row),
            (lambda: torch.cat([rows(), rows()], out=filled(16, 64)), 2 * row, 2 * row),
            (lambda: rows().normal_(), 0, row),
            (lambda: rows().new_zeros(4), 0, 4 * 4),
            (lambda: torch.ops.aten.nll_loss_forward(rows(), some(), None, 1, -100), index + 8 * 4, 2 * 4),
            (lambda: torch.ops.aten.nll_loss_backward(filled(), rows(), some(), None, 1, -100, filled()), index + 2 * 4, row),
        ):
            self.assertEqual(self.bytes_of(run), (read, wrote))

        def step(scale):
            w, g, m, v = (rows() for _ in range(4))
            torch._fused_adamw_([w], [g], [m], [v], [], [filled()], lr=1., beta1=.9, beta2=.9, weight_decay=0., eps=1., amsgrad=False,
                                maximize=False, grad_scale=scale)
        self.assertEqual(self.bytes_of(lambda: step(None)), (4 * row + 4, 3 * row))
        self.assertEqual(self.bytes_of(lambda: step(filled())), (4 * row + 8, 4 * row))  # it scales the gradients

    def test_gathered_weights_are_copied_once(self):
        step = self.record(self.fsdp(2), world_size=4)
        copied, = {(event["rd"], event["wr"]) for event in of(step, "all_gather_copy_in")}
        self.assertEqual(copied, (2 * 4 * 256 * 1024 // 4,) * 2)

    def test_gradients_are_accumulated_without_communication(self):
        from torch.distributed.fsdp import fully_shard

        def build(rec):
            model = blocks(2).to("cuda")
            fully_shard(model)

            def train():
                for micro in range(3):
                    model.set_requires_gradient_sync(micro == 2)
                    model(torch.randn(4, 64, device="cuda")).mean().backward()
                model.zero_grad()
            return train

        self.assertEqual(len(of(self.record(build, world_size=4), "_reduce_scatter_base_")), 1)

    def test_collectives_that_run_beside_are_waited_for(self):
        def build(rec):
            def train():
                x = torch.ones(256, device="cuda")
                work = dist.all_reduce(x, async_op=True)
                x2 = torch.ones(256, device="cuda")
                work.wait()
                dist.all_reduce(x2)
                sent = [dist.P2POp(dist.isend, x, 3), dist.P2POp(dist.irecv, x2, 1)]
                for work in dist.batch_isend_irecv(sent):
                    work.wait()
            return train

        step = self.record(build, world_size=4, rank=2)
        events = step["events"]
        first, second = (events.index(event) for event in of(step, "allreduce_"))
        self.assertIs(events[first]["async"], True)
        self.assertIs(events[second]["async"], False)
        waits = [event["on"] for event in events if event["op"] == "work_wait"]
        sent, received = (events.index(of(step, name)[0]) for name in ("send", "recv_"))
        self.assertEqual(waits, [first, sent, received])
        self.assertEqual((events[sent]["peer"], events[received]["peer"]), (3, 1))
        self.assertEqual(events[sent]["batch"], events[received]["batch"])

    def test_ulysses_and_uneven_all_to_all(self):
        def build(rec):
            def train():
                x = torch.ones(8, 16, device="cuda")
                dist.all_to_all_single(torch.empty_like(x), x)
                dist.all_to_all_single(torch.empty_like(x), x, [5, 1, 1, 1], [5, 1, 1, 1])
            return train

        even, uneven = kernels(self.record(build, world_size=4), "comm")
        self.assertEqual((even["full"], even.get("sent")), (512, None))
        self.assertEqual(uneven["sent"], [320, 64, 64, 64])

    def test_buckets_of_ddp_are_reduced_beside_backward(self):
        def build(rec):
            model = blocks(2, 256).to("cuda")
            wrapped = nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=2, find_unused_parameters=True)
            with self.assertRaisesRegex(longhaul.record.Refused, "register_comm_hook"):
                wrapped.register_comm_hook(None, None)

            def train():
                wrapped(torch.randn(4, 256, device="cuda")).mean().backward()
                model.zero_grad(set_to_none=False)
            return train

        step = self.record(build, world_size=4)
        events = step["events"]
        reductions = [event for event in of(step, "allreduce_") if event["ph"] == "b"]
        self.assertEqual(sum(event["full"] for event in reductions), 4 * 2 * 2 * 256 * 1024 + 4 * 4)  # and which are used
        self.assertGreater(len(reductions), 1)
        first = events.index(reductions[0])
        self.assertTrue(any(event.get("k") == "mm" for event in events[first:]))  # it overlaps with backward
        self.assertEqual([event["on"] for event in events if event["op"] == "work_wait"],
                         [events.index(r) for r in reductions if r["full"] > 16])

    def test_stages_of_a_pipeline(self):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        def build(rec):
            stage_model = blocks(1).to("cuda")
            example = torch.empty(1, 64, device="cuda", requires_grad=True)
            stage = PipelineStage(stage_model, 1, 4, torch.device("cuda"), input_args=(example,), output_args=(example,))
            schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda y, t: y.mean())

            def train():
                schedule.step()
                stage_model.zero_grad()
            return train

        step = self.record(build, world_size=4, rank=1)
        peers = {name: sorted(event["peer"] for event in of(step, name)) for name in ("send", "recv_")}
        self.assertEqual(peers, {"send": 4 * [0] + 4 * [2], "recv_": 4 * [0] + 4 * [2]})
        self.assertEqual(len(kernels(step, "mm", "b")), 4 * 4)
        waited = {event["on"] for event in step["events"] if event["op"] == "work_wait"}
        self.assertEqual(waited, {i for i, event in enumerate(step["events"]) if event.get("async")})

    def test_recordings_of_stages_fit_each_other(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

        def build(rec):
            mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("pp", "dp"))
            group = mesh["pp"].get_group()
            example = torch.empty(1, 64, device="cuda", requires_grad=True)
            parts = [fully_shard(blocks(1).to("cuda"), mesh=mesh["dp"]) for _ in range(2)]
            stages = [PipelineStage(part, 2 * place + dist.get_rank(group), 4, torch.device("cuda"), input_args=(example,),
                                    output_args=(example,), group=group) for place, part in enumerate(parts)]
            schedule = ScheduleInterleaved1F1B(stages, n_microbatches=4, loss_fn=lambda y, t: y.mean())
            first = dist.get_rank(group) == 0

            def train():
                schedule.step(*[torch.randn(4, 64, device="cuda")] if first else [],
                              **{} if first else {"target": torch.zeros(4, device="cuda")})
                for part in parts:
                    part.zero_grad()
            return train

        def messages(step, name, peer):
            return [(step["groups"][event["g"]]["ranks"], event["full"], event["out" if event["out"] else "in"][0][1:])
                    for event in of(step, name) if event["peer"] == peer]

        first, other = (self.record(build, world_size=4, rank=rank) for rank in (0, 2))
        for a, b, sent in (first, other, 3 * 4), (other, first, 3 * 4):
            self.assertEqual(messages(a, "send", b["rank"]), messages(b, "recv_", a["rank"]))
            self.assertEqual(len(messages(a, "send", b["rank"])), sent)
            self.assertEqual(messages(a, "send", b["rank"])[0][:2], ([0, 2], 4 * 64))

    def test_checkpoints_are_recomputed(self):
        from torch.utils.checkpoint import checkpoint

        class Checkpointed(nn.Sequential):
            def forward(self, x):
                for block in self:
                    x = checkpoint(block, x, use_reentrant=False)
                return x

        def build(rec):
            model = Checkpointed(*blocks(2)).to("cuda")

            def train():
                model(torch.randn(4, 64, device="cuda", requires_grad=True)).mean().backward()
                model.zero_grad()
            return train

        step = self.record(build)
        # What nothing in backward reads is not computed again: the second product of each block.
        self.assertEqual([len(kernels(step, "mm", phase)) for phase in "frb"], [4, 2, 8])
        self.assertEqual({step["modules"][event["m"]] for event in kernels(step, "mm", "r")}, {"0.0", "1.0"})

    def test_compiled_regions_are_fused(self):
        def build(rec):
            model = blocks(1)
            model.to("cuda")

            @torch.compile
            def forward(x):
                return model(torch.nn.functional.rms_norm(x, (64,)) * 2) + x

            def train():
                forward(torch.randn(4, 64, device="cuda", requires_grad=True)).mean().backward()
                model.zero_grad()
            return train

        torch._dynamo.reset()
        if OLD:
            with self.assertRaisesRegex(Exception, "torch.compile cannot be recorded with PyTorch"):
                self.record(build)
            return
        step = self.record(build)
        self.assertTrue(any("Inductor's own code for the GPU" in note for note in step["notes"]), step["notes"])
        self.assertEqual(len(kernels(step, "mm")), 6)
        norm = kernels(step, phase="f")[1]  # after the random numbers
        self.assertRegex(norm["op"], "^triton_per_fused_.*rms_norm.*mul")
        self.assertEqual(norm["k"], "reduction")
        # It reads x, and writes what the product reads and the mean square of each row; what lies between takes no memory.
        self.assertEqual(norm["rd"], 4 * 4 * 64)
        self.assertLessEqual(norm["wr"], 4 * (4 * 64 + 4))
        gelu, = [event for event in kernels(step, phase="f") if event["op"].endswith("gelu")]
        self.assertEqual((gelu["op"], gelu["k"], gelu["rd"], gelu["wr"]), ("triton_poi_fused_gelu", "elementwise", 4096, 4096))
        self.assertEqual([tensor[1] for tensor in gelu["in"]], [[4, 256], [4, 256]])  # as the kernel gets them, its result too
        self.assertIn("0.0", {step["modules"][event["m"]] for event in kernels(step, "mm")})
        # The gradient of the activation is one kernel, which takes the place of the gradient of its result.
        fused = {event["op"] for event in kernels(step, phase="b")}
        self.assertTrue(any(name.startswith("triton_poi_fused_gelu_gelu_backward") for name in fused), fused)

    def test_a_compiled_region_that_inductor_cannot_have_is_fused_by_sizes(self):
        def build(rec):
            @torch.compile
            def forward(x):
                return (torch.nn.functional.rms_norm(x, (64,)) * 2) + x

            return lambda: forward(torch.randn(4, 64, device="cuda"))

        if OLD:
            self.skipTest("this PyTorch's torch.compile cannot be recorded")
        torch._dynamo.reset()
        with mock.patch("torch._inductor.graph.GraphLowering.codegen", side_effect=KeyError("gone")):
            step = self.record(build)
        norm, = of(step, "fused")
        self.assertEqual((norm["k"], norm["rd"], norm["wr"]), ("reduction", 4 * 4 * 64, 4 * 4 * 64))
        self.assertIn("rsqrt", norm["ops"])
        note, = [note for note in step["notes"] if "compiled regions" in note]
        self.assertIn("Inductor's own code could not be read: KeyError: 'gone'", note)

    def test_compiled_regions_gather_rows_and_reuse_memory(self):
        def build(rec):
            table = torch.randn(1000, 64, device="cuda", requires_grad=True)
            index = torch.arange(8, device="cuda")

            @torch.compile
            def forward(scale):
                return ((table[index] * scale).exp() * 2).sin()

            def train():
                forward(torch.randn(8, 64, device="cuda")).sum().backward()
                table.grad = None
            return train

        if OLD:
            self.skipTest("this PyTorch's torch.compile cannot be recorded")
        torch._dynamo.reset()
        step = self.record(build)
        kernel, = [event for event in kernels(step, phase="f") if event["op"].startswith("triton_poi")]
        row = 4 * 8 * 64
        self.assertLessEqual(kernel["rd"], 2 * row + 8 * 8)  # the rows that it gathers of the table, not the table
        self.assertEqual([event["op"] for event in kernels(step, phase="b") if event["wr"] >= 256000][0].split("_")[0], "triton")

    def test_numbers_of_compiled_regions_are_known_where_they_follow(self):
        def build(rec):
            ids = torch.tensor([3, 1, 2, 3], device="cuda")

            @torch.compile
            def count(ids, x):
                return (ids + 1), x * 2

            def train():
                numbers, _ = count(ids, torch.randn(4, device="cuda"))
                self.assertEqual(numbers.tolist(), [4, 2, 3, 4])
            return train

        if OLD:
            self.skipTest("this PyTorch's torch.compile cannot be recorded")
        torch._dynamo.reset()
        self.record(build)

    def test_the_scaler_of_fp16_steps(self):
        def build(rec):
            model = blocks(1).to("cuda")
            optimizer = torch.optim.SGD(model.parameters(), lr=1)
            scaler = torch.amp.GradScaler("cuda")

            def train():
                with torch.autocast("cuda", torch.float16):
                    loss = model(torch.randn(4, 64, device="cuda")).float().mean()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
            return train

        step = self.record(build)
        self.assertTrue(kernels(step, phase="o"))  # no step is left out for infinite gradients
        self.assertEqual({event["in"][0][2] for event in kernels(step, "mm", "f")}, {"float16"})

    # ---- values

    def test_guesses_are_listed_with_their_place(self):
        def build(rec):
            def train():
                x = torch.randn(4, 8, device="cuda")
                x.sum().item()
                self.assertEqual(x.topk(2).indices.tolist(), [[0, 1], [2, 3], [4, 5], [6, 7]])
                self.assertFalse(torch.isnan(x).any())
            return train

        guessed = self.record(build)["guessed"]
        self.assertEqual(len(guessed), 3, guessed)
        self.assertTrue(all(key.startswith("check_record.py:") for key in guessed), guessed)
        self.assertTrue(any("the value of a float32 is taken to be 1" in key for key in guessed))

    def test_known_values_decide(self):
        with self.recording():
            x = torch.randn(4, device="cuda")
            longhaul.know(x, [1., 0., 2., 0.])
            self.assertEqual(x.nonzero().tolist(), [[0], [2]])
            flag = torch.randn((), device="cuda") > 0
            longhaul.know(flag, True)
            self.assertTrue(flag)
            with self.assertRaisesRegex(longhaul.Error, r"the value has the shape \[3\], the tensor \[4\]"):
                longhaul.know(x, [1., 2., 3.])

    def test_operators_without_results_forget_known_values(self):
        with self.recording():
            counts = [torch.zeros((), device="cuda"), torch.tensor(4.), torch.zeros(2, device="cuda")]
            longhaul.know(counts[2], 0)
            torch._foreach_add_(counts[:2], 1)
            torch._foreach_add_(counts[2:], 1)
            self.assertEqual([count.item() for count in counts[:2]], [1, 5])  # one number is followed
            self.assertNotEqual(counts[2].tolist(), [0, 0])

    def test_optimizers_take_lists_of_tensors(self):
        def build(rec):
            model = blocks(1).to("cuda")
            optimizer = torch.optim.AdamW(model.parameters())

            def train():
                model(torch.randn(4, 64, device="cuda")).mean().backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.)
                optimizer.step()
                optimizer.zero_grad()
            return train

        step = self.record(build)
        self.assertEqual(step["guessed"], {})  # the optimizer's counters are known
        names = [event["op"] for event in kernels(step)]
        self.assertTrue(any("_foreach_norm" in name for name in names), names)
        self.assertTrue(any("_foreach_addcdiv" in name for name in names), names)

    def test_what_the_host_waits_for(self):
        device = {"device": "cuda"}

        def waits(run):
            return [(event["op"], event["s"]) for event in self.record(lambda rec: run)["events"] if "k" not in event]

        for count, run in ((0, lambda: torch.randn(()).item()), (1, lambda: f"{torch.randn((), **device):.3f}"),
                           (1, lambda: torch.randn(4, **device).cpu()), (1, lambda: torch.randn(4).to("cuda")),
                           (0, lambda: torch.randn(4).to("cuda", non_blocking=True)),
                           (0, lambda: torch.randn(4, **device).to(torch.bfloat16))):
            self.assertEqual(waits(run), count * [("item", 0)])

        def everything():
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                torch.ones(4, device="cuda")
            dist.all_reduce(torch.ones(4, device="cuda"), async_op=True)
            torch.cuda.synchronize()

        events = self.record(lambda rec: everything, world_size=2)["events"]
        collective, = (i for i, event in enumerate(events) if event.get("k") == "comm")
        self.assertIn({"op": "work_wait", "s": 0, "on": collective}, events)
        self.assertEqual([event["s"] for event in events if event["op"] == "host_wait"], sorted({event["s"] for event in events}))
        self.assertEqual(len({event["s"] for event in events}), 2)

    def test_sparse_gradients_are_refused(self):
        with self.recording():
            table = nn.Embedding(100, 8, sparse=True, device="cuda")
            with self.assertRaisesRegex(longhaul.record.Refused, r"layout torch.sparse_coo: .*sparse=False"):
                table(torch.zeros(4, dtype=torch.int64, device="cuda")).sum().backward()

    def test_values_for_numpy_are_refused_and_pinned_batches_read(self):
        with self.recording():
            with self.assertRaisesRegex(longhaul.record.Refused, r"Tensor.numpy\(\): .*hold no values"):
                torch.randn(4).numpy()
            batch, = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4, 2)), 4, pin_memory=True)
            self.assertEqual(batch[0].shape, (4, 2))

    def test_shapes_of_unknown_values_are_refused(self):
        with self.recording():
            x = torch.randn(4, device="cuda") > 0
            for ask in x.nonzero, lambda: torch.ones(4, device="cuda")[x], lambda: torch.unique(torch.randn(4, device="cuda")):
                with self.assertRaisesRegex(longhaul.record.Refused, r"check_record.py:\d+: the shape of .* longhaul.know"):
                    ask()

    def test_custom_kernels_without_registrations_are_refused(self):
        with torch.library._scoped_library("longhaul_test", "DEF") as library:
            library.define("scan(Tensor x) -> Tensor")
            library.define("norm(Tensor x) -> Tensor")
            library.impl("norm", torch.empty_like, "Meta")
            with self.recording() as rec:
                x = torch.randn(4, 8, device="cuda")
                with self.assertRaisesRegex(longhaul.record.Refused, r"longhaul_test::scan .*register_fake\('longhaul_test::scan'\)"):
                    torch.ops.longhaul_test.scan(x)
                rec.begin()
                with self.assertRaisesRegex(longhaul.record.Refused, r"register_flop_formula\(torch.ops.longhaul_test.norm\)"):
                    torch.ops.longhaul_test.norm(x)
                formulas = torch.utils.flop_counter.flop_registry
                with mock.patch.dict(formulas, {torch.ops.longhaul_test.norm: lambda *a, **k: 96}):
                    torch.ops.longhaul_test.norm(x)
                rec.end()
                event, = of(rec.content(), "norm")
                self.assertEqual((event["op"], event["k"], event["fl"]), ("longhaul_test.norm", "opaque", 96))

    def test_launches_of_triton_are_refused(self):
        try:
            import triton
            import triton.language  # noqa: F401
        except ImportError:
            self.skipTest("triton is not installed")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "kernels.py"
            path.write_text("import triton\n@triton.jit\ndef scale(x):\n    pass\n")
            spec = importlib.util.spec_from_file_location("kernels", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            with self.recording():
                x = torch.ones(4, device="cuda")
                with self.assertRaisesRegex(longhaul.record.Refused, "the Triton kernel scale is launched directly.*custom_op"):
                    module.scale[(1,)](x)

    def test_launches_of_triton_in_compiled_regions_are_refused(self):
        if OLD or importlib.util.find_spec("triton") is None:
            self.skipTest("needs triton, and a torch.compile that can be recorded")
        done = record_script("import torch, triton, triton.language as tl\n@triton.jit\ndef scale(x, B: tl.constexpr):\n    pass\n"
                             "w = torch.ones(4, device='cuda', requires_grad=True)\noptimizer = torch.optim.SGD([w])\n"
                             "@torch.compile\ndef loss(w):\n    y = w * 2\n    scale[(1,)](y, 64)\n    return y.sum()\n"
                             "for _ in range(3):\n    loss(w).backward()\n    optimizer.step()\n")
        self.assertEqual((done.code, done.files), (2, []))
        self.assertRegex(done.error, "the Triton kernel scale is launched directly.*custom_op")

    def test_custom_operators_without_fake_results_are_refused(self):
        @torch.library.custom_op("longhaul_test::bare", mutates_args=())
        def bare(x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        with self.recording():
            with self.assertRaisesRegex(longhaul.record.Refused, r"longhaul_test::bare .*register_fake\('longhaul_test::bare'\)"):
                bare(torch.ones(4, device="cuda"))

    def test_launches_outside_of_operators_are_refused(self):
        with self.recording() as rec:
            rec.begin()
            longhaul.record.STUB.cudaLaunchKernel()
            with self.assertRaisesRegex(longhaul.record.Refused, "a CUDA kernel was launched outside of PyTorch's operators"):
                torch.ones(4, device="cuda").add_(1)

    # ---- the context

    def test_everything_is_put_back(self):
        held = [(torch, "save"), (torch.nn.Module, "_apply"), (torch.UntypedStorage, "resize_"), (dist, "init_process_group"),
                (torch.autograd, "backward"), (dist.Work, "wait"), (longhaul, "_knower")]
        before = [getattr(owner, name) for owner, name in held]
        for fails in False, True:
            with contextlib.suppress(ZeroDivisionError), longhaul.record.Step(world_size=2) as rec:
                self.assertTrue(dist.is_initialized())
                1 // (not fails)
            self.assertEqual([getattr(owner, name) for owner, name in held], before)
            self.assertFalse(dist.is_initialized())
            self.assertEqual(type(torch.ones(1)), torch.Tensor)
        self.assertFalse(rec.patches.old)
        self.assertIsNone(os.environ.get("LONGHAUL_RECORDING"))

    def test_files_are_written_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.json"
            path.write_text("old")
            with contextlib.suppress(ZeroDivisionError), longhaul.record.Step(path) as rec:
                with rec.step():
                    torch.ones(4, device="cuda").add_(1)
                    1 // 0
            self.assertEqual(path.read_text(), "old")
            with self.assertRaisesRegex(longhaul.record.Refused, "no step was recorded"), longhaul.record.Step(path):
                pass
            with longhaul.record.Step(path) as rec, rec.step():
                torch.ones(4, device="cuda").add_(1)
            self.assertEqual(json.loads(path.read_text())["format"], "longhaul-step")
            self.assertEqual(os.listdir(folder), ["step.json"])
            with self.assertRaisesRegex(longhaul.record.Refused, "cannot write /no/such/step.json"):
                rec.write("/no/such/step.json")

    def test_a_program_may_end_its_groups(self):
        with self.recording(world_size=2):
            dist.destroy_process_group()
        self.assertFalse(dist.is_initialized())

    def test_options_that_cannot_be(self):
        with self.assertRaisesRegex(longhaul.record.Refused, "rank 4 is not below the world size 4"):
            longhaul.record.Step(world_size=4, rank=4)
        with self.assertRaisesRegex(longhaul.record.Refused, "no device 'h1'; there are: a100-40g, "):
            longhaul.record.Step(device="h1")


@unittest.skipUnless(FOUND, "PyTorch is not installed")
class Command(unittest.TestCase):
    def test_a_script_is_recorded_unchanged(self):
        done = record_script(SCRIPT.format(here='print("step", step, os.environ["WORLD_SIZE"])'), "--world-size", "4")
        self.assertEqual((done.code, done.files), (0, ["step.json.gz"]), done.errors)
        self.assertEqual(done.out.splitlines()[:2], ["step 0 4", "step 1 4"])
        self.assertIn("step.json.gz: ", done.out)
        self.assertEqual((done.step["world"], done.step["command"]), (4, ["train.py"]))
        self.assertEqual([event["op"] for event in kernels(done.step, phase="o")][-1], "_fused_adamw_")
        self.assertEqual(len(kernels(done.step, "mm")), 2)
        try:
            import jsonschema
        except ImportError:
            return
        jsonschema.validate(done.step, json.loads((SOURCE / "docs/schema/step.json").read_text()))

    def test_what_cannot_be_recorded_is_said_and_leaves_no_file(self):
        loader = "torch.utils.data.DataLoader([1, 2], num_workers=2)"
        for here, want in (
            ("1 // 0", r"train.py:9: the script failed: ZeroDivisionError"),
            ("raise SystemExit('no data')", r"train.py:9: the script ended itself: no data"),
            ("if loss > 3: print('large')", r"train.py:9: the program branches on the value of a tensor.*longhaul.know"),
            ("torch.save(model.state_dict(), 'x.pt')", r"train.py:9: torch.save\(\): .*hold no values"),
            (loader, r"train.py:9: DataLoader\(num_workers=2\): .*num_workers=0"),
            ("break", r"train.py: the script ended after 0 steps of the optimizer; a recording needs 2"),
            ("if step: break", r"train.py: the script ended after 1 step of the optimizer"),
        ):
            with self.subTest(here):
                done = record_script(SCRIPT.format(here=here))
                self.assertEqual((done.code, done.files), (2, []))
                self.assertRegex(done.error, "^longhaul.record: error: " + want)

    def test_optimizer_steps_without_a_backward_belong_to_the_step_before(self):
        done = record_script(SCRIPT.format(here="optimizer.step()"))  # as DeepSpeed's, for one group of parameters each
        self.assertEqual(done.code, 0, done.errors)
        self.assertEqual(len(kernels(done.step, "mm")), 2)
        self.assertEqual(len(of(done.step, "_fused_adamw_")), 2)

    def trainer(self, *words):
        """Records transformers' Trainer."""
        for name in ("transformers", "accelerate", "datasets", *words[:1]):
            if importlib.util.find_spec(name) is None and name not in ("ddp", "fsdp"):
                self.skipTest(f"{name} is not installed")
        done = record_script(TRAINER.replace("WORDS", repr(words)), "--world-size", "8")
        self.assertEqual(done.code, 0, done.errors)
        self.assertEqual(done.step["tokens"], 512)
        self.assertEqual(len(kernels(done.step, "sdpa", "f")), 2)
        self.assertEqual(len(kernels(done.step, "mm")), 3 * (2 * 7 + 1))
        return done.step

    def test_the_trainer_with_ddp(self):
        step = self.trainer("ddp")
        self.assertEqual(sum(event["full"] for event in of(step, "allreduce_") if event["ph"] == "b"),
                         4 * PARAMETERS + 4 * (2 * 9 + 3))  # and which of them are used

    def test_the_trainer_with_fsdp2(self):
        step = self.trainer("fsdp")
        self.assertEqual(sum(event["full"] for event in of(step, "_reduce_scatter_base_")), 2 * PARAMETERS)

    def test_deepspeed(self):
        step = self.trainer("deepspeed", 1)
        self.assertGreaterEqual(sum(event["full"] for event in of(step, "allreduce_")), 2 * PARAMETERS)
        self.assertGreaterEqual(sum(event["full"] for event in comms_of_parameters(step)), 2 * PARAMETERS)
        step = self.trainer("deepspeed", 2)
        self.assertGreaterEqual(sum(event["full"] for event in of(step, "allreduce_")), 2 * PARAMETERS)
        step = self.trainer("deepspeed", 3)
        self.assertGreaterEqual(sum(event["full"] for event in of(step, "_allgather_base_")), 2 * PARAMETERS)

    def test_a_part_of_the_optimizer_on_each_rank(self):
        done = record_script(ZERO_1, "--world-size", "4")
        self.assertEqual(done.code, 0, done.errors)
        reduced, = of(done.step, "allreduce_")
        self.assertEqual((reduced["full"], reduced["ph"]), (4 * 8 * 64 * 64, "b"))
        adamw, = of(done.step, "_fused_adamw_")
        self.assertEqual(adamw["wr"], 3 * 4 * 2 * 64 * 64)  # two of eight weights, and their moments
        sent = comms_of_parameters(done.step)
        self.assertEqual(sum(event["full"] for event in sent), 4 * 8 * 64 * 64)

    def test_the_environment_sets_what_a_command_leaves_open(self):
        environment = {"LONGHAUL_RECORD_WORLD_SIZE": "4", "LONGHAUL_RECORD_RANK": "3", "LONGHAUL_RECORD_DEVICE": "b200"}
        with mock.patch.dict(os.environ, environment):
            done = record_script(SCRIPT.format(here="pass"))
            self.assertEqual((done.code, done.errors), (0, ""))
            self.assertEqual([done.step[key] for key in ("world", "rank", "device")], [4, 3, "b200"])
            done = record_script(SCRIPT.format(here="pass"), "--rank", "4")
            self.assertEqual((done.code, done.error), (2, "longhaul.record: error: rank 4 is not below the world size 4"))

    def test_bad_options(self):
        code, _, error, files = run("-m", "longhaul.record", "no.py")
        self.assertEqual((code, error, files), (2, "longhaul.record: error: no.py: there is no such script\n", []))
        done = record_script(SCRIPT, "-o", "no/step.json")
        self.assertEqual(done.code, 2)
        self.assertIn("the folder no is missing or cannot be written", done.error)
        for path in "", ".":
            done = record_script(SCRIPT, "-o", path)
            self.assertEqual((done.code, done.files), (2, []))
            self.assertIn("the name of a file is needed", done.error)
        done = record_script(SCRIPT.format(here="raise KeyboardInterrupt"))
        self.assertEqual((done.code, done.errors), (130, "longhaul.record: interrupted; nothing was written\n"))
        done = record_script(SCRIPT.format(here="pass").replace('"cuda"', '"cpu"').replace("fused=True", "foreach=False"))
        self.assertEqual(done.code, 2)
        self.assertIn('the recorded step ran nothing on the GPU: move the model and its inputs to "cuda"', done.error)
        done = record_script(SCRIPT, "--rank", "3")
        self.assertEqual((done.code, done.error), (2, "longhaul.record: error: rank 3 is not below the world size 1"))

    def test_torch_must_not_be_imported_first(self):
        code, _, error, _ = run("-c", "import torch, longhaul.record")
        self.assertEqual(code, 1)
        self.assertIn("torch is imported already: import longhaul.record before it", error)


if __name__ == "__main__":
    if FOUND:
        unittest.main()
    result = unittest.main(argv=sys.argv[:1] + ["WithoutTorch"] if len(sys.argv) == 1 else sys.argv, exit=False).result
    print("skipped: PyTorch is not installed, so only what is refused without it was checked")
    sys.exit(77 if result.wasSuccessful() else 1)
