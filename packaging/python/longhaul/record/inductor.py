"""Compiled regions as torch.compile's Inductor makes them: its own code for the GPU runs, with its buffers and its order, and each
Triton kernel that it would launch is one event.

Inductor groups operators and writes its kernels without a GPU; only their compilation and their tuning need one, and neither
changes which operators a kernel has. What cannot be lowered here (kernels for the host, templates that are tuned) is recorded
by the groups of fusion.py instead, and said."""
import ast
import contextlib
import math
import re

import torch

from longhaul.record import kinds

NOTE = "compiled regions: kernels are those of Inductor's own code for the GPU"

_AT = re.compile(r"^( +)# Topologically Sorted Source Nodes: \[([^\]\n]*)\], Original ATen:.*$", re.MULTILINE)


class Unreadable(Exception):
    """Why Inductor's code of a graph cannot be had or run here."""


def _is_written_for_the_host(code):
    return "async_compile.cpp" in code


class Kernel:
    """A Triton kernel of a region, by its source."""

    def __init__(self, recorder, name, source):
        self.recorder = recorder
        self.name = re.sub(r"_\d+$", "", name)  # the number is that of a kernel within its graph
        category = name.split("_")[1]
        if category not in ("poi", "red", "per", "for"):
            raise Unreadable(f"the kernel {name} is a template")
        self.kind = "reduction" if category in ("red", "per") else "elementwise"
        found = re.search(rf"^def {re.escape(name)}\(([^)]*)\):", source, re.MULTILINE)
        if found is None:
            raise Unreadable(f"the kernel {name} has no function of its name")
        self.parameters = [word.split(":")[0].strip() for word in found.group(1).split(",") if "constexpr" not in word]
        self.loads = {name: len(re.findall(rf"tl\.load\({name}\b", source)) for name in self.parameters}
        self.adds = {name: len(re.findall(rf"tl\.atomic_\w+\({name}\b", source)) for name in self.parameters}
        self.stores = {name: len(re.findall(rf"tl\.store\({name}\b", source)) for name in self.parameters}
        listed = re.search(r"'mutated_arg_names': (\[[^\]]*\])", source)
        self.changes = set(ast.literal_eval(listed.group(1))) if listed else set()

    def run(self, *arguments, **keywords):
        named = list(zip(self.parameters, arguments))
        tensors = [(name, value) for name, value in named if isinstance(value, torch.Tensor)]
        sizes = [value for name, value in named if name.endswith("numel") and isinstance(value, int)]
        elements = math.prod(sizes)
        if not sizes:  # a kernel over a list of tensors, each with a size of its own
            elements = max((value.numel() for _, value in tensors), default=1)

        def touched(tensor, times):  # a load takes an element of the loop at most, so a gather takes the rows that it reads
            return min(kinds.touched_bytes(tensor), times * elements * tensor.element_size())

        read = sum(touched(value, self.loads[name] + self.adds[name]) for name, value in tensors)
        wrote = sum(touched(value, self.stores[name] + self.adds[name]) for name, value in tensors)
        written = [value for name, value in tensors if self.stores[name] or self.adds[name] or name in self.changes]
        for tensor in written:
            vars(tensor).pop("_longhaul_value", None)
        self.recorder.launched(self.name, self.kind, [value for _, value in tensors], written, read, wrote)


class _Kernels:
    """What Inductor's code compiles its kernels by."""

    def __init__(self, recorder):
        self.recorder = recorder

    def triton(self, name, source, **keywords):
        return Kernel(self.recorder, name, source)

    def wait(self, scope):
        pass

    def __getattr__(self, name):
        raise Unreadable(f"it has a kernel of the sort {name}")


