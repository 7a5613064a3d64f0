"""Records one training step of a PyTorch program on a machine without a GPU.

    import longhaul.record                      # before torch
    import torch

    with longhaul.record.Step("step.json.gz", world_size=64, rank=0, device="h100-sxm") as rec:
        model, optimizer = build()              # nothing is allocated and nothing is computed
        train_step()                            # makes the optimizer's states
        with rec.step():
            train_step()                        # this step is written

`python -m longhaul.record -o step.json.gz train.py ARGS` records a script that is not changed at all. Tensors are fake, and
a stub stands for CUDA's runtime, so PyTorch chooses its kernels as it does on the device and launches none. The file holds
every kernel with shapes, bytes and flops, every collective, the order of streams, and every storage with its life
(docs/schema/step.json). `longhaul predict step.json.gz` predicts it on a cluster.

Importing this module makes PyTorch believe in a GPU that is not there: a program that trains must not import it.
`longhaul.know` is for such programs.
"""
import csv
import ctypes
import importlib.util
import os
import pathlib
import re
import sys

import longhaul

__all__ = ["DEVICES", "Refused", "Step"]

_HERE = pathlib.Path(__file__).parent


class Refused(longhaul.Error):
    """What cannot be recorded, and what would do instead."""


def _read_devices():
    with open(_HERE / "devices.csv", newline="") as file:
        return {row.pop("name"): {key: value if key == "torch_name" else int(value) for key, value in row.items()}
                for row in csv.DictReader(file)}


DEVICES = _read_devices()


def _cuda_of_torch():
    """The version of CUDA, such as "13.2", that the installed PyTorch was built with; its package is not imported."""
    if not sys.platform.startswith("linux"):
        raise Refused(f"recording needs PyTorch's CUDA build, which {sys.platform} does not have: record on Linux (no GPU is "
                      "needed) or in a Linux container")
    if "torch" in sys.modules:
        raise Refused("torch is imported already: import longhaul.record before it, or run the script by `python -m "
                      "longhaul.record`")
    spec = importlib.util.find_spec("torch")
    if spec is None:
        raise Refused("PyTorch is not installed: pip install torch (its wheel for Linux is a CUDA build; no GPU is needed)")
    said = (pathlib.Path(spec.origin).parent / "version.py").read_text()
    value = {key: text for key, text in re.findall(r"^(__version__|cuda|hip)\b.*?= *'([^']*)'", said, re.MULTILINE)}
    name = f"torch {value.get('__version__', '')}"
    if "hip" in value:
        raise Refused(f"{name} is built for ROCm: recording needs a CUDA build (pip install torch)")
    if "cuda" not in value:
        raise Refused(f"{name} is built without CUDA: recording needs a CUDA build, though no GPU (pip install torch from PyPI, "
                      "without an --index-url that ends in /cpu)")
    if value["cuda"].split(".")[0] not in ("12", "13"):
        raise Refused(f"{name} is built for CUDA {value['cuda']}: recording knows CUDA 12 and 13")
    return value["cuda"]


def _load_stub():
    path = pathlib.Path(os.environ.get("LONGHAUL_RECORD_STUB") or _HERE / "libstub.so")
    if not path.is_file():
        raise Refused(f"{path} is missing: install the wheel longhaul-sim, or let LONGHAUL_RECORD_STUB name the library that "
                      "CMake's target record_stub builds")
    stub = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    stub.stub_set_device.argtypes = [ctypes.c_char_p] + 4 * [ctypes.c_int] + [ctypes.c_size_t]
    stub.stub_set_device.restype = None
    return stub


try:
    CUDA = _cuda_of_torch()
    STUB = _load_stub()
except Refused as error:
    if sys.argv[:1] != ["-m"]:
        raise
    print(f"longhaul.record: error: {error}", file=sys.stderr)  # python -m imports this before __main__
    sys.exit(2)


def set_device(name):
    """PyTorch will see this device; it reads the properties when it first uses CUDA."""
    if name not in DEVICES:
        raise Refused(f"no device {name!r}; there are: {', '.join(DEVICES)}")
    row = DEVICES[name]
    major, minor = (CUDA.split(".") + ["0"])[:2]
    STUB.stub_set_device(row["torch_name"].encode(), 1000 * int(major) + 10 * int(minor), row["major"], row["minor"],
                     row["multiprocessors"], row["memory_gib"] << 30)


set_device("h100-sxm")

from longhaul.record.step import Step  # noqa: E402  PyTorch is imported once the stub is loaded
