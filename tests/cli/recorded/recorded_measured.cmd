# The program that ran on GPUs (bench/gpu/hf_step.py; rows of traces/published/external.csv), recorded without one: its
# measured step lies within the interval.
check() {
    measured=$(sed -n "s/^$1,.*,step_ms,\([0-9.]*\),ms,.*/\1/p" $S/traces/published/external.csv)
    longhaul sweep --recording $S/tests/data/recordings/$2.json.gz --gpus 1 --vary cluster=$3 | tail -n 1 | awk -F, -v id=$1 -v ms=$measured '{
        inside = ms >= 1e3 * $5 && ms <= 1e3 * $6 ? "within" : "beyond"
        printf "%s: measured %.1f ms, predicted %.1f (%+.1f %%), %s the interval from %.0f to %.0f\n", id, ms, 1e3 * $4, 100 * (1e3 * $4 / ms - 1), inside, 1e3 * $5, 1e3 * $6 }'
}
check hf-h200-4 hf-1b-h200 h200
check hf-h100-1 hf-1b-h100 dgx-h100
