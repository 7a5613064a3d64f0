#!/usr/bin/env bash
# The Python package longhaul-sim as a wheel: packaging/wheel.sh [--simgrid PREFIX] [FOLDER]
#
# --simgrid: an installed SimGrid without ns-3, with which the wheel may be passed on (packaging/simgrid.sh makes one).
#
# The wheel carries the tree of packaging/tarball.sh without its glibc: the wheel's tag names the glibc of this machine,
# and pip installs it only where that one or a later one is. $PYTHON, or a python3 that has setuptools and wheel, builds
# it without a network; where none has them, pip fetches both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ${1:-} == --simgrid ]]; then
    [[ -n ${2:-} && -f $2/lib/pkgconfig/simgrid.pc ]] || {
        echo "packaging/wheel.sh: error: --simgrid ${2:-}: is no installed SimGrid: it has no lib/pkgconfig/simgrid.pc" >&2
        exit 2
    }
    prefix=$(cd "$2" && pwd)
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
    rm -rf build/package # which CMake may have configured with another SimGrid
    shift 2
fi
out=${1:-build}
stage=build/wheel
version=$(sed -n 's/^project(longhaul VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
glibc=$(getconf GNU_LIBC_VERSION)
glibc=${glibc#glibc }

isolation=()
for python in ${PYTHON:-python3 /usr/bin/python3}; do
    if "$python" -c 'import setuptools, wheel, pip; assert int(setuptools.__version__.split(".")[0]) >= 63' \
        2>/dev/null; then
        isolation=(--no-build-isolation)
        break
    fi
done
if [[ -z ${isolation[*]} ]]; then
    python=${PYTHON:-python3}
    "$python" -m pip --version >/dev/null || {
        echo "packaging/wheel.sh: error: $python has no pip; install python3-pip python3-setuptools python3-wheel" >&2
        exit 2
    }
fi

packaging/tarball.sh build/package >/dev/null
rm -rf $stage
mkdir -p $stage "$out"
cp -r packaging/python/. LICENSE packaging/NOTICE $stage
echo "$version" > $stage/VERSION
printf '[bdist_wheel]\nplat_name = manylinux_%s_%s\n' "${glibc/./_}" "$(uname -m)" > $stage/setup.cfg
cp -r "build/package/longhaul-$version-linux-$(uname -m)" $stage/longhaul/tree
rm -r $stage/longhaul/tree/{bin,lib/glibc,NOTICE}
cmake --build build/package --target record_stub >&2 # the GPU that longhaul.record pretends
cp build/package/libstub.so $stage/longhaul/record/
rm $stage/longhaul/record/stub.c
ns3=$(find $stage/longhaul/tree/lib -name 'libns3*' -print -quit)
[[ -z $ns3 ]] || echo "packaging/wheel.sh: note: SimGrid brings ns-3 (GPL 2 only), which may not be passed on" \
    "together with GSL: this wheel is for your own use (docs/installing.md)" >&2

"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps "${isolation[@]}" -w "$out" ./$stage >&2
ls "$out"/longhaul_sim-"$version"-py3-none-manylinux_"${glibc/./_}_$(uname -m)".whl
