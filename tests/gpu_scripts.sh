#!/usr/bin/env bash
# What bench/gpu/run and packaging/gpu.sh do where something is in their way: gpu_scripts.sh SOURCE SCRATCH
#
# Programs are stand-ins that fail, so that nothing is measured; ldd, strip and tar are the system's unless a case
# puts its own before them.
set -uo pipefail
source=$1 scratch=$2
rm -rf "$scratch" && mkdir -p "$scratch"/{programs,build/bench,build/tests,tools} && cd "$scratch" || exit 2
failed=0

# expect CODE WORDS COMMAND...: how it ends, and that it says WORDS.
expect()
{
    local code=$1 words=$2 got=0
    shift 2
    "$@" >said.txt 2>&1 || got=$?
    if ((got != code)) || ! grep -qF -- "$words" said.txt; then
        printf 'gpu_scripts: %s: exit %d, expected %d and "%s":\n' "$*" "$got" "$code" "$words"
        cat said.txt
        failed=1
    fi
}

# is WORDS COMMAND...: holds.
is()
{
    local words=$1
    shift
    "$@" >said.txt 2>&1 || {
        printf 'gpu_scripts: %s: not so\n' "$words"
        failed=1
    }
}

# tool NAME LINES: a program of that name, before the system's.
tool()
{
    printf '#!/bin/sh\n%s\n' "$2" >"tools/$1"
    chmod +x "tools/$1"
}

export GPU_SMALL=1
tool longhaul 'echo no GPU here; exit 2'
mv tools/longhaul programs/
run=("$source/bench/gpu/run" "$scratch/programs")
PATH=$scratch/tools:$PATH

# ---- folders ----

mkdir others && echo mine >others/notes
expect 2 "others: error: is not empty" "${run[@]}" others
is "what others keep is there" grep -q mine others/notes
expect 2 "others: error: is not empty" "$source/packaging/gpu.sh" "$scratch/build" "$scratch/others"
is "what others keep is there" grep -q mine others/notes
expect 2 "others/notes: error: is no folder" "${run[@]}" others/notes
mkdir empty
expect 2 "gpu: error: nothing can be run" "${run[@]}" empty
is "the summary counts" grep -q '^0 passed, 1 failed, 0 skipped' empty/summary.txt
is "the results are packed" tar -tzf empty/results.tar.gz ./summary.txt ./probe.txt
echo old >empty/old.txt
expect 2 "gpu: error: nothing can be run" "${run[@]}" empty
is "an earlier run's results are gone" test ! -e empty/old.txt
expect 2 "gpu: error: nothing can be run" "${run[@]}" new/folder
is "a new folder is made" test -s new/folder/summary.txt

# ---- a disk that is full when all is packed ----

tool tar 'echo "tar: write error: No space left on device" >&2; exit 2'
expect 2 "gpu: error: results.tar.gz cannot be written" "${run[@]}" unpacked
is "the summary was written before" grep -q '^0 passed, 1 failed' unpacked/summary.txt
is "no part of an archive is left" test ! -e unpacked/results.tar.gz
rm tools/tar

# ---- a package without a library that it needs, and a whole one ----

for program in longhaul bench/attention_alone tests/test_exec_cuda_numerics_gpu tests/test_exec_cuda_gradients_gpu; do
    echo program >"build/$program"
done
# shellcheck disable=SC2016 # the tools' own
tool strip 'cp "$3" "$2"'
printf 'libhere.so.1 => %s/here.so (0x1)\nlibcudart.so.13 => /nowhere/libcudart.so.13 (0x2)\n' "$scratch" >needed
echo library >here.so
tool ldd "cat '$scratch/needed'; echo 'libnothing.so.7 => not found'"
expect 2 "library libnothing.so.7 is not found on this machine" "$source/packaging/gpu.sh" "$scratch/build" "$scratch/pack"
tool ldd "cat '$scratch/needed'"
expect 0 "pack.tar.gz" "$source/packaging/gpu.sh" "$scratch/build" "$scratch/pack"
is "the library is in it" test -s pack/lib/libhere.so.1
is "NVIDIA's is not" test ! -e pack/lib/libcudart.so.13
is "no folder of it is empty" test -z "$(find pack -type d -empty)"
expect 2 "gpu: error: nothing can be run" env -u PYTHONPATH sh -c 'cp programs/longhaul pack/bin/ && pack/run packed'

# ---- peaks ----

expect 0 "312e12 989.4e12 nan" python3 - "$source/bench/gpu/sdpa_step.py" <<'PYTHON'
import sys
source = open(sys.argv[1]).read().split("\ntry:\n    import torch")[0]
names = {}
exec(source, names)
print(*("%.4ge12" % (peak / 1e12) if peak == peak else peak for peak in map(names["peak_of"], (
    "NVIDIA A100-SXM4-80GB", "NVIDIA H200", "NVIDIA GeForce"))))
PYTHON
exit $failed
