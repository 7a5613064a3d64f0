"""What an operator costs: its kind of work, the bytes it touches, its flops."""
import math

import torch
from torch.utils import flop_counter
from torch.utils._pytree import tree_leaves

from longhaul.record import Refused

# Operators that PyTorch and its distributed packages define. Those of other name spaces are custom kernels.
OWN = {"aten", "prim", "prims", "c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "fsdp", "inductor",
       "quantized", "symm_mem", "rngprims", "profiler", "higher_order", "streams"}

COMM = {"c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor"}

KINDS = {
    "mm": """mm addmm bmm baddbmm _scaled_mm _grouped_mm _scaled_grouped_mm linear _addmm_activation addmv mv dot
        linear_backward""",
    "copy": """copy_ clone _to_copy cat stack split_with_sizes_copy _chunk_cat repeat _foreach_copy_ constant_pad_nd roll flip
        slice_backward select_backward all_gather_copy_in chunk_cat chunk_cat_mixed_dtype as_strided_scatter slice_scatter
        select_scatter _copy_from pixel_shuffle""",
    "index": """embedding index gather index_select index_put_ index_put _index_put_impl_ scatter scatter_ scatter_add scatter_add_
        index_add index_add_ index_copy index_copy_ embedding_dense_backward _unsafe_index _unsafe_index_put take masked_select
        nonzero _unsafe_masked_index _unsafe_masked_index_put_accumulate _unique2 unique_consecutive repeat_interleave
        scatter_reduce scatter_reduce_ index_fill index_fill_ index_reduce index_reduce_ put put_""",
    "reduction": """sum mean amax amin max min norm linalg_vector_norm _softmax _log_softmax _softmax_backward_data
        _log_softmax_backward_data native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward
        _fused_rms_norm _fused_rms_norm_backward nll_loss_forward nll_loss_backward logsumexp var var_mean std prod cumsum
        cumprod topk sort any all argmax argmin histc bincount _foreach_norm mse_loss _masked_softmax aminmax searchsorted
        count_nonzero""",
    "fill": """zeros ones full fill_ zero_ zeros_like ones_like full_like arange new_zeros scalar_tensor new_full new_ones
        _foreach_zero_ linspace eye iota tril_indices triu_indices""",
    "alloc": "empty empty_strided empty_like new_empty new_empty_strided empty_permuted",
    "view": "detach _unsafe_view alias lift_fresh _reshape_alias record_stream set_ lift_fresh_copy",
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}

# Pointwise operators that do not carry PyTorch's tag.
POINTWISE = ("_foreach_", "_fused_adam", "_fused_sgd", "native_dropout", "tril", "triu", "softplus_backward", "floor_divide",
             "masked_fill", "where", "_amp_", "silu_backward", "gelu_backward", "sigmoid_backward", "tanh_backward",
             "threshold_backward", "uniform", "normal", "rand", "bernoulli", "exponential", "random", "_fused_dropout",
             "rope", "mse_loss_backward", "multinomial", "__")

# What these write they do not read, as fills and the results of `out=` are not.
OVERWRITING = set("copy_ _foreach_copy_ normal_ uniform_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_".split())

# Gathers read of their first tensor as much as they write.
GATHERS = set("""embedding index gather index_select _unsafe_index _unsafe_masked_index take masked_select
    repeat_interleave""".split())

# What these write, and the others of the name without or with a final _, of the tensor `self`: elements.
SCATTERS = {
    "index_put": lambda named: _chosen(named["self"], named["indices"]),
    "_index_put_impl": lambda named: _chosen(named["self"], named["indices"]),
    "_unsafe_index_put": lambda named: _chosen(named["self"], named["indices"]),
    "_unsafe_masked_index_put_accumulate": lambda named: _chosen(named["self"], named["indices"]),
    "index_add": lambda named: named["source"].numel(),
    "index_copy": lambda named: named["source"].numel(),
    "index_reduce": lambda named: named["source"].numel(),
    "index_fill": lambda named: named["index"].numel() * named["self"].numel() // max(named["self"].shape[named["dim"]], 1),
    "scatter": lambda named: named["index"].numel(),
    "scatter_add": lambda named: named["index"].numel(),
    "scatter_reduce": lambda named: named["index"].numel(),
    "put": lambda named: named["index"].numel(),
}

ATTENTION = ("scaled_dot_product", "_flash_attention", "_efficient_attention", "_cudnn_attention", "flex_attention")


def tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def kind_of(function):
    """The kind of an operator's work; `view` and `alloc` are no work."""
    name = function._schema.name.split("::")[1]
    if function.namespace in COMM:
        return "comm"
    if function.namespace not in OWN:
        return "opaque"
    if any(word in name for word in ATTENTION):
        return "sdpa"
    if name in KIND_OF:
        return KIND_OF[name]
    if function.is_view or name.startswith("record_"):
        return "view"
    if torch.Tag.pointwise in function.tags or name.startswith(POINTWISE) or function.namespace == "prims":
        return "elementwise"
    if "conv" in name:
        return "conv"
    return "opaque"


def _with_all_heads(function, arguments):
    """Arguments of attention, in which keys and values are the shapes that they have once they are repeated for all queries."""
    names = [parameter.name for parameter in function._schema.arguments]
    heads = arguments[names.index("query")].shape[1]
    return [torch.Size((value.shape[0], heads, *value.shape[2:])) if name in ("key", "value") else value
            for name, value in zip(names, arguments)]


