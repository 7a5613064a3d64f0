#!/usr/bin/env bash
# A folder that measures a GPU where nothing can be installed: packaging/gpu.sh BUILD [FOLDER]
#
# FOLDER does not exist, is empty, or was made by this script. It gets, from a build with CUDA (./dev gpu makes one):
# programs in bin/, the libraries that they load in lib/ (except NVIDIA's, which the machine or PyTorch's wheels have),
# the shipped data, and bench/gpu/run. FOLDER.tar.gz gets all of it. On the machine with the GPU, run
# gpu-pack/run RESULTS or gpu-pack/longhaul COMMAND. Its glibc must be no older than the one here, and its driver no
# older than share/needs says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:?packaging/gpu.sh BUILD [FOLDER]}
out=${2:-build/gpu-pack}
source packaging/libraries.sh
source bench/gpu/fresh.sh
fresh "$out"
# Any driver from this version on serves all minor versions of a major version of CUDA (CUDA's release notes, "minor
# version compatibility").
cuda=$(sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\([0-9]*\.[0-9]*\).*/\1/p' "$build"/CMakeFiles/*/CMakeCUDACompiler.cmake 2>/dev/null || true)
case $cuda in
    13.*) driver=580 ;;
    12.*) driver=525 ;;
    *)
        echo "packaging/gpu.sh: error: $build is no build with CUDA 12 or 13 (found '$cuda')" >&2
        exit 2
        ;;
esac
mkdir -p "$out"/{bin,lib/longhaul,share/longhaul/models,share/longhaul/traces}
for program in longhaul bench/attention_alone tests/test_exec_cuda_numerics_gpu \
    tests/test_exec_cuda_gradients_gpu; do
    strip -o "$out/bin/${program##*/}" "$build/$program"
done
strip -o "$out/lib/longhaul/longhaul_simgrid.so" "$build/longhaul_simgrid.so"
found=$(libraries "$out"/bin/* "$out"/lib/longhaul/*)
while read -r soname path; do
    case $soname in
        libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.*) ;;
        libcunit.so.*) strip -o "$out/lib/$soname" "$(readlink -f "$path")" ;;
        libcu* | libnv*) ;;
        *) strip -o "$out/lib/$soname" "$(readlink -f "$path")" 2>/dev/null ||
            cp -L "$path" "$out/lib/$soname" ;;
    esac
done <<<"$found"
cp -r models/presets "$out/share/longhaul/models/"
cp -r traces/published "$out/share/longhaul/traces/"
cp bench/gpu/{run,fresh.sh,sdpa_step.py,skip.py} "$out/share/"
echo "$cuda $driver" >"$out/share/needs"
cat >"$out/longhaul" <<'RUN'
#!/bin/sh
# ./longhaul COMMAND
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" LONGHAUL_DATA="$here/share/longhaul"
exec "$here/bin/longhaul" "$@"
RUN
cat >"$out/run" <<'RUN'
#!/bin/sh
# ./run RESULTS
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/share/run" "$here/bin" "${1:?run RESULTS}"
RUN
chmod +x "$out/run" "$out/longhaul"
tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
echo "$out.tar.gz"
