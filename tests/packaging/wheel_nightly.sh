#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment, and predicts with it:
# wheel_nightly.sh PROGRAM SOURCE SCRATCH. PROGRAM is a longhaul whose answers the wheel's must equal.
set -euo pipefail
program=$1 source=$2 scratch=$3
unset PYTHONPATH LONGHAUL_PROGRAM LONGHAUL_DATA LD_LIBRARY_PATH
rm -rf "$scratch"
mkdir -p "$scratch/wheels"
cd "$scratch"

python3 -m venv new || { echo "skipped: python3 cannot make an environment; install python3-venv"; exit 77; }
# setuptools and wheel are on this machine, or pip must be able to fetch them.
if ! python3 -c 'import setuptools, wheel' 2>/dev/null && ! /usr/bin/python3 -c 'import setuptools, wheel' 2>/dev/null &&
    ! new/bin/pip download --quiet --no-deps -d fetched 'setuptools>=63' wheel; then
    echo "skipped: no python3 has setuptools and wheel, and pip cannot fetch them"
    exit 77
fi
"$source/packaging/wheel.sh" "$scratch/wheels"
wheel=$(echo wheels/*.whl)
new/bin/python - "$wheel" "$source" <<'PYTHON'
import sys, zipfile
wheel, source = zipfile.ZipFile(sys.argv[1]), sys.argv[2]
names = wheel.namelist()
metadata = next(wheel.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
assert "\nLicense: GPL-3.0-or-later" in metadata, metadata
assert any(name.endswith(".dist-info/NOTICE") or name.endswith("/licenses/NOTICE") for name in names), names
carried = [name for name in names if "libgsl." in name or "libsimgrid." in name or "libopenblas" in name]
assert len(carried) == 3, carried
assert "longhaul/record/libstub.so" in names and "longhaul/record/devices.csv" in names, names
assert not [name for name in names if "/libc.so" in name or "/glibc/" in name or "__pycache__" in name]
PYTHON

# The two commands of a new user, with nothing else in the environment.
new/bin/pip install --quiet --no-index "$wheel"
env -i new/bin/longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 128K > got
"$program" predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 128K > want
diff want got

# Of the system it loads glibc only.
tree=$(new/bin/python -c 'import longhaul, pathlib; print(pathlib.Path(longhaul.program()).parent.parent)')
others=$(ldd "$tree/libexec/longhaul" "$tree/lib/longhaul/longhaul_simgrid.so" | sed -n 's/.* => \(\S*\) .*/\1/p' | xargs -n 1 realpath |
    grep -v "^$(realpath "$tree")/" | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv)\.so\.[0-9]+$' || true)
[[ -z $others ]] || { echo "the wheel's program loads libraries of the system: $others"; exit 1; }
status=0
new/bin/longhaul predict --model nope --cluster dgx-h100 --seq 64K 2> error || status=$?
[[ $status == 2 ]] || { echo "exit code $status of a wrong model, want 2"; exit 1; }
status=0
new/bin/python -m longhaul.record train.py 2> error || status=$?
[[ $status == 2 ]] && grep -q 'PyTorch is not installed: pip install torch' error ||
    { echo "recording without PyTorch: exit code $status: $(cat error)"; exit 1; }
(cd / && env -i "$scratch/new/bin/python" "$source/tests/packaging/check_module.py" "$program")
if new/bin/pip install --quiet pandas; then
    new/bin/python "$source/tests/packaging/check_module.py" "$program" Module.test_sweep_returns_a_frame_with_pandas
else
    echo "note: pandas cannot be fetched, so no sweep was read into a real DataFrame"
fi
