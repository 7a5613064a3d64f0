# docs/products.md: errors of measured steps with products in 8 and 4 bits, and their gains over bf16, row by row as they come now.
longhaul validate --data $S/traces/published/external-fp8.csv --json > $T/steps.json 2> $T/note
# The residuals by which intervals are judged are those of the model as it is; so are those of steps with experts.
for set in fp8 moe; do
  longhaul validate --data $S/traces/published/external-$set.csv --residuals $T/residuals-$set.csv > $T/note 2>&1 || [ $set = moe ] # of which rows with products in 8 bits cannot be predicted
  cmp $T/residuals-$set.csv $S/traces/published/residuals-$set.csv && echo "residuals-$set.csv as shipped"
done
python3 - $S/traces/published/external-fp8.csv $T/steps.json > $T/tables << 'END'
import csv, json, sys
rows = {r["id"]: r for r in csv.DictReader(open(sys.argv[1]))}
steps = {s["id"]: s for s in json.load(open(sys.argv[2]))["training_steps"]}
gpus = {"h100_80gb": "H100, 80 GB", "h100-96g-500W": "H100, 96 GB and 500 W", "b200": "B200", "gb200": "GB200", "gb300": "GB300"}
counted = [i for i in rows if rows[i]["counts"] == "yes"]
error = {i: steps[i]["measured_step_s"] / steps[i]["predicted_step_s"] - 1 for i in counted}
groups = [("all", lambda r: True)]
groups += [(gpus[g], lambda r, g=g: r["gpu"] == g) for g in gpus]
groups += [(m.split("-")[1].upper(), lambda r, m=m: r["model"] == m) for m in ("llama3-8b", "llama3-70b", "llama3-405b")]
for name, holds in groups:
    e = [error[i] for i in counted if holds(rows[i])]
    print("| %s | %d | %.1f %% | %+.1f %% |" % (name, len(e), 100 * sum(map(abs, e)) / len(e), 100 * sum(e) / len(e)))
for kind, column, of in (("devices", "gpu", gpus), ("models", "model", ("llama3-8b", "llama3-70b", "llama3-405b"))):
    each = [[error[i] for i in counted if rows[i][column] == value] for value in of]
    print("| mean over %s | %d | %.1f %% | %+.1f %% |" % (
        kind, len(each), 100 * sum(sum(map(abs, e)) / len(e) for e in each) / len(each), 100 * sum(sum(e) / len(e) for e in each) / len(each)))
def gain(pairs, by):
    return ", ".join("%.2f" % (steps[a][by] / steps[b][by]) for a, b in pairs)
t, a, o = "titan-2412-%03d", "titan-async-%03d", "ao-float8-%03d"
for name, pairs in (
        ("8B, FSDP on 8 and 128 H100, `fp8-tensor` (torchtitan)", [(t % 1, t % 2), (t % 7, t % 8)]),
        ("8B, FSDP on 8 H100, `fp8-tensor`, `fp8-row` (torchao)", [(o % 1, o % 2), (o % 1, o % 3)]),
        ("70B and 8B, 8 tensor ranks on H100, `fp8-tensor` (torchtitan)", [(a % 1, a % 3), (a % 7, a % 9)]),
        ("70B and 8B, 8 tensor ranks on H100, `fp8-row` (torchtitan)", [(a % 1, a % 5), (a % 7, a % 11)]),
        ("8B, FSDP on 8 B200, `fp8-tensor`, `mxfp8`, `fp8-row` (torchao)", [(o % 8, o % 9), (o % 8, o % 10), (o % 8, o % 12)])):
    print("| %s | %s | %s |" % (name, gain(pairs, "measured_step_s"), gain(pairs, "predicted_step_s")))
END
while read -r row; do grep -qxF -e "$row" $S/docs/products.md && echo "as printed" || echo "not in docs/products.md: $row"; done < $T/tables | sort | uniq -c | sed 's/^ *//'
