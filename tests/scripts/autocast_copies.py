#!/usr/bin/env python3
"""Records when the 16-bit copies are alive that torch.autocast makes of fp32 weights.

    autocast_copies.py > tests/data/pytorch/autocast.csv      (torch; no GPU)

Three layers and a head run on a processor, where autocast has the cache that it has on a GPU. `alive` are the parts that have
copies: at the end of the region of autocast, with the loss; after it; and as the gradient of a layer's output is there, before a
checkpointed layer is computed again. Both forms of checkpoints give the same.
"""
import weakref

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

WIDTH, WORDS, LAYERS, ROWS = 64, 100, 3, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in "12")

    def forward(self, x):
        return self.down(nn.functional.silu(self.up(x))) + x


class Copies(TorchDispatchMode):
    """Lists the parts that have copies, a part once for each."""

    def __init__(self, weights):
        super().__init__()
        self.name_of = {weight.data_ptr(): name for name, weight in weights}
        self.alive = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is torch.ops.aten._to_copy.default and args[0].data_ptr() in self.name_of:
            name = self.name_of[args[0].data_ptr()]
            self.alive.append(name)
            weakref.finalize(result.untyped_storage(), self.alive.remove, name)
        return result

    def seen(self):
        return " ".join(sorted(set(self.alive)))


def moments(run):
    """Returns (moment, living copies) of a step whose layers `run` calls."""
    layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
    head = nn.Linear(WIDTH, WORDS, bias=False)
    weights = [(str(i), w) for i, layer in enumerate(layers) for w in layer.parameters()] + [("head", head.weight)]
    copies = Copies(weights)
    x, labels = torch.randn(ROWS, WIDTH, requires_grad=True), torch.randint(WORDS, (ROWS,))
    seen = []
    with copies:
        with torch.autocast("cpu", torch.bfloat16):
            for i, layer in enumerate(layers):
                x = run(layer, x)
                x.register_hook(lambda _, i=i: seen.append((f"backward {i}", copies.seen())))
            loss = nn.functional.cross_entropy(head(x).float(), labels)
            seen.append(("region", copies.seen()))
        seen.append(("loss", copies.seen()))
        del x
        loss.backward()
    seen.append(("step", copies.seen()))
    return seen


kept = moments(lambda layer, x: layer(x))
again = moments(lambda layer, x: checkpoint(layer, x, use_reentrant=False))
assert again == moments(lambda layer, x: checkpoint(layer, x, use_reentrant=True))
print("activations,at,alive")
for name, rows in (("keep", kept), ("full", again)):
    for at, alive in rows:
        print(f"{name},{at},{alive}")
