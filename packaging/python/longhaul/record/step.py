"""The recorder: a dispatch mode that sees every operator of a program on fake tensors."""
import contextlib
import ctypes
import json
import logging
import math
import os
import sys
import weakref

import torch
import torch.distributed as dist
import torch.distributed._tools.fake_collectives  # gives c10d's operators fake results in PyTorch 2.8
from torch._subclasses import fake_tensor
from torch.fx.experimental import proxy_tensor
from torch.optim import optimizer as optimizers
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

import longhaul.chakra
from longhaul import record
from longhaul.record import Refused, kinds, patches

aten = torch.ops.aten
_tensors = kinds.tensors


class _Entry(ctypes.Structure):
    _fields_ = [("what", ctypes.c_int), ("stream", ctypes.c_uint), ("event", ctypes.c_uint)]


_LOG_SIZE = 1 << 16
_LOG = (_Entry * _LOG_SIZE)()
_SYNCS = {1: "record", 2: "wait", 3: "host_wait"}
_LAUNCH, _DEVICE_WAIT = 4, 5

_SMALL = 1 << 20  # elements of an integer tensor of the host that stays real
_SCATTERS = {f"aten::{name}" for name in ("index_put", "index_add", "scatter", "scatter_add", "scatter_reduce", "masked_scatter")}
_KNOWN = 1 << 22  # elements of an integer tensor of the device whose values are computed beside it


def _is_wrapper(kind):
    """A subclass such as DTensor, which dispatches to the tensors that it wraps."""
    return kind is not fake_tensor.FakeTensor and issubclass(kind, torch.Tensor) and (
        hasattr(kind, "__tensor_flatten__") or kind.__name__ == "AsyncCollectiveTensor")


def _bytes_of(tree):
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(tree))


def _is_followed(tensors):
    """True if the values of tensors are computed where they follow from known ones."""
    return all(tensor.numel() == 1 or tensor.numel() <= _KNOWN and not tensor.is_floating_point() and not tensor.is_complex()
               for tensor in tensors)


