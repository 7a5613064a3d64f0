"""What is replaced in PyTorch and transformers while a recorder is active, and put back afterwards.

Each function yields (object, attribute, replacement). Private names of PyTorch stand here and in step.py only; the tests of
each release of PyTorch show whether they still mean the same."""
import logging
import re
import sys

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim import optimizer as optimizers
from torch.utils import _foreach_utils

import longhaul
from longhaul.record import Refused, kinds


class Patches:
    """Attributes that are replaced, and restored in reverse order."""

    def __init__(self):
        self.old = []

    def put(self, owner, name, value):
        self.old.append((owner, name, vars(owner).get(name, self)))
        setattr(owner, name, value)

    def restore(self):
        for owner, name, value in reversed(self.old):
            if value is self:  # it was inherited
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        self.old.clear()


def put_all(patches, recorder):
    for rows in (_modules(), _storages(recorder), _phases(recorder), _groups(recorder), _ddp(), _works(recorder), _refusals(),
                 _values(recorder), _compilers(recorder), _questions(recorder)):
        for owner, name, value in rows:
            patches.put(owner, name, value)


# Functions of packages that the program imports itself, and what they return in a recording.
LATE = (
    # It takes fake tensors for tracing, and would build a mask and repeat keys and values, which a GPU run does not.
    ("transformers.utils.import_utils", "is_fake_tensor", False),
    ("deepspeed.runtime", "is_invalid_grad_norm", False),  # it branches on the norm of gradients, which are finite
)


def put_late(patches):
    """Replaces the functions of LATE in the modules of their package that have them."""
    replaced = {(id(owner), name) for owner, name, _ in patches.old}
    for package, name, value in LATE:
        for key, module in list(sys.modules.items()):
            if f"{key}.".startswith(f"{package}.") and name in vars(module) and (id(module), name) not in replaced:
                patches.put(module, name, lambda *arguments, value=value: value)


def _modules():
    done = {}  # by the id of an old parameter, it and the new one; empty between two outermost calls
    depth = 0

    def apply(module, function, recurse=True):
        """Module.to(): PyTorch swaps tensors of subclasses, which fake ones refuse. Parameters take over the new values."""
        nonlocal depth
        depth += 1
        try:
            for child in module.children() if recurse else ():
                child._apply(function)
            for key, old in module._parameters.items():
                if old is not None:
                    if id(old) not in done:
                        done[id(old)] = (old, _moved(old, function))
                    module._parameters[key] = done[id(old)][1]
            for key, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[key] = function(buffer)
        finally:
            depth -= 1
            if depth == 0:
                done.clear()
        return module

    yield torch.nn.Module, "_apply", apply

    data = torch.Tensor.data

    def replace(tensor, value):  # `parameter.data = ...` leaves a fake tensor's device as it was
        data.__set__(tensor, value)
        if isinstance(value, FakeTensor):
            tensor.fake_device = value.fake_device

    yield FakeTensor, "data", property(data.__get__, replace)


def _moved(old, function):
    with torch.no_grad():
        new = function(old)
    if new is old:
        return old
    if isinstance(old, FakeTensor):
        gradient, old.grad = old.grad, None
        old.data = new
        if gradient is not None:
            with torch.no_grad():
                old.grad = function(gradient)
        return old
    new = torch.nn.Parameter(new, old.requires_grad)
    for key, value in vars(old).items():  # what the program has noted at the parameter; the new one has its own device
        vars(new).setdefault(key, value)
    return new


def _storages(recorder):
    resize = torch.UntypedStorage.resize_

    def resized(storage, size):  # FSDP frees and refills storages in place, which is no operator
        recorder.resized(storage, size)
        return resize(storage, size)

    yield torch.UntypedStorage, "resize_", resized


def _phases(recorder):
    for name in "backward", "grad":
        def phased(*arguments, _run=getattr(torch.autograd, name), **keywords):
            before, recorder.phase = recorder.phase, "b"
            recorder.backwards += 1
            try:
                return _run(*arguments, **keywords)
            finally:
                recorder.phase = before

        yield torch.autograd, name, phased


def _groups(recorder):
    start = dist.init_process_group

    def init_process_group(backend=None, *arguments, **keywords):
        if not dist.is_initialized():
            from torch.testing._internal.distributed.fake_pg import FakeStore
            start("fake", rank=recorder.rank, world_size=recorder.world, store=FakeStore())

    fresh = dist.new_group

    def new_group(ranks=None, timeout=None, backend=None, *arguments, **keywords):
        return fresh(ranks, timeout, None, *arguments, **keywords)

    for owner in dist, dist.distributed_c10d:
        yield owner, "init_process_group", init_process_group
        yield owner, "new_group", new_group


def _ddp():
    """DDP's reducer waits for a future that the work of fake groups does not have: a hook of ours reduces each bucket in its
    place. The division by the number of ranks is not in it, because the reducer does it as it fills the bucket."""
    from torch.nn.parallel import distributed
    make, register = distributed.DistributedDataParallel.__init__, distributed.DistributedDataParallel.register_comm_hook

    def reduce(group, bucket):
        work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
        torch.autograd.Variable._execution_engine.queue_callback(work.wait)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def made(self, *arguments, **keywords):
        make(self, *arguments, **keywords)
        register(self, self.process_group, reduce)

    def refused(self, *arguments, **keywords):
        raise Refused("DistributedDataParallel.register_comm_hook(): a hook of the program needs the futures of a real process "
                      "group; record without it")

    # Its statistics are of a real reducer's events, which its first iterations would wait for.
    yield torch._C._distributed_c10d.Logger, "set_runtime_stats_and_log", lambda logger: None
    yield distributed, "_verify_param_shape_across_processes", lambda *arguments, **keywords: True  # only this rank runs
    yield distributed.DistributedDataParallel, "__init__", made
    yield distributed.DistributedDataParallel, "register_comm_hook", refused


