#!/usr/bin/env python3
"""Records the steps of tests/data/recordings anew by its record.sh, and compares them with those that are kept.

    check_recordings.py SOURCE

SOURCE is the source tree. PyTorch is that which is installed, or that of the Python which $LONGHAUL_TORCH_PYTHON names. Exit code
1 if a step differs, with the members that do; 77, with the reason, where a package is missing or of another version."""
import gzip
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

other = os.environ.pop("LONGHAUL_TORCH_PYTHON", None)
if other:
    os.execv(other, [other, *sys.argv])
KEPT = pathlib.Path(sys.argv[1], "tests/data/recordings")


def read(path):
    return json.loads(gzip.decompress(path.read_bytes()))


for name, version in re.findall(r"(PyTorch|transformers|diffusers) (\d+\.\d+\.\d+)", (KEPT / "README.md").read_text()):
    name = {"PyTorch": "torch"}.get(name, name)
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found.split("+")[0] != version:
        print(f"skipped: the recordings were made with {name} {version}, and {found} is installed")
        sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    made = pathlib.Path(folder, "recordings")
    shutil.copytree(KEPT, made, ignore=shutil.ignore_patterns("*.gz"))
    subprocess.run(["sh", str(made / "record.sh"), sys.executable], check=True,
                   env={**os.environ, "BENCH": str(pathlib.Path(sys.argv[1], "bench/gpu").resolve())})
    names = sorted({path.name for where in (KEPT, made) for path in where.glob("*.json.gz")})
    failed = False
    for name in names:
        if not ((made / name).exists() and (KEPT / name).exists()):
            print(f"{name}: {'no command of record.sh makes it' if (KEPT / name).exists() else 'is not kept'}")
            failed = True
            continue
        old, new = read(KEPT / name), read(made / name)
        differ = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        if differ:
            print(f"{name}: made anew, differs in {', '.join(differ)}")
            for i, (a, b) in enumerate(zip(old["events"], new["events"])):
                if a != b:
                    print(f"  event {i} was {json.dumps(a)[:300]}\n  and is {json.dumps(b)[:300]}")
                    break
        failed |= bool(differ)
print(f"{len(names)} recordings were made anew")
sys.exit(failed)
