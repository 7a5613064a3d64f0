"""Compiled regions: torch.compile's graphs, as the code that Inductor writes for them (inductor.py), or where that cannot be had
operator by operator, where neighbouring pointwise operators and reductions of one size count as one kernel, whose inner results
take no memory.

A group of these ends where an operator that cannot join it reads one of its results, so the order of events is one that could
run."""
import collections
import re

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from longhaul.record import Refused, inductor, kinds

NOTE = "compiled regions: neighbouring pointwise operators and reductions of one size are taken for one kernel, since Inductor's " \
    "own code could not be read: {}"

_FUSIBLE = {"elementwise", "reduction", "copy", "fill"}
_ALONE = {"topk", "sort", "cumsum", "cumprod", "histc", "bincount", "searchsorted"}


class Group:
    """A kernel to be: operators that run over `size` elements, and reduce to `reduced` elements each, if any reduces."""

    def __init__(self):
        self.size, self.reduced = 1, None
        self.names, self.kinds = [], set()
        self.inner = {}   # storages that the group makes, by address, with a tensor of each
        self.read = {}    # those that it only reads: the tensor of which most is read
        self.changed = {} # those of others that it writes
        self.place = None

    def takes(self, size, reduced):
        if max(self.size, size) % min(self.size, size) != 0:
            return False
        return reduced is None or self.reduced in (None, reduced)

    def join(self, other):
        self.size, self.reduced = max(self.size, other.size), self.reduced or other.reduced
        self.names += other.names
        self.kinds |= other.kinds
        self.inner.update(other.inner)
        self.changed.update(other.changed)
        for key, tensor in other.read.items():
            self.add_read(key, tensor)

    def add_read(self, key, tensor):
        if key in self.inner:
            return
        if key not in self.read or kinds.touched_bytes(tensor) > kinds.touched_bytes(self.read[key]):
            self.read[key] = tensor


def _key(tensor):
    return tensor.untyped_storage()._cdata


def _cuda(tree):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.device.type == "cuda"]


class Region:
    """A compiled graph as a function of its inputs, which records while it runs."""

    def __init__(self, recorder, graph):
        self.recorder, self.graph = recorder, graph
        self.last = {}  # by node, the values that nobody reads after it
        used = set()
        for node in reversed(graph.graph.nodes):
            self.last[node] = [value for value in node.all_input_nodes if value not in used]
            used.update(node.all_input_nodes)

    def __call__(self, *inputs):
        recorder = self.recorder
        values, inputs = {}, list(inputs)
        self.alive = collections.Counter()  # by the address of a storage, the values of it that are still to be read
        self.owner = {}  # by the address of a storage, the open group that made or changed it
        for node in self.graph.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                values[node] = inputs.pop(0) if node.op == "placeholder" else getattr(self.graph, node.target)
                self.alive.update(map(_key, _cuda(values[node])))
                continue
            arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            if node.op == "output":
                self._close(list(self.owner.values()))
                return arguments[0]
            recorder.stack.append(_module(node))
            try:
                values[node] = self._run(node, arguments, keywords)
            finally:
                recorder.stack.pop()
            self.alive.update(map(_key, _cuda(values[node])))
            for dead in self.last[node]:
                self.alive.subtract(map(_key, _cuda(values.pop(dead))))

    def _run(self, node, arguments, keywords):
        function = node.target
        kind = kinds.kind_of(function) if isinstance(function, torch._ops.OpOverload) else None
        if not isinstance(function, torch._ops.OpOverload):
            kind = "view" if function.__module__ in ("_operator", "operator", "math") else "opaque"
        name = getattr(function, "_schema", None) and function._schema.name.split("::")[1]
        if kind in ("view", "alloc"):
            return self._silent(function, arguments, keywords)
        if kind not in _FUSIBLE or name in _ALONE:
            self._close([self.owner[_key(t)] for t in _cuda((arguments, keywords)) if _key(t) in self.owner])
            return function(*arguments, **keywords)
        return self._join(function, kind, name, arguments, keywords)

    def _silent(self, function, arguments, keywords):
        with self.recorder.unheard():
            return function(*arguments, **keywords)

    def _join(self, function, kind, name, arguments, keywords):
        inputs = _cuda((arguments, keywords))
        result = self._silent(function, arguments, keywords)
        outputs = _cuda(result)
        size = max([tensor.numel() for tensor in inputs + outputs], default=1) or 1
        reduced = max((tensor.numel() for tensor in outputs), default=1) if kind == "reduction" else None
        group = None
        for other in _distinct(self.owner[_key(t)] for t in inputs if _key(t) in self.owner):
            if other.takes(size, reduced) and (group is None or group.takes(other.size, other.reduced)):
                if group is None:
                    group = other
                else:
                    group.join(other)
                    self._own(other, group)
            else:
                self._close([other])
        group = group or Group()
        group.size, group.reduced = max(group.size, size), group.reduced or reduced
        group.names.append(name)
        group.kinds.add(kind)
        group.place = self.recorder._place()
        for tensor in inputs:
            group.add_read(_key(tensor), tensor)
        named = kinds.named_arguments(function, arguments, keywords)
        changed = _cuda(kinds.written(function, named))
        for tensor in changed:
            if _key(tensor) not in group.inner:
                group.changed[_key(tensor)] = tensor
        if function._schema.name == "aten::copy_":  # what it overwrites is not read
            group.read.pop(_key(arguments[0]), None)
        for tensor in outputs:
            if _key(tensor) not in group.read and _key(tensor) not in group.changed:
                group.inner[_key(tensor)] = tensor
        for tensor in outputs + changed:
            self.owner[_key(tensor)] = group
        return result

    def _own(self, old, new):
        for key, group in self.owner.items():
            if group is old:
                self.owner[key] = new

    def _close(self, groups):
        for group in _distinct(groups):
            self.owner = {key: other for key, other in self.owner.items() if other is not group}
            self.recorder.fused(group, [tensor for key, tensor in group.inner.items() if self.alive[key] > 0])