# Methods of ProcessGroup that return a Work.
WORKS = """allgather _allgather_base allreduce alltoall alltoall_base broadcast gather reduce scatter reduce_scatter
    _reduce_scatter_base send recv recv_anysource allgather_coalesced allreduce_coalesced allgather_into_tensor_coalesced
    reduce_scatter_tensor_coalesced barrier""".split()


def _works(recorder):
    group = torch._C._distributed_c10d.ProcessGroup
    for name in WORKS:
        if not hasattr(group, name):
            continue

        def method(self, *arguments, _run=getattr(group, name), **keywords):
            before = len(recorder.events)
            work = _run(self, *arguments, **keywords)
            recorder.started(work, before)
            return work

        yield group, name, method

    batch = dist.batch_isend_irecv

    def batch_isend_irecv(operations):
        with recorder.batched():
            return batch(operations)

    for owner in dist, dist.distributed_c10d:
        yield owner, "batch_isend_irecv", batch_isend_irecv

    for owner in dist.Work, torch._C._distributed_c10d.FakeWork:
        for name in "wait", "synchronize":
            if name not in vars(owner):
                continue

            def waited(work, *arguments, _run=getattr(owner, name), **keywords):
                recorder.waited(work)
                return _run(work, *arguments, **keywords)

            yield owner, name, waited


def _refusals():
    def refuse(what, instead):
        def refused(*arguments, **keywords):
            raise Refused(f"{what}: {instead}")
        return refused

    values = "the tensors of a recording hold no values; save checkpoints after the recorded step, or not in a recording " \
        "(LONGHAUL_RECORDING is set in the environment)"
    yield torch, "save", refuse("torch.save()", values)
    import torch.distributed.checkpoint as checkpoint
    for name in "save", "async_save":
        yield checkpoint, name, refuse(f"torch.distributed.checkpoint.{name}()", values)
    try:
        import safetensors.torch
    except ImportError:
        pass
    else:
        for name in "save", "save_file", "save_model":
            yield safetensors.torch, name, refuse(f"safetensors.torch.{name}()", values)

    loader = torch.utils.data.DataLoader
    make = loader.__init__

    def made(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, *arguments, **keywords):
        if num_workers:
            raise Refused(f"DataLoader(num_workers={num_workers}): worker processes cannot be recorded; read with num_workers=0, "
                          "which the recorded step does not notice")
        make(self, dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, *arguments, **keywords)

    yield loader, "__init__", made

    try:
        from triton.runtime.jit import JITFunction
    except ImportError:
        return

    def run(self, *arguments, **keywords):
        raise kinds.launched_directly(getattr(self, "__name__", "kernel"))

    yield JITFunction, "run", run


def _values(recorder):
    yield longhaul, "_knower", recorder.know
    for owner in optimizers, _foreach_utils:  # otherwise optimizers take a loop over the parameters
        yield owner, "_foreach_supported_types", [*owner._foreach_supported_types, FakeTensor]
    show, read = torch.Tensor.__format__, torch.Tensor.numpy

    def formatted(tensor, text):  # PyTorch formats the number of a plain tensor only
        return format(tensor.item(), text) if text and tensor.dim() == 0 else show(tensor, text)

    def numpy(tensor, **keywords):
        if isinstance(tensor, FakeTensor):
            raise Refused("Tensor.numpy(): the tensors of a recording hold no values; leave it out while LONGHAUL_RECORDING is "
                          "set in the environment")
        return read(tensor, **keywords)

    def truncated(tensor, mean, std, a, b, generator=None):  # PyTorch draws until no value lies outside
        with torch.no_grad():
            return tensor.normal_(mean, std)

    yield torch.nn.init, "_no_grad_trunc_normal_", truncated
    yield torch.Tensor, "__format__", formatted
    yield torch.Tensor, "numpy", numpy
    yield torch.Tensor, "pin_memory", lambda tensor, device=None: tensor


def _compilers(recorder):
    def compiled(self, model, inputs):
        from longhaul.record import fusion
        return fusion.backend(recorder)(model, inputs)

    yield torch._TorchCompileInductorWrapper, "__call__", compiled


def _questions(recorder):
    from torch.distributed.tensor import _sharding_prop
    owner = _sharding_prop.ShardingPropagator
    for name in "propagate_op_sharding_non_cached", "_propagate_tensor_meta_non_cached":
        def ask(self, *arguments, _run=getattr(owner, name), **keywords):
            with recorder.unheard():  # DTensor runs an operator on whole tensors to learn the shape of its result
                return _run(self, *arguments, **keywords)

        yield owner, name, ask


# Sentences of libraries that say which implementation of a layer runs.
_SAYS_IMPLEMENTATION = re.compile(r"fast path|fall(s|ing)? ?back|fallback|naive|sequential implementation|implementation", re.I)


class Listener(logging.Handler):
    """Collects what libraries log of the implementation that they choose."""

    def __init__(self, notes):
        super().__init__(logging.WARNING)
        self.notes = notes

    def emit(self, record):
        text = " ".join(record.getMessage().split())
        if _SAYS_IMPLEMENTATION.search(text) and text not in self.notes:
            self.notes.append(f"{record.name.split('.')[0]} says: {text}")