def flops_of(function, arguments, keywords, result):
    """Floating-point operations, or None where work is bound by memory. A custom kernel must have a formula."""
    formula = flop_counter.flop_registry.get(function._overloadpacket)
    if formula is not None:
        try:
            return int(formula(*arguments, **keywords, out_val=result))
        except AssertionError:  # PyTorch 2.8 counts attention whose keys have as many heads as its queries
            if not function._schema.name.startswith("aten::_scaled_dot_product"):
                raise
            return int(formula(*_with_all_heads(function, arguments), **keywords, out_val=result))
    if function._schema.name in ("aten::_grouped_mm", "aten::_scaled_grouped_mm"):  # not in PyTorch's counter
        return 2 * arguments[0].numel() * arguments[1].shape[-1]
    if function._schema.name == "aten::linalg_solve_triangular":  # n^2 flops a right-hand side
        return arguments[0].shape[-1] * result.numel()
    if function.namespace not in OWN:
        name = function._schema.name
        python = name.replace("::", ".")
        raise Refused(f"the operator {name} is a custom kernel whose flops are unknown: register them before the step, by "
                      f"@torch.utils.flop_counter.register_flop_formula(torch.ops.{python}) over a function of the "
                      "arguments' shapes and `out_shape` that returns them (0 if it is bound by memory)")
    return None


def named_arguments(function, arguments, keywords):
    """All arguments by name, with the defaults of those that are left out."""
    parameters = function._schema.arguments
    named = {p.name: p.default_value for p in parameters if p.has_default_value()}
    named.update(zip((p.name for p in parameters), arguments))
    named.update(keywords)
    return named


def touched_bytes(tensor):
    """Bytes of a tensor; an expanded one is read once."""
    return min(tensor.numel() * tensor.element_size(),
               tensor.untyped_storage().nbytes() or tensor.numel() * tensor.element_size())


def written(function, named):
    """The tensors among the named arguments that the operator writes."""
    return [named[p.name] for p in function._schema.arguments if p.alias_info and p.alias_info.is_write and p.name in named]


def _chosen(tensor, indices):
    """The elements that indexing by tensors chooses; masks, whose values are unknown, choose all of theirs."""
    shape, rest, dimension = [], tensor.numel(), 0
    for index in indices:
        by_mask = index is not None and index.dtype in (torch.bool, torch.uint8)
        size = tensor.shape[dimension:dimension + (index.dim() if by_mask else 1)]
        dimension += len(size)
        if index is not None:
            rest //= max(math.prod(size), 1)
            shape.append((math.prod(size),) if by_mask else index.shape)
    return rest * math.prod(torch.broadcast_shapes(*shape))


def _sum_of(those):
    return sum(touched_bytes(tensor) for tensor in {id(tensor): tensor for tensor in those}.values())


def _scattered(name, named):
    rows = SCATTERS[name.removesuffix("_")](named) * named["self"].element_size()
    adds = "add" in name or "reduce" in name or "accumulate" in name or named.get("accumulate") or named.get("reduce")
    index = _sum_of(tensors([named.get("index"), named.get("indices"), named.get("mask")]))
    values = min(_sum_of(tensors([named.get(key) for key in ("values", "source", "src", "value")])), rows)
    copied = 0 if name.endswith("_") else touched_bytes(named["self"])
    return index + values + (rows if adds else 0) + copied, rows + copied


def bytes_of(function, named, inputs, outputs):
    """Bytes that an operator reads and writes, each tensor once; of tensors that it indexes those that it touches."""
    name = function._schema.name.split("::")[1]
    if name.removesuffix("_") in SCATTERS and isinstance(named.get("self"), torch.Tensor):
        return _scattered(name, named)
    changed = tensors(written(function, named))
    if name == "all_gather_copy_in":  # it writes the part of this rank
        return _sum_of(tensors(named["all_gather_inputs"])), touched_bytes(outputs[0])
    if name.startswith("_fused_") and "grads" in named and named.get("grad_scale") is None:
        changed = [tensor for tensor in changed if not any(tensor is gradient for gradient in named["grads"])]
    count = _sum_of(outputs + changed)
    if name in GATHERS:
        return count + _sum_of(inputs[1:]), count
    if name == "embedding_dense_backward":  # zeros, to which the rows of the gradient are added
        return _sum_of(inputs), count + touched_bytes(inputs[0])
    if name.startswith("nll_loss"):
        forward, loss = name.endswith("forward"), named["self"]
        chosen = named["target"].numel() * loss.element_size() if forward else 0
        return _sum_of([tensor for tensor in inputs if tensor is not loss]) + chosen, count
    results = {id(tensor) for parameter in function._schema.arguments if parameter.is_out
               for tensor in tensors(named.get(parameter.name))}
    if KIND_OF.get(name) == "fill":  # a tensor that it is like gives a shape
        return 0, count
    if name in OVERWRITING:
        results.update(map(id, changed))
    return _sum_of([tensor for tensor in inputs if id(tensor) not in results]), count


def launched_directly(name):
    """The refusal of a Triton kernel of the program."""
    return Refused(f"the Triton kernel {name} is launched directly, so its shapes and flops are unknown: wrap its launch in "
                   "an operator by @torch.library.custom_op, register its shapes by @OPERATOR.register_fake and its flops "
                   "by @torch.utils.flop_counter.register_flop_formula, or choose the program's implementation without it")
