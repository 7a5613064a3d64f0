#!/usr/bin/env bash
# power_experiment.sh RESULTS [LONGHAUL]: does power explain that steps on an H100 and an H200 took less time than
# predicted? A step of gpt-2.7b with 4 layers at 32K tokens, 1 and 16 sequences, with a model's weights and with flat
# ones, which draw less power; clocks are sampled. The predictions are made first, of costs that bench measures here, and
# nothing changes them; those from the presets are committed (power_predicted.csv) and are printed beside. The claim is
# false if 16 sequences with a model's weights take over 3 % less time than predicted, or if the weights move that step
# by less than 2 %. Some 5 minutes. SMALL=1 and the program for the emulated device try
# the commands. docs/measuring.md, "The power experiment".
set -eu
out=$1
longhaul=${2:-build/cuda/longhaul}
what=(--model gpt-2.7b --set layers=4,heads=20,kv_heads=20,head_dim=128 --seq 32K --strategy local --gpus 1 --attention cudnn)
steps=(--steps 5) bench=(--quick) limit=25
if [[ -n ${SMALL:-} ]]; then
    what=(--model longhaul-3m --set layers=2,hidden=64,heads=4,kv_heads=4,head_dim=16,ffn=96,vocab=96 --seq 64
        --strategy local --gpus 1 --attention cudnn)
    steps=(--steps 1 --warmup 1) bench=(--quick --kinds h2d,d2h --within 10) limit=100000
fi
cluster=${CLUSTER:-dgx-h100}
preset=${SMALL:+nothing}
preset=${preset:-$cluster}
mkdir -p "$out"
case $cluster in
*h200*) base=h200 ;;
*) base=h100 ;;
esac
"$longhaul" bench --backend cuda "${bench[@]}" -o "$out/points.csv"
# 1: a fit was refused, and its numbers are the preset's
"$longhaul" calibrate "$out/points.csv" --base $base --limit $limit --cluster "$cluster" --cluster-out "$out/here.json" \
    >"$out/fits.txt" || [[ $? == 1 ]]
[[ ! -s $out/here.json ]] || cluster=$out/here.json
for batch in 1 16; do
    "$longhaul" predict "${what[@]}" --batch $batch --cluster "$cluster" -o "$out/predicted-$batch" >"$out/predicted-$batch.txt"
done
for batch in 1 16; do
    "$longhaul" run "${what[@]}" --batch $batch --backend cuda "${steps[@]}" --json >"$out/model-$batch.json"
    "$longhaul" run "${what[@]}" --batch $batch --backend cuda "${steps[@]}" --flat-weights --json >"$out/flat-$batch.json"
    "$longhaul" run "${what[@]}" --batch $batch --backend cuda "${steps[@]}" -o "$out/measured-$batch" >"$out/measured-$batch.txt"
    "$longhaul" compare "$out/predicted-$batch" "$out/measured-$batch" --all >"$out/compared-$batch.txt"
done
python3 - "$out" "$(dirname "$0")/power_predicted.csv" "$preset" <<'END'
import csv, json, sys

out, committed, preset = sys.argv[1:]
rows = csv.DictReader(line for line in open(committed) if not line.startswith("#"))
before = {int(r["batch"]): float(r["step_s"]) for r in rows if r["cluster"] == preset}
step = lambda name: json.load(open(f"{out}/{name}.json"))["step_s"]
for batch in 1, 16:
    lines = open(f"{out}/predicted-{batch}/ops.csv").read().split("\n")
    predicted = next(float(l.split("=")[1]) for l in lines if l.startswith("# step_s="))
    model, flat = step(f"model-{batch}"), step(f"flat-{batch}")
    print(f"batch {batch}: predicted {predicted:.4g} s, measured {model:.4g} s ({100 * (predicted / model - 1):+.1f} %), "
          f"flat weights {flat:.4g} s ({100 * (flat / model - 1):+.1f} %)")
    if batch in before:
        print(f"batch {batch}: committed before, from preset {preset}: {before[batch]:.4g} s "
              f"({100 * (before[batch] / model - 1):+.1f} %)")
false = predicted / model - 1 > 0.03 or abs(flat / model - 1) < 0.02
print("that power explains the error is", "false" if false else "not refuted")
END
