#!/usr/bin/env bash
# torchrun.sh PROGRAM: PyTorch's launcher starts steps of 2 and 4 processes on the emulated device, with its static
# rendezvous, whose agent keeps a store on MASTER_PORT, and with --standalone. 77: there is no torchrun.
set -u
program=$1
# Debian's python3-torch is a module of /usr/bin/python3, which need not be the first python3 of PATH.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import torch.distributed.run' 2>/dev/null && break
    python=
done
if [[ -z $python ]]; then
    echo "skipped: no python3 has PyTorch (Debian: python3-torch)"
    exit 77
fi
"$python" -c 'import torch; print("PyTorch", torch.__version__)'
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export EMULATED_NCCL_FILES=$out OMP_NUM_THREADS=1
port=$((20000 + $$ % 10000))
wrong=0

# started COUNT LAUNCHER-OPTION... -- OPTION...: a checked step of a small model.
started()
{
    local count=$1 options=()
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    # Options with '_' are those that all versions of torchrun know. Debian's PyTorch 1.13 is older than its Python 3.11,
    # in which it does not find its own default of --redirects and --tee.
    if ! EMULATED_DEVICES=$count timeout 150 "$python" -m torch.distributed.run --nproc_per_node "$count" \
        --redirects 1 --tee 1 --log_dir "$out/logs" "${options[@]}" --no_python "$program" run --backend cuda --gpus "$count" --model longhaul-3m \
        --set layers=2,hidden=64,heads=4,kv_heads=4,head_dim=16,ffn=96,vocab=96 --seq 96 --dtype f32 \
        --check "$@" >"$out/said" 2>&1; then
        echo "wrong: $count processes, ${options[*]}, $*"
        cat "$out/said"
        wrong=$((wrong + 1))
    fi
    grep -qE "\bloss\b" "$out/said" || {
        echo "no table of the check: $count processes, ${options[*]}"
        cat "$out/said"
        wrong=$((wrong + 1))
    }
}

for count in 2 4; do
    started "$count" --master_port $((port += 1)) -- --strategy ulysses --profile ideal --weights zero3
    started "$count" --standalone -- --strategy ring --profile ideal --weights zero1
done
exit $((wrong > 0))
