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

# also WORDS: the last command said them, too.
also()
{
    grep -qF -- "$1" said.txt || {
        printf 'gpu_scripts: "%s" is not in:\n' "$1"
        cat said.txt
        failed=1
    }
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

expect 2 "is no build with CUDA 12 or 13" "$source/packaging/gpu.sh" "$scratch/build" "$scratch/pack"
mkdir -p build/CMakeFiles/3.25
echo 'set(CMAKE_CUDA_COMPILER_VERSION "13.0.88")' >build/CMakeFiles/3.25/CMakeCUDACompiler.cmake
for program in longhaul longhaul_simgrid.so bench/attention_alone tests/test_exec_cuda_numerics_gpu \
    tests/test_exec_cuda_gradients_gpu; do
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
is "the simulator is in it" test -s pack/lib/longhaul/longhaul_simgrid.so
is "NVIDIA's is not" test ! -e pack/lib/libcudart.so.13
is "no folder of it is empty" test -z "$(find pack -type d -empty)"
expect 2 "gpu: error: nothing can be run" env -u PYTHONPATH sh -c 'cp programs/longhaul pack/bin/ && pack/run packed'

# ---- a driver that is too old for what the pack was built with, and ones that are not ----

is "what the pack needs is in it" grep -qx '13.0 580' pack/share/needs
# smi DRIVER CUDA: a driver that serves that version.
smi()
{
    tool nvidia-smi "case \$1 in --query*) echo $1 ;; *) echo '| NVIDIA-SMI $1   Driver Version: $1   CUDA Version: $2   |' ;; esac"
}
smi 550.54.15 12.4
expect 2 "built with CUDA 13.0, which needs NVIDIA's driver 580 or later; here is 550.54.15, which serves CUDA 12.4" pack/run packed
also "cuda-compat-13-0"
also "CUDACXX=/usr/local/cuda-12.4/bin/nvcc ./dev gpu"
smi 550.54.15 13.0 # by cuda-compat
expect 2 "gpu: error: nothing can be run" pack/run packed
smi 590.1 13.1
expect 2 "gpu: error: nothing can be run" pack/run packed
tool nvidia-smi 'case $1 in --query*) echo 535.129.03 ;; *) exit 9 ;; esac'
expect 2 "or later; here is 535.129.03." pack/run packed
tool nvidia-smi 'echo "NVIDIA-SMI has failed because it could not communicate with the driver"; exit 9'
expect 2 "gpu: error: nothing can be run" pack/run packed
rm tools/nvidia-smi
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH $LONGHAUL_DATA $*"\n' >pack/bin/longhaul
chmod +x pack/bin/longhaul
expect 0 "$scratch/pack/lib:/mine $scratch/pack/share/longhaul run it" env LD_LIBRARY_PATH=/mine pack/longhaul run it

# ---- ./dev gpu where nothing can be built ----

mkdir -p tree/build plain && cp "$source/dev" tree/dev
tool dpkg-query 'exit 1'
tool apt-get 'echo "E: Unable to locate package"; exit 100'
tool sudo 'exec "$@"'
tool nvcc 'exit 0'
expect 2 "there is no pack. Run ./dev gpu where nvcc is" tree/dev gpu
also "error: could not install build-essential"
expect 2 "there is no CUDA compiler (no-such-nvcc) in PATH" env CUDACXX=no-such-nvcc tree/dev gpu
mkdir -p plain/gpu-pack && printf '#!/bin/sh\necho "the pack leaves all in $1"\n' >plain/gpu-pack/run
chmod +x plain/gpu-pack/run
tar -C plain -czf tree/gpu-pack.tar.gz gpu-pack
expect 0 "the pack leaves all in build/gpu-results" tree/dev gpu
rm tree/gpu-pack.tar.gz
expect 0 "the pack leaves all in build/gpu-results" env CUDACXX=no-such-nvcc tree/dev gpu
rm tools/{dpkg-query,apt-get,sudo,nvcc}

# ---- peaks ----

expect 0 "312e12 989.4e12 nan" python3 - "$source/bench/gpu/sdpa_step.py" <<'PYTHON'
import os
import sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
sys.dont_write_bytecode = True
source = open(sys.argv[1]).read().split("\ntry:\n    import torch")[0]
names = {}
exec(source, names)
print(*("%.4ge12" % (peak / 1e12) if peak == peak else peak for peak in map(names["peak_of"], (
    "NVIDIA A100-SXM4-80GB", "NVIDIA H200", "NVIDIA GeForce"))))
PYTHON

# ---- calls are queued one behind the other, and only the last ones count ----

expect 0 "begin call end begin call end begin call end wait [2.0, 3.0]" python3 - "$source/bench/gpu/sdpa_step.py" <<'PYTHON'
import sys
log = []
class Event:
    made = 0
    def __init__(self, enable_timing):
        self.name, self.number = ("begin", "end")[Event.made % 2], Event.made // 2
        Event.made += 1
    def record(self):
        log.append(self.name)
    def elapsed_time(self, end):
        return 1000.0 * (1 + end.number)
class cuda:
    Event = Event
    synchronize = staticmethod(lambda: log.append("wait"))
class torch:
    cuda = cuda
source = open(sys.argv[1]).read()
space = {"torch": torch}
exec("def timed" + source.split("def timed")[1].split("\n\n\n")[0], space)
seconds = space["timed"](lambda: log.append("call"), 1, 2)
print(*log, seconds)
PYTHON

# ---- without PyTorch, or without a GPU ----

for script in hf_step sdpa_step power_law; do
    expect 77 "skipped: " env CUDA_VISIBLE_DEVICES= PYTHONDONTWRITEBYTECODE=1 python3 "$source/bench/gpu/$script.py"
done
exit $failed
