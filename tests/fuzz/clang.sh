#!/usr/bin/env bash
# What only clang has: clang.sh fuzz|sanitize SOURCE BUILD [SECONDS]
#
# fuzz: every fuzz target for SECONDS (60), from its corpus and its files in tests/data on; what it finds goes into
# BUILD/found.
# sanitize: all everyday tests with clang's address and undefined sanitizers, which see more than gcc's.
# BUILD is a build folder of its own, kept from one time to the next. Exit code 77, with the reason: clang or its
# libraries are not there.
set -uo pipefail
what=$1 source=$2 build=$3 seconds=${4:-60}
jobs=$(nproc)

skip()
{
    echo "skipped: $1"
    exit 77
}

die()
{
    echo "clang.sh: error: $1" >&2
    exit 1
}

command -v clang >/dev/null && command -v clang++ >/dev/null || skip "clang is not installed"
mkdir -p "$build/found" || exit 1
sanitizers=address,undefined
[[ $what == fuzz ]] && sanitizers+=,fuzzer
printf '%s\n' '#include <stddef.h>' '#include <stdint.h>' \
    'int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { return d == 0 && n == 0; }' >"$build/try.c"
[[ $what == fuzz ]] || echo 'int main(void) { return 0; }' >>"$build/try.c"
clang -fsanitize=$sanitizers -o "$build/try" "$build/try.c" 2>"$build/try.txt" ||
    skip "clang has no libraries for -fsanitize=$sanitizers (Debian: libclang-rt-dev)"

options=(-D LONGHAUL_CUDA=OFF)
[[ $what == fuzz ]] || options+=(-D LONGHAUL_FUZZ=OFF)
cmake --preset fuzz -S "$source" -B "$build" "${options[@]}" >"$build/configured.txt" 2>&1 || {
    tail -n 20 "$build/configured.txt"
    die "cannot configure"
}
target=all
[[ $what == fuzz ]] && target=fuzz_targets
cmake --build "$build" --target $target >"$build/built.txt" 2>&1 || {
    tail -n 40 "$build/built.txt"
    die "cannot build"
}

if [[ $what == sanitize ]]; then
    exec ctest --test-dir "$build" -j "$jobs" -L 'unit|property|fuzz' --timeout 1200 --output-on-failure
fi

# one TARGET: fuzzes it for $seconds; keeps its output, and prints the end of it if the target failed.
one()
{
    local target=$1 name=${1##*/fuzz_} before=$SECONDS also=()
    case $name in
    cluster) also=("$source/tests/data/clusters") ;;
    hf_config) also=("$source/tests/data/configs") ;;
    launch) also=("$source/tests/data/launch") ;;
    esac
    mkdir -p "$build/found/$name" "$build/run/$name"
    if "$target" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2560 -print_final_stats=1 \
        -artifact_prefix="$build/found/" "$build/run/$name" "$source/tests/fuzz/corpus/$name" "${also[@]}" \
        >"$build/$name.txt" 2>&1; then
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$name.txt") runs in $((SECONDS - before)) s"
    else
        echo "$name: FAILED"
        tail -n 40 "$build/$name.txt"
        return 1
    fi
}
export -f one
export build source seconds
rm -rf "$build/run"
found=$(printf '%s\n' "$build"/tests/fuzz/fuzz_* | while read -r file; do [[ -f $file && -x $file ]] && echo "$file"; done)
[[ -n $found ]] || die "there are no fuzz targets"
xargs -P "$jobs" -I '{}' bash -c 'one {}' <<<"$found"
