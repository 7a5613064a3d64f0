# what --json prints is JSON with the figures of the text
valid() { json=$(cat); printf '%s' "$json" > $T/x.json; longhaul predict --model $T/x.json --cluster ideal --seq 1K --quick 2>&1 | grep -c 'stray\|expected a value\|JSON text' || true; }
longhaul check --model gpt2 --cluster ideal --gpus 4 --seq 1K --json > $T/check
grep -E '"(right|faults|ranks)"' $T/check | sort -u
valid < $T/check
longhaul validate --source LoongTrain --table 2 --system ulysses --json > $T/validate
grep -E '"(system|metric|value|status|counted)"' $T/validate
valid < $T/validate
