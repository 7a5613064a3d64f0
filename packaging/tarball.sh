#!/usr/bin/env bash
# A tarball that runs on any Linux of this processor, without root: packaging/tarball.sh [FOLDER]
#
# The program goes into libexec/ and finds its libraries beside it, in lib/. glibc itself is in
# lib/glibc, for systems with an older one: bin/longhaul takes the system's glibc if it is new enough.
# The MPI module is left out: it must be built with the MPI that starts it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source packaging/libraries.sh
out=${1:-build}
build=build/package
version=$(sed -n 's/^project(longhaul VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=longhaul-$version-linux-$(uname -m)
stage=$build/$name

mkdir -p build "$out"
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DLONGHAUL_TESTS=OFF -DLONGHAUL_BUNDLE=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON > $build.log 2>&1 || { cat $build.log >&2; exit 2; }
cmake --build $build --target longhaul >&2
rm -rf "$stage"
cmake --install $build --prefix "$stage" > /dev/null
mkdir -p "$stage"/{libexec,lib/glibc}
mv "$stage/bin/longhaul" "$stage/libexec/longhaul"
strip "$stage/libexec/longhaul" "$stage/lib/longhaul/longhaul_simgrid.so"

# Every library that it loads, by the name under which it is asked for.
found=$(libraries "$stage/libexec/longhaul" "$stage/lib/longhaul/longhaul_simgrid.so")
while read -r soname path; do
    case $soname in
        libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.*)
            cp -L "$path" "$stage/lib/glibc/$soname" ;;
        *) cp -L "$path" "$stage/lib/$soname" ;;
    esac
done <<<"$found"
find "$stage/lib" -maxdepth 1 -name 'libsimgrid*' -exec strip --strip-unneeded {} + # one built from source has symbols
loader=$(ldd "$stage/libexec/longhaul" | sed -n 's/^\s*\(\/\S*ld-linux\S*\) .*/\1/p')
cp -L "$loader" "$stage/lib/glibc/ld.so"

cp packaging/start.sh "$stage/bin/longhaul"
chmod +x "$stage/bin/longhaul"
cp packaging/NOTICE "$stage/NOTICE"
tar -C $build --sort=name --owner=0 --group=0 --numeric-owner -czf "$out/$name.tar.gz" "$name"
echo "$out/$name.tar.gz"