class Step(TorchDispatchMode):
    """A context within which PyTorch's tensors are fake and its GPU is a stub.

    path: the file that is written when the context ends without an exception; .gz compresses it.
    world_size, rank: of the job; process groups are fake, and only this rank runs.
    device: a row of devices.csv, among whose kernels PyTorch chooses.
    tokens: those that this rank reads in the step; by default those of the model's first embedding.
    command: the script and its arguments, for the file."""

    @classmethod
    def is_infra_mode(cls):  # otherwise torch.compile runs eagerly within the mode
        return True

    supports_higher_order_operators = True

    def __init__(self, path=None, world_size=1, rank=0, device="h100-sxm", tokens=None, command=None):
        super().__init__()
        if not 0 <= rank < world_size:
            raise Refused(f"rank {rank} is not below the world size {world_size}")
        record.set_device(device)
        self.path, self.world, self.rank, self.device = path, world_size, rank, device
        self.tokens, self.command = tokens, command
        self.fake = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
        self.on = False          # within step()
        self.events = []
        self.storages = []       # dicts, in order of allocation
        self.live = {}           # by the address of a storage, its dict
        self.groups = {}
        self.modules = {"": 0}   # index by name
        self.names = weakref.WeakKeyDictionary()
        self.stack = []          # names of the modules whose forward runs
        self.sequence = {}       # the module of an autograd sequence number
        self.phase = "f"
        self.backwards = 0       # calls of autograd
        self.works = {}          # by id, a Work and the events that it stands for
        self.batch = None        # the number of the sends and receives that are being coalesced
        self.batches = 0
        self.current = self.peak = 0
        self.guessed, self.notes = {}, []
        self.indices = {}        # elements that each embedding reads, by its module
        self.silent = 0          # above 0: what runs is not recorded
        self.recorded = False

    # ---- entering and leaving

    def __enter__(self):
        self.patches = patches.Patches()
        self.hooks = []
        self.exits = contextlib.ExitStack()
        self.started_groups = not dist.is_initialized() and self.world > 1
        try:
            self._enter()
        except BaseException:
            self._leave()
            raise
        return self

    def _enter(self):
        patches.put_all(self.patches, self)
        if self.world > 1:
            dist.init_process_group()
        self.exits.callback(os.environ.pop, "LONGHAUL_RECORDING", None)
        os.environ["LONGHAUL_RECORDING"] = "1"
        listener = patches.Listener(self.notes)
        for name in "", "transformers", "diffusers":  # loggers that do not propagate
            logger = logging.getLogger(name)
            logger.addHandler(listener)
            self.exits.callback(logger.removeHandler, listener)
        self.exits.enter_context(torch.autograd.set_multithreading_enabled(False))
        self.exits.enter_context(self.fake)
        modules = torch.nn.modules.module
        self.hooks = [
            modules.register_module_forward_pre_hook(self._module_begins),
            modules.register_module_forward_hook(self._module_ends, always_call=True),
            optimizers.register_optimizer_step_pre_hook(lambda o, a, k: self._optimizer(o, True)),
            optimizers.register_optimizer_step_post_hook(lambda o, a, k: self._optimizer(o, False)),
        ]
        super().__enter__()
        self.exits.push(super().__exit__)

    def _leave(self):
        self.exits.close()
        if self.started_groups and dist.is_initialized():  # the program may have ended them itself
            dist.destroy_process_group()
        for hook in self.hooks:
            hook.remove()
        self.patches.restore()

    def __exit__(self, kind, value, trace):
        self._leave()
        if kind is None and self.path is not None:
            if not self.recorded:
                raise Refused("no step was recorded: run one within `with rec.step():`")
            self.write(self.path)

    @contextlib.contextmanager
    def unheard(self):
        """What runs within it is no event, and its results take no memory until an event refers to them."""
        self.silent += 1
        try:
            yield
        finally:
            self.silent -= 1

    @contextlib.contextmanager
    def step(self):
        """What runs within it is the recorded step. A step must have run before, which makes the optimizer's states."""
        self.begin()
        yield
        self.end()

    def begin(self):
        self._drain()
        self.events, self.guessed, self.groups, self.indices = [], {}, {}, {}
        self.sequence, self.works, self.modules, self.batches = {}, {}, {"": 0}, 0
        self.storages = [entry for entry in self.storages if entry["died"] is None]
        for index, entry in enumerate(self.storages):
            entry.update(id=index, born=-1, role=entry["role"] or "given")
        self.peak = self.current
        self.on = True

    def end(self):
        self._drain()
        self.on, self.recorded = False, True

    # ---- modules, optimizer, phases

    def _module_begins(self, module, arguments):
        if torch.compiler.is_compiling():
            return
        if not self.stack:
            patches.put_late(self.patches)
            for name, child in module.named_modules():
                self.names.setdefault(child, name)
            self._implementation(module)
            for name, tensor in module.named_parameters():
                self._set_role(tensor, f"param {name}")
            for name, tensor in module.named_buffers():
                self._set_role(tensor, f"buffer {name}")
        self.stack.append(self.names.get(module) or type(module).__name__ if self.stack else self.names.get(module, ""))

    def _module_ends(self, module, arguments, result):
        if not torch.compiler.is_compiling() and self.stack:
            self.stack.pop()

    def _implementation(self, module):
        """Notes which implementations a model of transformers was told to use."""
        config = getattr(module, "config", None)
        experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
        for what, member in ("attention", "_attn_implementation"), ("experts", "_experts_implementation"):
            chosen = getattr(config, member, None)
            if isinstance(chosen, str) and (what == "attention" or experts):
                self._note(f"{type(module).__name__}: the implementation of {what} is {chosen}")

    def _note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def _set_role(self, tensor, role):
        tensor = getattr(tensor, "_local_tensor", tensor)
        if tensor.device.type != "cuda" or _is_wrapper(type(tensor)):
            return
        storage = tensor.untyped_storage()
        entry = self.live.get(storage._cdata) or self._add(storage, -1)
        entry["role"] = role

    def _optimizer(self, optimizer, before):
        if not self.on:
            return
        self.phase = "o" if before else "f"
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if before and parameter.grad is not None:
                    self._set_role(parameter.grad, "grad")
                if not before:
                    for tensor in _tensors(list(optimizer.state.get(parameter, {}).values())):
                        self._set_role(tensor, "optimizer")

    # ---- storages

    def _add(self, storage, born):
        entry = {"id": len(self.storages), "bytes": storage.nbytes(), "born": born, "died": None,
                 "role": "given" if born < 0 else ""}
        self.live[storage._cdata] = entry
        self.storages.append(entry)
        self._grow(entry["bytes"])
        weakref.finalize(storage, self._drop, storage._cdata).atexit = False
        return entry

    def _grow(self, count):
        self.current += count
        self.peak = max(self.peak, self.current)

    def _drop(self, address):
        entry = self.live.pop(address, None)
        if entry is not None:
            entry["died"] = len(self.events)
            self.current -= entry["bytes"]

    def resized(self, storage, size):
        old = self.live.get(storage._cdata)
        if old is None:
            return
        self._drop(storage._cdata)
        new = {"id": len(self.storages), "bytes": size, "born": len(self.events) if self.on else -1, "died": None,
               "role": "unsharded" if self.on else old["role"]}
        self.live[storage._cdata] = new
        self.storages.append(new)
        self._grow(size)

    def _reference(self, tensor, born):
        """A tensor as the file has it."""
        entry = None
        if tensor.layout is not torch.strided:
            raise Refused(f"a tensor is of the layout {tensor.layout}: sparse tensors are not recorded; let an embedding have "
                          "dense gradients (sparse=False)")
        if tensor.device.type != "cpu":
            storage = tensor.untyped_storage()
            entry = self.live.get(storage._cdata) or self._add(storage, born)
        row = [entry["id"] if entry else -1, list(tensor.shape), str(tensor.dtype).removeprefix("torch.")]
        return row if tensor.is_contiguous() else [*row, list(tensor.stride())]

    # ---- streams and waits

    def _stream(self):
        return torch._C._cuda_getCurrentRawStream(0)

    def _drain(self):
        """Takes over what the stub has seen since."""
        count = record.STUB.stub_take_log(_LOG, _LOG_SIZE)
        if count < 0:
            raise Refused("more than 65536 events of streams happened between two operators")
        for entry in _LOG[:count]:
            if entry.what == _LAUNCH:
                raise Refused("a CUDA kernel was launched outside of PyTorch's operators, so its shapes and flops are unknown: "
                              "wrap it by @torch.library.custom_op, register its shapes by @OPERATOR.register_fake and its "
                              "flops by @torch.utils.flop_counter.register_flop_formula, or choose the program's "
                              "implementation without it")
            if self.on and entry.what == _DEVICE_WAIT:
                self._wait_for_all()
            elif self.on:
                self.events.append({"op": _SYNCS[entry.what], "s": entry.stream, "e": entry.event})

    def _wait_for_all(self):
        """The host waits for all streams, and for collectives that run beside them."""
        beside = [index for _, indices in self.works.values() for index in indices if self.events[index].get("async")]
        self.works.clear()
        self.events += [{"op": "work_wait", "s": 0, "on": index} for index in beside]
        self.events += [{"op": "host_wait", "s": stream, "e": 0} for stream in sorted({0} | {event["s"] for event in self.events})]

    def _sync(self, what, **more):
        if self.on:
            self._drain()
            self.events.append({"op": what, "s": self._stream(), **more})

    @contextlib.contextmanager
    def batched(self):
        """Sends and receives within are issued as one."""
        self.batch, self.batches = self.batches, self.batches + 1
        try:
            yield
        finally:
            self.batch = None

    def started(self, work, before):
        """A Work was returned for the collectives among the events since `before`."""
        if self.on and work is not None:
            self.works[id(work)] = (work, [i for i in range(before, len(self.events)) if self.events[i].get("k") == "comm"])

    def waited(self, work):
        for index in self.works.pop(id(work), (None, ()))[1]:
            if self.events[index].get("async"):
                self._sync("work_wait", on=index)

    # ---- values

    def know(self, tensor, value):
        """Gives a tensor the values that the program will read of it: of its shape, or one for all elements."""
        inner = getattr(tensor, "_local_tensor", tensor)
        with no_dispatch():
            known = torch.as_tensor(value, dtype=inner.dtype)
            if known.shape != inner.shape and known.numel() != 1:
                raise Refused(f"longhaul.know: the value has the shape {list(known.shape)}, the tensor {list(inner.shape)}")
            inner._longhaul_value = known.expand(inner.shape).clone()

    def _guess(self, what):
        frame = sys._getframe(1)
        while frame is not None and _is_library(frame.f_code.co_filename):
            frame = frame.f_back
        where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}: " if frame else ""
        key = where + what
        self.guessed[key] = self.guessed.get(key, 0) + 1
        return where

    def _value_of(self, tensor):
        if type(tensor) is torch.Tensor and tensor.device.type == "cpu":
            return tensor
        return getattr(tensor, "_longhaul_value", None)

    def _is_known(self, tensors):
        return all(self._value_of(tensor) is not None for tensor in tensors)

    def _compute(self, function, arguments, keywords):
        """The operator on the known values of its arguments."""
        keywords = {key: "cpu" if key == "device" else value for key, value in keywords.items()}
        with no_dispatch():
            arguments, keywords = tree_map_only(torch.Tensor, self._value_of, (arguments, keywords))
            try:
                return function(*arguments, **keywords)
            except (NotImplementedError, RuntimeError) as error:
                if "not implemented" not in str(error):
                    raise
                wide = tree_map_only(torch.Tensor, torch.Tensor.double, arguments)  # CUDA counts integers, the CPU does not
                return function(*wide, **keywords).to(arguments[0].dtype)

    def _follow(self, function, arguments, keywords, result, inputs):
        """Computes integers and single numbers for real beside the fake ones, so that code of routing runs. A top-k of unknown values takes
        the candidates in turn, so routing is even."""
        name = function._schema.name
        outputs = _tensors(result)
        if not outputs:  # such as _foreach_add_
            changed = _tensors(kinds.written(function, kinds.named_arguments(function, arguments, keywords)))
            if _is_followed(changed) and self._is_known(inputs):
                self._compute(function, arguments, keywords)  # in the known values
            else:
                for tensor in changed:
                    vars(tensor).pop("_longhaul_value", None)
        if name == "aten::_amp_foreach_non_finite_check_and_unscale_":  # gradients are taken to be finite
            self.know(arguments[1], 0)
        if not outputs:
            return
        if function is aten.lift_fresh.default and type(inputs[0]) is torch.Tensor:  # torch.tensor([...], device="cuda")
            with no_dispatch():
                outputs[0]._longhaul_value = inputs[0].cpu()
            return
        if name in ("aten::topk", "aten::argmax") and self._value_of(inputs[0]) is None:
            index = outputs[-1]
            if index.numel() <= _KNOWN:
                dimension = arguments[2] if len(arguments) > 2 and name == "aten::topk" else -1
                self._guess(f"{name.removeprefix('aten::')} of unknown values takes the candidates in turn")
                with no_dispatch():
                    count = inputs[0].shape[dimension] if inputs[0].dim() else 1
                    index._longhaul_value = (torch.arange(index.numel()) % count).reshape(index.shape)
            return
        finite = {"aten::isnan": False, "aten::isinf": False, "aten::isfinite": True}.get(name)
        if len(inputs) == 2 and inputs[0] is inputs[1]:
            finite = {"aten::eq": True, "aten::ne": False}.get(name, finite)
        if len(arguments) == 2 and isinstance(arguments[1], float) and math.isinf(arguments[1]):
            finite = {"aten::eq": False, "aten::ne": True}.get(name, finite)
        if finite is not None and outputs[0].numel() <= _KNOWN and self._value_of(inputs[0]) is None:
            self._guess("values are taken to be finite")
            self.know(outputs[0], finite)
            return
        random = name.removeprefix("aten::").startswith(("rand", "normal", "empty", "new_empty", "multinomial", "bernoulli"))
        if random or not _is_followed(outputs) or function.namespace in kinds.COMM or not self._is_known(inputs):
            if function._schema.is_mutable:
                for tensor in outputs:
                    if hasattr(tensor, "_longhaul_value"):
                        del tensor._longhaul_value
            return
        for tensor, value in zip(outputs, _tensors(self._compute(function, arguments, keywords))):
            if type(tensor) is not torch.Tensor:
                tensor._longhaul_value = value

    def _scalar(self, tensor):
        if tensor.device.type == "cuda":  # the host waits for no tensor of its own
            self._sync("item")
        value = self._value_of(tensor)
        if value is not None:
            with no_dispatch():
                return value.item()
        if tensor.dtype == torch.bool:
            where = self._guess("a branch")
            raise Refused(f"{where}the program branches on the value of a tensor, which is unknown without a GPU: leave the branch "
                          "out while LONGHAUL_RECORDING is set, or give the value before it by longhaul.know(tensor, value)")
        self._guess(f"the value of a {str(tensor.dtype).removeprefix('torch.')} is taken to be 1")
        return 1.0 if tensor.is_floating_point() else 1

    def _known_shape(self, function, arguments, keywords, inputs):
        """The result of an operator whose shape depends on values."""
        self._sync("nonzero")
        if not self._is_known(inputs):
            where = self._guess("a shape")
            raise Refused(f"{where}the shape of {function} depends on values that are unknown without a GPU: give them before it "
                          "by longhaul.know(tensor, value)")
        device = next(tensor.device for tensor in inputs)

        def fake(value):
            made = torch.empty(value.shape, dtype=value.dtype, device=device)
            made._longhaul_value = value
            return made

        return tree_map_only(torch.Tensor, fake, self._compute(function, arguments, keywords))

    # ---- operators

    def _stays_real(self, function, keywords, arguments, inputs):
        """Small integer tensors of the host hold real values: device meshes, sizes of pieces."""
        if function.namespace != "aten" or str(keywords.get("device") or "cpu") != "cpu":
            return False
        if not all(type(tensor) is torch.Tensor and tensor.device.type == "cpu" for tensor in inputs):
            return False
        dtype = keywords.get("dtype") or (inputs[0].dtype if inputs else torch.get_default_dtype())
        if not inputs and keywords.get("dtype") is None and function._schema.name in ("aten::arange", "aten::full"):
            values = [value for value in arguments if isinstance(value, (int, float))]
            dtype = torch.int64 if all(isinstance(value, int) for value in values) else dtype
        if dtype.is_floating_point or dtype.is_complex or sum(tensor.numel() for tensor in inputs) >= _SMALL:
            return False
        sizes = [value for value in arguments if isinstance(value, (list, tuple)) and value and isinstance(value[0], int)]
        return all(math.prod(size) <= _SMALL for size in sizes)

    def _run(self, function, arguments, keywords, inputs):
        if function is aten._local_scalar_dense.default:
            return self._scalar(arguments[0])
        if function is aten.nonzero.default:
            return self._known_shape(function, arguments, keywords, inputs)
        try:
            result = function(*arguments, **keywords)
        except (fake_tensor.DynamicOutputShapeException, fake_tensor.DataDependentOutputException):
            return self._known_shape(function, arguments, keywords, inputs)
        except (fake_tensor.UnsupportedOperatorException, RuntimeError) as error:
            unsupported = isinstance(error, fake_tensor.UnsupportedOperatorException)  # a RuntimeError, too
            if not unsupported and "no fake impl registered" not in str(error):
                raise
            name = function._schema.name
            raise Refused(f"the operator {name} has no implementation for fake tensors, so the shape of its results is unknown: "
                          f"register one before the step by @torch.library.register_fake({name!r}) over a function that returns "
                          "empty tensors of these shapes, and its flops by @torch.utils.flop_counter.register_flop_formula("
                          f"torch.ops.{name.replace('::', '.')})") from error
        self._follow(function, arguments, keywords, result, inputs)
        return result

    def _run_higher(self, function, types, arguments, keywords):
        if function.name() == "run_dtensor_rng_op":  # random numbers of a DTensor: two offsets, the operator, its arguments
            return self.__torch_dispatch__(arguments[2], types, arguments[3:], keywords)
        raise Refused(f"the operator {function.name()} runs a function of the program and is not recorded: choose the program's "
                      "implementation without it, such as scaled_dot_product_attention instead of flex_attention")

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if any(_is_wrapper(kind) for kind in types):
            return NotImplemented
        inputs = _tensors((arguments, keywords))
        if isinstance(function, torch._ops.HigherOrderOperator) and proxy_tensor.get_proxy_mode() is None:
            return self._run_higher(function, types, arguments, keywords)
        if function is aten.is_pinned.default and arguments[0].device.type == "cpu":
            return True  # as pin_memory() has it
        if function.namespace == "prim" or function in (aten.sym_size.int, aten.is_pinned.default) \
                or proxy_tensor.get_proxy_mode() is not None \
                or any(isinstance(tensor, fake_tensor.FakeTensor) and tensor.fake_mode is not self.fake for tensor in inputs):
            return function(*arguments, **keywords)  # a compiler or DTensor asks what the results would be
        if self._stays_real(function, keywords, arguments, inputs):
            with no_dispatch():
                return function(*arguments, **keywords)
        if self._adds_to_zeros(function, inputs):
            function = getattr(getattr(aten, function._schema.name.removeprefix("aten::") + "_"), function._overloadname)
        result = self._run(function, arguments, keywords, inputs)
        outputs = _tensors(result)
        if self.silent:
            return result
        if not self.on:
            for tensor in outputs:
                if tensor.device.type == "cuda":
                    self._reference(tensor, -1)
            return result
        self._drain()
        kind = kinds.kind_of(function)
        on_device = kind == "comm" or any(tensor.device.type == "cuda" for tensor in inputs + outputs)
        if function is aten._local_scalar_dense.default or not on_device:
            return result
        if kind in ("view", "alloc"):
            for tensor in outputs:
                self._reference(tensor, len(self.events))
            return result
        self.events.append(self._event(function, kind, arguments, keywords, result, inputs, outputs))
        if kind == "copy" and len({tensor.device for tensor in inputs + outputs}) > 1 \
                and not kinds.named_arguments(function, arguments, keywords).get("non_blocking"):
            self._sync("item")  # a copy between the host and the device holds the host until it has ended
        return result

    def _adds_to_zeros(self, function, inputs):
        """True if autograd scatters a gradient into zeros that it has just made: it does so in place, unless tensors are fake."""
        if not self.on or function._schema.name not in _SCATTERS or torch.is_grad_enabled() or not self.events \
                or torch._C._current_autograd_node() is None or self.events[-1].get("k") != "fill":
            return False
        entry = self.live.get(inputs[0].untyped_storage()._cdata)
        return entry is not None and self.events[-1]["out"][0][0] == entry["id"]

    def _place(self):
        """The phase, module and autograd sequence number of what runs now."""
        node = torch._C._current_autograd_node()
        module = self.stack[-1] if self.stack else ""
        if node is None:
            sequence = torch._C._autograd._get_sequence_nr() - 1 if torch.is_grad_enabled() else -1
            self.sequence.setdefault(sequence, module)
            return self.phase, module, sequence
        sequence = node._sequence_nr() if hasattr(node, "_sequence_nr") else -1
        if torch.is_grad_enabled():  # a checkpoint runs its forward again
            self.sequence.setdefault(torch._C._autograd._get_sequence_nr() - 1, module)
        return ("r" if torch.is_grad_enabled() else "b"), module or self.sequence.get(sequence, ""), sequence

    def _event(self, function, kind, arguments, keywords, result, inputs, outputs):
        index = len(self.events)
        phase, module, sequence = self._place()
        name = str(function).removesuffix(".default").removeprefix("aten.")
        named = kinds.named_arguments(function, arguments, keywords)
        event = {"op": name, "k": kind, "ph": phase, "m": self.modules.setdefault(module, len(self.modules)), "n": sequence,
                 "s": self._stream(), "in": [self._reference(tensor, -1) for tensor in inputs],
                 "out": [self._reference(tensor, index) for tensor in outputs]}
        if kind != "comm":
            flops = kinds.flops_of(function, arguments, keywords, result)
            if flops is not None:
                event["fl"] = flops
        event["rd"], event["wr"] = kinds.bytes_of(function, named, inputs, outputs)
        if name == "embedding" and phase == "f":
            self.indices[module] = self.indices.get(module, 0) + arguments[1].numel()
        if kind == "sdpa":
            event["arg"] = {key: value for key, value in named.items() if isinstance(value, (bool, int, float))}
        if kind == "comm":
            self._collective(function, named, event)
        return event

    def fused(self, group, made):
        """A group of a compiled region has run; of what it made, the tensors `made` are read after it."""
        if not self.on:
            return
        self._drain()
        index = len(self.events)
        written = made + list(group.changed.values())
        phase, module, sequence = group.place
        kind = "reduction" if "reduction" in group.kinds else sorted(group.kinds)[-1]
        self.events.append({
            "op": group.names[0] if len(group.names) == 1 else "fused", "k": kind, "ph": phase,
            "m": self.modules.setdefault(module, len(self.modules)), "n": sequence, "s": self._stream(),
            "in": [self._reference(tensor, -1) for tensor in group.read.values()],
            "out": [self._reference(tensor, index) for tensor in written],
            "rd": sum(map(kinds.touched_bytes, group.read.values())), "wr": sum(map(kinds.touched_bytes, written)),
            "ops": group.names})

    def launched(self, name, kind, tensors, written, read_bytes, written_bytes):
        """A kernel of a compiled region was launched with the tensors."""
        if not self.on:
            for tensor in tensors:
                self._reference(tensor, -1)
            return
        self._drain()
        index = len(self.events)
        phase, module, sequence = self._place()
        self.events.append({
            "op": name, "k": kind, "ph": phase, "m": self.modules.setdefault(module, len(self.modules)), "n": sequence,
            "s": self._stream(), "in": [self._reference(tensor, -1) for tensor in tensors],
            "out": [self._reference(tensor, index) for tensor in written], "rd": read_bytes, "wr": written_bytes})

    def _collective(self, function, named, event):
        event["full"] = max([_bytes_of(value) for value in named.values()]
                            + [sum(math.prod(shape) * getattr(torch, dtype).itemsize for _, shape, dtype, *_ in event["out"])])
        group = None
        for key, value in named.items():
            if isinstance(value, torch.ScriptObject) and "ProcessGroup" in str(value._type()):
                group = dist.ProcessGroup.unbox(value)
            elif key in ("group_name", "group", "process_group") and isinstance(value, str):
                group = dist.distributed_c10d._resolve_process_group(value)
        if "async_op" in named:
            event["async"] = named["async_op"]
        if group is None:
            return
        ranks = dist.get_process_group_ranks(group)
        event["g"] = group.group_name
        self.groups.setdefault(event["g"], {"ranks": ranks, "desc": group.group_desc})
        name = function._schema.name.split("::")[1]
        if name in ("send", "recv_"):
            event["async"] = True
            event["peer"] = ranks[named["dst" if name == "send" else "src"]]
        if self.batch is not None:
            event["batch"] = self.batch
        sent = self._sent(name, named)
        if sent and len(set(sent)) > 1:
            event["sent"] = sent

    def _sent(self, name, named):
        """Bytes that an all-to-all sends to each rank, where the program gives them."""
        if name == "alltoall_":
            return [_bytes_of(tensor) for tensor in named["input_tensors"]]
        sizes = named.get("input_split_sizes")
        tensor = named.get("input")
        if not sizes or not isinstance(tensor, torch.Tensor) or "all" not in name:
            return None
        row = math.prod(tensor.shape[1:]) * tensor.element_size()
        return [int(size) * row for size in sizes]

    # ---- the file

    def content(self):
        """The recorded step as the JSON object of docs/schema/step.json."""
        tokens = self.tokens or next(iter(self.indices.values()), None)
        chosen = sorted({event["op"] for event in self.events if event.get("k") == "sdpa"})
        notes = self.notes + ([f"attention runs as {', '.join(chosen)}"] if chosen else [])
        opaque = sorted({event["op"] for event in self.events if event.get("k") == "opaque"})
        if opaque:
            notes.append(f"operators of no known kind, taken to be bound by memory: {', '.join(opaque)}")
        row = {"format": "longhaul-step", "version": 1, "torch": torch.__version__, "cuda": record.CUDA, "device": self.device,
               "world": self.world, "rank": self.rank}
        if self.command:
            row["command"] = list(self.command)
        if tokens:
            row["tokens"] = tokens
        return {**row, "groups": self.groups, "modules": list(self.modules), "peak": self.peak, "guessed": self.guessed,
                "notes": notes,
                "storages": [[entry["bytes"], entry["born"], -1 if entry["died"] is None else entry["died"], entry["role"]]
                             for entry in self.storages],
                "events": self.events}

    def write(self, path):
        """Writes the file whole or not at all."""
        try:
            longhaul.chakra.write_file(path, json.dumps(self.content(), separators=(",", ":")).encode())
        except longhaul.Error as error:
            raise Refused(str(error)) from error


_TORCH = os.path.dirname(torch.__file__) + os.sep
_OURS = os.path.dirname(__file__) + os.sep


def _is_library(path):
    return path.startswith((_TORCH, _OURS, "<frozen")) or os.sep + "contextlib.py" in path
