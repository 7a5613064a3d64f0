#!/usr/bin/env bash
# A folder that measures a GPU where nothing can be installed: packaging/gpu.sh BUILD [FOLDER]
#
# FOLDER is one that is not there, is empty, or was made by this. Of a build with CUDA (./dev gpu makes it):
# programs in bin/, the libraries that they load in lib/ (NVIDIA's are the machine's own, or those of PyTorch's wheels), the
# shipped data, and bench/gpu/run; and all of it in FOLDER.tar.gz. There: gpu-pack/run RESULTS, and
# gpu-pack/longhaul COMMAND. The glibc there must be no older than here, the driver no older than share/needs says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:?packaging/gpu.sh BUILD [FOLDER]}
out=${2:-build/gpu-pack}
source packaging/libraries.sh
source bench/gpu/fresh.sh
fresh "$out"
# Any driver from that one on serves all minor versions of it (CUDA's release notes, "minor version compatibility").
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