def _distinct(groups):
    return {id(group): group for group in groups}.values()


def _module(node):
    """The name of the module whose forward made a node, or made what it is the gradient of."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = list(stack.values())[-1][0] if stack else ""
    path = re.sub(r"\._modules\['|\['", ".", path.replace("_orig_mod.", "")).replace("']", "")
    path = re.sub(r"^L\.(self|args\[0\]|[a-z_]+)\.?", "", path)
    return re.sub(r"__dict__\._modules\.?|_checkpoint_wrapped_module\.?", "", path).strip(".")


def _refuse_launches(graph):
    """Refuses a graph that launches a Triton kernel of the program."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and str(node.target).startswith("triton_kernel_wrapper"):
            from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
            raise kinds.launched_directly(getattr(kernel_side_table.get_kernel(node.kwargs["kernel_idx"]), "__name__", "kernel"))


def backend(recorder):
    """A backend of torch.compile that stands for Inductor."""
    def compile_graph(graph, inputs):
        from torch._inductor.decomposition import select_decomp_table
        _refuse_launches(graph)

        def run(graph, inputs, backward=False):
            from functorch.compile import make_boxed_func
            try:
                region = inductor.region(recorder, graph, inputs, backward, _module)
            except inductor.Unreadable as error:
                recorder._note(NOTE.format(error))
                return make_boxed_func(Region(recorder, graph))
            recorder._note(inductor.NOTE)
            return region

        def run_backward(graph, inputs):
            return run(graph, inputs, True)

        try:
            return aot_autograd(fw_compiler=run, bw_compiler=run_backward, inference_compiler=run,
                                partition_fn=min_cut_rematerialization_partition,
                                decompositions=select_decomp_table())(graph, inputs)
        except AssertionError as error:
            if "fake mode" not in str(error):
                raise
            raise Refused(f"torch.compile cannot be recorded with PyTorch {torch.__version__}, which takes no fake tensors as "
                          "inputs: record without it, or with PyTorch 2.15") from error

    return compile_graph
