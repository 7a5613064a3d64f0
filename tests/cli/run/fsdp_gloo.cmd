# PyTorch's FSDP over gloo: every gather and every reduction holds the thread that computes, and a reduction moves what an
# all-reduce does.
what="--model longhaul-3m --seq 512 --gpus 2 --dp 2 --batch 2 --strategy local --weights zero3 --activations keep --dtype f32 --attention cpu"
# The time in which a message moves while a kernel runs, ms, and of the reductions together.
timing() {
    longhaul predict $what --exact --quick "$@" -o $T/p > $T/out
    awk -F , 'BEGIN {n = m = 0}
        $1 == 0 && $2 == "compute" {begin[n] = $10; end[n++] = $11}
        $1 == 0 && $2 ~ /^comm/ {from[m] = $10; to[m++] = $11}
        $1 == 0 && $4 == "reduce_scatter" {reduced += $11 - $10}
        END {
            for (i = 0; i < m; i++) for (k = 0; k < n; k++) {
                a = from[i] > begin[k] ? from[i] : begin[k]; b = to[i] < end[k] ? to[i] : end[k]
                if (b > a) both += b - a
            }
            print (both > 1e-9 ? "overlap" : "no overlap"), 1e3 * reduced
        }' $T/p/ops.csv
}
timing --cluster cpu-node --profile neutral | cut -d ' ' -f 1
one=$(timing --cluster "cpu-node:fabric.bandwidth=1 GB/s,fabric.latency=150 us" --profile fsdp-gloo) whole=$(timing --cluster cpu-gloo --profile fsdp-gloo)
echo "${one% *}"
awk -v one="${one##* }" -v whole="${whole##* }" 'BEGIN {printf "reductions take %.3f times as long\n", whole / one}'
longhaul schedule $what --cluster cpu-gloo --profile fsdp-gloo > $T/schedule && longhaul check $T/schedule
longhaul run --model longhaul-3m --set layers=2 --seq 256 --gpus 2 --dp 2 --batch 2 --strategy local --weights zero3 --activations keep --dtype f32 --attention cpu --profile fsdp-gloo --check 2>&1 | grep -o '^right'
