# what --json prints is JSON with the figures of the text
# the reader of models takes a whole JSON object, and only then misses what makes it a model
valid() { json=$(cat); printf '%s' "$json" > $T/x.json; longhaul predict --model $T/x.json --cluster ideal --seq 1K --quick 2>&1 | grep -c 'error: neither "model_type"' || true; }
longhaul check --model gpt2 --cluster ideal --gpus 4 --seq 1K --json > $T/check
grep -E '"(right|faults|ranks)"' $T/check | sort -u
valid < $T/check
longhaul validate --source LoongTrain --table 2 --system ulysses --json > $T/validate
grep -E '"(framework|metric|value|status|counted)"' $T/validate
valid < $T/validate
# every list, and one of each table that has more to show
for what in '' strategies profiles models clusters devices kinds rules conventions reserved \
    'models gpt2' 'clusters dgx-a100' 'devices a100-80g'; do
    longhaul list $what --json > $T/list
    test $(grep -c '"name"' $T/list) -ge 1 && echo "${what:-list}: whole $(valid < $T/list)"
done
longhaul list models gpt2 --json
longhaul list clusters ideal --json | grep '"device.peak_bf16"'
# what ran, and whether it was right; the figures are the machine's
longhaul run --model longhaul-3m --set layers=1,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2 --check --data $S/LICENSE \
    --steps 2 --json > $T/run
sed 's/, "gradient": .*}/, ...}/; s/-\{0,1\}[0-9][0-9.]*e-[0-9]*/E/; s/: [0-9][0-9.]*\.[0-9]*/: X/; s/^  \( *\)[0-9][0-9.]*/  \1X/' $T/run
valid < $T/run
longhaul bench --quick --kinds add --json -o $T/points.csv 2> $T/progress > $T/bench
grep -oE '"(backend|measured|kind|rows|count)": [^,}]*' $T/bench | sort -u
grep -c '"median_s"' $T/bench
grep -c '^work' $T/points.csv
valid < $T/bench
longhaul calibrate $S/tests/data/calibration/cpu-example.csv --json > $T/fit
grep -B 2 -A 2 '"parameters"' $T/fit | grep -E '"(name|points|parameters)"'
sed -n '/"links"/,/\]/p' $T/fit | grep -oE '"(name|points)": [^,}]*'
valid < $T/fit
longhaul help list --json
longhaul help --json > $T/help
valid < $T/help
# and this test sees what is no JSON
head -n -1 $T/check | valid
sed 's/,$//' $T/check | valid
