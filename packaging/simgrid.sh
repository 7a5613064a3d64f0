#!/usr/bin/env bash
# SimGrid without ns-3, from source: packaging/simgrid.sh PREFIX
#
# Fetches SimGrid 3.32 (the source that PyPI has) by pip, builds the library alone, and installs it into PREFIX. It takes
# 6 minutes of processor time. Debian's SimGrid links ns-3, whose licence (GPL 2 only) keeps a binary that also
# links GSL (GPL 3) from being passed on.
set -euo pipefail
[[ $# == 1 ]] || { echo "packaging/simgrid.sh: error: expected PREFIX, the folder to install into" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
work=$prefix/build
mkdir -p "$work"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q setuptools wheel pybind11
"$work/venv/bin/pip" download -q --no-deps --no-build-isolation --no-binary simgrid -d "$work" simgrid==3.32
tar -C "$work" -xf "$work/simgrid-3.32.tar.gz"
cmake -S "$work/simgrid-3.32" -B "$work/tree" -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_BUILD_TYPE=Release \
    -Denable_ns3=OFF -Denable_smpi=OFF -Denable_python=OFF -Denable_java=OFF -Denable_documentation=OFF \
    -Denable_model-checking=OFF -Denable_lto=OFF
cmake --build "$work/tree" # its install target wants the tools too
cmake --install "$work/tree"
rm -rf "$work"
