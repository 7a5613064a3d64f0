#!/usr/bin/env bash
# Wherever memory runs out, ours or a library's, the program ends in one message: no_memory.sh PROGRAM PRELOAD SOURCE SCRATCH
set -uo pipefail
program=$1 preload=$2 source=$3 scratch=$4
rm -rf "$scratch" && mkdir -p "$scratch" && cd "$scratch" || exit 2
ulimit -c 0
failed=0 tried=0

# ends POSITIONS COMMAND...: runs it with memory that ends at so many places, spread over all its allocations.
ends()
{
    local positions=$1 all at code
    shift
    all=$(LD_PRELOAD=$preload "$program" "$@" 2>&1 >/dev/null | sed -n 's/ allocations$//p')
    [[ $all -gt $positions ]] || {
        echo "no_memory: $*: ${all:-no} allocations were counted"
        failed=1
        return
    }
    for ((i = 0; i < positions; i++)); do
        at=$((1 + i * all / positions)) code=0
        FAIL_AT=$at LD_PRELOAD=$preload "$program" "$@" >/dev/null 2>said.txt || code=$?
        tried=$((tried + 1))
        # Of the C library, a call that opens something gives the reason itself.
        if ((code != 2)) || ! tail -n 1 said.txt | grep -qE '^longhaul: error: out of memory: |Cannot allocate memory'; then
            echo "no_memory: $*: allocation $at of $all: exit $code:"
            cat said.txt
            failed=1
        fi
    done
}

ends 24 predict --model internlm-7b-mha --cluster loongtrain-a100 --gpus 32 --strategy ulysses --seq 512K
ends 8 calibrate "$source/tests/data/calibration/cpu-example.csv" -o here.json
ends 8 run --model longhaul-3m --set layers=1 --seq 128 --strategy local --steps 1
echo "$tried ends"
exit $failed
