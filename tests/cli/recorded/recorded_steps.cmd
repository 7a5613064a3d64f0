# A device fitted to one short recorded step predicts the median of five steps at other lengths, on another number of
# ranks and of another model: within 15 %, or within twice the spread of the five (tests/data/recorded/README.md). The
# interval of the prediction, which follows from the spreads of the fitted numbers, holds that median.
cd $S/tests/data/recorded
for name in 1x512.0 2x512.0 2x512.1; do gunzip -c llama-a-$name.json.gz > $T/llama-a-$name.json; done
# verdict CASE FILE FIRST-COLUMN-OF-TIMES OPTIONS...
verdict() {
    case=$1 file=$2 column=$3
    shift 3
    longhaul predict --activations keep --dtype f32 --attention cpu --quick "$@" --json > $T/out
    for key in step_s step_low_s step_high_s; do sed -n "s/.*\"$key\": \([0-9.e-]*\).*/\1/p" $T/out | head -1; done |
        cat - $file | awk -F , -v name=$case -v c=$column '
        NR == 1 {got = 1e3 * $1}
        NR == 2 {low = 1e3 * $1}
        NR == 3 {high = 1e3 * $1}
        $1 == name {
            for (i = 0; i < 5; i++) v[i] = $(c + i)
            for (i = 0; i < 5; i++) for (k = i + 1; k < 5; k++) if (v[k] < v[i]) {t = v[i]; v[i] = v[k]; v[k] = t}
            error = got / v[2] - 1; if (error < 0) error = -error
            spread = 2 * (v[4] - v[0]) / v[2]
            print name ": " (error <= 0.15 ? "within 15 %" : error <= spread ? "within twice the spread" : "beyond") \
                (low <= v[2] && v[2] <= high ? ", in its interval" : ", outside its interval")
        }'
}
one="--gpus 1 --strategy local --weights replicated"
# PyTorch, one process
torch="--cluster cpu-node --activations keep --dtype f32 --attention cpu"
longhaul calibrate $T/llama-a-1x512.0.json --model llama-a.config.json $one $torch --seq 512 -o $T/one.json | grep ^recorded
for seq in 512 768 1024 2048; do
    verdict llama-a-1x$seq steps.csv 5 --model llama-a.config.json --cluster cpu-node --costs $T/one.json $one --seq $seq
done
verdict llama-b-1x1024 steps.csv 5 --model llama-b.config.json --cluster cpu-node --costs $T/one.json $one --seq 1024
# FSDP over gloo on two, whose fit predicts one process too
two="--gpus 2 --dp 2 --batch 2 --strategy local --weights zero3 --profile fsdp-gloo"
longhaul calibrate $T/llama-a-2x512.0.json $T/llama-a-2x512.1.json --model llama-a.config.json $two --activations keep --dtype f32 --attention cpu --cluster cpu-gloo --seq 512 -o $T/two.json --cluster-out $T/two.cluster.json | grep '^recorded\|^ring'

for seq in 512 1024 2048; do
    verdict llama-a-1x$seq steps.csv 5 --model llama-a.config.json --cluster cpu-node --costs $T/two.json $one --seq $seq
done
verdict llama-b-1x1024 steps.csv 5 --model llama-b.config.json --cluster cpu-node --costs $T/two.json $one --seq 1024
# of FSDP itself: its links were measured too
for seq in 512 768 1024 2048; do
    verdict llama-a-2x$seq steps.csv 5 --model llama-a.config.json --cluster $T/two.cluster.json $two --seq $seq
done
verdict llama-b-2x1024 steps.csv 5 --model llama-b.config.json --cluster $T/two.cluster.json $two --seq 1024
# of FSDP by the fit of one process, which measures no links: those of cpu-gloo, and two processes that slow each other
for seq in 512 768 1024 2048; do
    verdict llama-a-2x$seq steps.csv 5 --model llama-a.config.json --cluster cpu-gloo --costs $T/one.json $two --seq $seq
done
# our executor: one rank's step predicts rings over two
a="--model longhaul-3m --set layers=4 --cluster cpu-node"
b="--model longhaul-3m --set layers=3,hidden=384,heads=12,kv_heads=6,ffn=1024 --cluster cpu-node"
longhaul calibrate local-a-1x512.ops.csv $a $one --activations keep --dtype f32 --attention cpu --seq 512 -o $T/own.json | grep ^recorded
for seq in 512 1024 2048; do verdict local-a-1x$seq rings.csv 6 $a --costs $T/own.json $one --seq $seq; done
for seq in 512 768 1024 2048; do
    verdict ring-a-2x$seq rings.csv 6 $a --costs $T/own.json --gpus 2 --strategy ring --weights replicated --seq $seq
done
verdict ring-b-2x1024 rings.csv 6 $b --costs $T/own.json --gpus 2 --strategy ring --weights replicated --seq 1024
verdict local-b-1x1024 rings.csv 6 $b --costs $T/own.json $one --seq 1024
