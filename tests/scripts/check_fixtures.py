#!/usr/bin/env python3
"""Makes the fixtures of tests/data/pytorch anew, and compares them with those that are kept.

    check_fixtures.py TESTS

TESTS is the folder tests/ of the source tree. PyTorch is that which is installed, or that of the Python which
$LONGHAUL_TORCH_PYTHON names. Exit code 1 if a fixture differs, with its lines; 77, with the reason, where PyTorch or what a
fixture needs beside it is missing."""
import difflib
import importlib.util
import os
import pathlib
import subprocess
import sys

other = os.environ.pop("LONGHAUL_TORCH_PYTHON", None)
if other:
    os.execv(other, [other, *sys.argv])
TESTS = pathlib.Path(sys.argv[1])
# a fixture, the script that makes it, and the modules that the script imports
FIXTURES = (
    ("kept.csv", "scripts/kept_bytes.py", ("torch", "transformers")),
    ("adapters.csv", "scripts/adapter_bytes.py", ("torch", "transformers", "peft")),
    ("stored_weights.csv", "scripts/stored_weights.py", ("torch", "bitsandbytes")),
    ("autocast.csv", "scripts/autocast_copies.py", ("torch",)),
    ("float8.json", "data/pytorch/float8.py", ("torch",)),
)


def version(module):
    return f"{module} {importlib.import_module(module).__version__}"


def check(name, script, modules):
    """Returns whether the fixture is as kept; None: a module is missing."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        print(f"{name}: not checked, not installed: {', '.join(missing)}")
        return None
    kept = (TESTS / "data/pytorch" / name).read_text().splitlines()
    made = subprocess.run([sys.executable, TESTS / script], stdout=subprocess.PIPE, encoding="utf-8")
    print(f"{name}: made anew with {', '.join(map(version, modules))}, exit code {made.returncode}")
    lines = list(difflib.unified_diff(kept, made.stdout.splitlines(), "kept", "made anew", lineterm="", n=0))
    print(*(line[:200] for line in lines), sep="\n", end="\n" if lines else "")
    return made.returncode == 0 and not lines


results = [check(*fixture) for fixture in FIXTURES]
sys.exit(1 if False in results else 77 if None in results else 0)