def _triton_without_a_gpu(recorder):
    """Lets Triton's driver, of which Inductor asks for the target, be that of the device that is pretended."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import CudaDriver
    from triton.runtime.driver import driver
    if isinstance(vars(driver).get("_active"), CudaDriver):
        return
    major, minor = torch.cuda.get_device_capability()

    class Driver(CudaDriver):
        def __init__(self):
            pass

        def get_current_target(self):
            return GPUTarget("cuda", 10 * major + minor, 32)

        def get_current_device(self):
            return 0

        def get_current_stream(self, device=0):
            return 0

    recorder.patches.put(driver, "_active", Driver())
    triton.runtime.driver = driver


def _code_of(recorder, graph, inputs, backward):
    """Inductor's code of a graph."""
    from torch._inductor import compile_fx, config
    from torch._inductor.debug import DebugContext
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    _triton_without_a_gpu(recorder)
    quiet = {"size_asserts": False, "nan_asserts": False, "alignment_asserts": False, "cpp.vec_isa_ok": False}
    known = {key: value for key, value in quiet.items() if hasattr(config, key.split(".")[0])}
    mode = torch._dynamo.utils.detect_fake_mode(inputs)
    with V.set_fake_mode(mode), config.patch(known), V.set_debug_handler(DebugContext()), recorder.unheard():
        compile_fx._recursive_post_grad_passes(graph, is_inference=False)
        lowered = GraphLowering(graph, example_inputs=inputs, is_backward=backward, is_inference=False,
                                shape_env=compile_fx.shape_env_from_inputs(inputs))
        with V.set_graph_handler(lowered), V.set_extern_kernel_nodes([]):
            lowered.run(*inputs)
            code, _ = lowered.codegen()
    return getattr(code, "value", code)


def _modules_of(graph, module_of):
    """The module of each node by the name that Inductor's comments give it."""
    modules = {}
    for node in graph.graph.nodes:
        origin = node.meta.get("from_node")
        module = module_of(node)
        if module:
            modules[origin[0].name if origin else node.name] = module
    return modules


class Region:
    """A compiled graph as a function of the list of its inputs, which records Inductor's kernels while it runs."""

    def __init__(self, recorder, graph, inputs, backward, module_of):
        self.recorder, self.graph = recorder, graph
        self.modules = _modules_of(graph, module_of)
        values = [node.meta.get("val") for node in graph.graph.output_node().all_input_nodes]
        self.has_numbers = any(isinstance(value, torch.Tensor) and not value.is_floating_point() and value.is_cuda
                               for value in values)
        import copy
        code = _code_of(recorder, copy.deepcopy(graph), inputs, backward)
        if _is_written_for_the_host(code):
            raise Unreadable("it has kernels for the host")
        self.call = self._loaded(code)

    def _loaded(self, code):
        from torch._inductor import async_compile
        scope = {"__name__": "longhaul_region", "__file__": "longhaul_region.py"}
        before = async_compile.AsyncCompile
        async_compile.AsyncCompile = lambda: _Kernels(self.recorder)
        try:
            exec(compile(_AT.sub(r"\g<0>\n\1_at('\2')", code), "longhaul_region.py", "exec"), scope)
        finally:
            async_compile.AsyncCompile = before

        def empty(device):
            return lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=device)

        def reinterpreted(tensor, size, stride, offset):
            return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)

        scope.update(_at=self._at, empty_strided_cuda=empty("cuda"), empty_strided_cpu=empty("cpu"),
                     empty_strided_cpu_pinned=empty("cpu"), reinterpret_tensor=reinterpreted)
        for name in "assert_size_stride", "assert_size_stride_grouped", "assert_alignment":
            scope[name] = lambda *arguments, **keywords: None
        return scope["call"]

    def _at(self, names):
        modules = [self.modules[name] for name in names.split(", ") if name in self.modules]
        if modules:
            self.recorder.stack[-1] = modules[-1]

    def __call__(self, inputs):
        recorder = self.recorder
        values = self._values(inputs) if self.has_numbers else None
        recorder.stack.append(recorder.stack[-1] if recorder.stack else "")
        try:
            with torch.no_grad():
                outputs = self.call(inputs)
        finally:
            recorder.stack.pop()
        for tensor, value in zip(outputs, values or ()):
            if isinstance(tensor, torch.Tensor) and value is not None:
                tensor._longhaul_value = value
        return outputs

    def _values(self, inputs):
        """The known values of results, which follow from the graph's operators and not from its kernels."""
        with self.recorder.unheard(), torch.no_grad():
            found = torch.fx.Interpreter(self.graph).run(*inputs)
        return [getattr(value, "_longhaul_value", None) for value in found]


@contextlib.contextmanager
def _refusals_pass():
    from longhaul.record import Refused
    try:
        yield
    except (Refused, Unreadable):
        raise
    except Exception as error:  # names of Inductor change from release to release
        text = (str(error).strip().splitlines() or [""])[0][:120]
        raise Unreadable(f"{type(error).__name__}: {text}") from error


def region(recorder, graph, inputs, backward, module_of):
    """The region of a graph as a function; Unreadable where Inductor's code cannot be had."""
    with _refusals_pass():
        made = Region(recorder, graph, inputs, backward, module_of)

    def boxed(inputs):
        return made(inputs)

    boxed._boxed_call = True  # it takes the list and empties it, so that inputs end with their last reader
    return boxed
