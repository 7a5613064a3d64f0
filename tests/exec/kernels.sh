#!/bin/bash
# What the compiler says of the CUDA backend's kernels, beside what the tests take for granted:
#   kernels.sh NVCC SOURCE SCRATCH
# - tests/exec/emulator/kernels.def has every kernel, with its bytes of static shared memory;
# - a block with the most threads that it is launched with has the registers that it needs;
# - no kernel divides in 64 bits, except where its threads begin or its sizes have more than 32.
# A third of the files a day; at night, with CHECK_ALL, all of them, and then no row of kernels.def lacks its kernel.
set -euo pipefail
nvcc=$1 source=$2 scratch=$3
divide_in_64_bits="merge_lse_kernel pack_kernel fill_kernel token_begins_kernel"

rm -rf "$scratch"
mkdir -p "$scratch"
cd "$source"
day=${CHECK_DAY:-$(($(date +%s) / 86400))}
for file in exec/cuda/*.cu; do
    day=$((day + 1))
    [[ -n ${CHECK_ALL-} || $((day % 3)) == 0 ]] || continue
    name=$(basename "$file" .cu)
    "$nvcc" -std=c++17 -O3 -I. -arch=sm_90 -cubin -Xptxas -v --keep --keep-dir "$scratch" \
        "$file" -o "$scratch/$name.cubin" 2>"$scratch/$name.log"
done

# "kernel static registers" and "kernel" of each division, from names like _Z11norm_kernelILb0EEv...
awk '/Compiling entry function/ {
        match($0, /_Z[0-9]+/)
        length_ = substr($0, RSTART + 2, RLENGTH - 2)
        name = substr($0, RSTART + RLENGTH, length_)
    }
    / Used [0-9]+ registers/ {
        match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
        static = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
        print name, static, registers
    }' "$scratch"/*.log | sort -u >"$scratch/compiled"
awk '/\.entry/ { match($0, /_Z[0-9]+/); name = substr($0, RSTART + RLENGTH, substr($0, RSTART + 2, RLENGTH - 2)) }
    /(div|rem)\.[su]64/ { print name }' "$scratch"/*.ptx | sort -u >"$scratch/divides"
sed -n 's/^KERNEL(\([a-z_0-9]*\), *\([0-9]*\), *\([0-9]*\)).*/\1 \2 \3/p' \
    tests/exec/emulator/kernels.def >"$scratch/table"

awk -v all="${CHECK_ALL-}" -v divides="$scratch/divides" -v may="$divide_in_64_bits" '
    FILENAME ~ /table$/ { static[$1] = $2; threads[$1] = $3; next }
    !($1 in static) { print $1 ": not in kernels.def"; bad = 1; next }
    { seen[$1] = 1 }
    $2 != static[$1] { print $1 ": " $2 " bytes of static shared memory, kernels.def has " static[$1]; bad = 1 }
    int(($3 + 7) / 8) * 8 * threads[$1] > 65536 { print $1 ": " $3 " registers are too many for " threads[$1] " threads"; bad = 1 }
    END {
        for (name in static)
            if (all != "" && !(name in seen)) { print name ": in kernels.def, and no such kernel"; bad = 1 }
        split(may, list, " ")
        for (i in list)
            allowed[list[i]] = 1
        while ((getline name < divides) > 0)
            if (!(name in allowed)) { print name ": divides in 64 bits"; bad = 1 }
        exit bad
    }' "$scratch/table" "$scratch/compiled"
count=$(cut -d' ' -f1 "$scratch/compiled" | sort -u | wc -l)
echo "$count kernels agree with tests/exec/emulator/kernels.def"
