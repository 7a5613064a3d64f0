"""Records how PyTorch stores numbers in its 8-bit types, for tests/exec/test_quantise.c:

    python3 tests/data/pytorch/float8.py > tests/data/pytorch/float8.json

Needs torch 2.7 or later, on a processor. Numbers are the bits of fp32 in 8 hexadecimal digits, one after the other, and
codes are 2 digits. "casts": single numbers, clamped to the type's
largest one and then cast. "matrices": matrices with a scale for each block: fp32 scales as torchao makes them
(torchao/float8/float8_utils.py: largest number of the type / max(amax, 1e-12)), of which the inverse is recorded; scales
of type float8_e8m0fnu by both rules of torchao's mx_formats: "up" is RCEIL, ceil(log2(amax / largest)), "down" is FLOOR,
floor(log2(amax)) less the largest exponent of the type.
"""
import json
import math

import torch

TYPES = {"e4m3": (torch.float8_e4m3fn, 8), "e5m2": (torch.float8_e5m2, 15)}


def bits(x):
    return "".join(f"{b & 0xFFFFFFFF:08x}" for b in x.contiguous().view(torch.int32).flatten().tolist())


def cast(x, dtype):
    most = torch.finfo(dtype).max
    return x.clamp(-most, most).to(dtype)


def codes(x):
    return "".join(f"{b:02x}" for b in x.contiguous().view(torch.uint8).flatten().tolist())


def casts(dtype):
    every = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    every = every[torch.isfinite(every)].sort().values
    ties = (every[1:] + every[:-1]) / 2
    beside = torch.cat([torch.nextafter(ties, torch.tensor(math.inf)), torch.nextafter(ties, torch.tensor(-math.inf))])
    ends = torch.tensor([0.0, -0.0, 1e30, -1e30, math.inf, -math.inf, 1e-30, -1e-30])
    x = torch.cat([every, ties, beside, ends])
    return {"from": bits(x), "to": codes(cast(x, dtype))}


def blocks(x, rows, cols):
    """Yields the blocks of a matrix, row after row."""
    for i in range(0, x.shape[0], rows):
        for j in range(0, x.shape[1], cols):
            yield slice(i, i + rows), slice(j, j + cols)


def matrix(x, name, rows, cols, rule):
    dtype, largest_exponent = TYPES[name]
    most = torch.finfo(dtype).max
    y, scales = torch.empty(x.shape, dtype=torch.float32), ""
    for where in blocks(x, rows, cols):
        amax = x[where].abs().max()
        if rule == "f32":
            factor = (most / amax.double().clamp(min=1e-12)).float()
            scales += bits(factor.reciprocal().reshape(1))
        else:
            amax = float(amax)
            exponent = -127
            if amax > 0 and rule == "up":
                exponent = math.ceil(math.log2(amax / most))
                exponent += amax > math.ldexp(most, exponent)
                exponent -= amax <= math.ldexp(most, exponent - 1)
            elif amax > 0:
                exponent = math.frexp(amax)[1] - 1 - largest_exponent
            exponent = max(-127, min(127, exponent))
            scale = torch.tensor([exponent + 127], dtype=torch.uint8).view(torch.float8_e8m0fnu)
            factor = torch.ldexp(torch.ones(()), torch.tensor(-exponent))
            assert exponent == -127 or scale.float().item() == math.ldexp(1, exponent)
            scales += codes(scale)
        y[where] = cast(x[where] * factor, dtype).float()
    return {"codes": codes(y.to(dtype)), "scales": scales}


def main():
    torch.manual_seed(7)
    x = torch.randn(6, 160) * torch.exp2(torch.randint(-12, 9, (6, 160)).float())
    x[2, 32:64] = 0
    x[5] *= 1e-9
    of = [("tensor", 6, 160, "f32"), ("row", 1, 160, "f32"), ("vector", 1, 128, "f32"), ("block", 128, 128, "f32"),
          ("mx", 1, 32, "up"), ("mx", 1, 32, "down")]
    matrices = [{"scaling": scaling, "dtype": name, "rule": rule, **matrix(x, name, rows, cols, rule)}
                for name in TYPES for scaling, rows, cols, rule in of]
    print(json.dumps({"torch": torch.__version__, "casts": {n: casts(t[0]) for n, t in TYPES.items()},
                      "rows": 6, "cols": 160, "x": bits(x), "matrices": matrices}))


main()
