#!/usr/bin/env python3
"""Records how bitsandbytes stores weights in 4 and 8 bits.

    stored_weights.py > tests/data/pytorch/stored_weights.csv      (torch and bitsandbytes; no GPU)

The weights are multiples of a power of two, which the test makes again: element i is ((7919 i) mod 2003 - 1001) / 1024,
divided by 2^(i / 64 mod 5). Of codes, of scales (8-bit ones, then fp32 ones) and of the fp32 values that they stand for
the row has the 64-bit FNV-1a digest of the bytes.
"""
import csv
import sys

import torch
from bitsandbytes import functional as bnb


def digest(*tensors):
    value = 0xCBF29CE484222325
    for t in tensors:
        for byte in t.reshape(-1).contiguous().view(torch.uint8).flatten().tolist():
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def weight(rows, cols):
    i = torch.arange(rows * cols, dtype=torch.int64)
    return (((7919 * i) % 2003 - 1001).float() / 1024 / 2.0 ** (i // 64 % 5).float()).view(rows, cols)


out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(("storage", "rows", "cols", "codes", "scales", "values"))
for rows, cols in ((8, 96), (176, 128), (3, 70)):
    w = weight(rows, cols)
    for storage in ("nf4", "nf4-double"):
        # one row: on processors bitsandbytes 0.50.2 decodes rows that 64 does not divide by other scales
        codes, state = bnb.quantize_4bit(
            w.view(1, -1), blocksize=64, quant_type="nf4", compress_statistics=storage == "nf4-double"
        )
        scales = [state.absmax]
        if storage == "nf4-double":
            scales += [torch.zeros(-len(state.absmax) % 4, dtype=torch.uint8), state.state2.absmax, state.offset]
        values = bnb.dequantize_4bit(codes, state)
        out.writerow((storage, rows, cols, digest(codes), digest(*scales), digest(values)))
    codes, scales, _ = bnb.int8_vectorwise_quant(w.half())
    values = bnb.int8_vectorwise_dequant(codes, scales)
    out.writerow(("int8", rows, cols, digest(codes), digest(scales), digest(values)))
