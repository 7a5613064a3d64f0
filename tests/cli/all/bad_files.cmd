bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
config() { printf '%s' "$1" > $T/$2.json; bad predict --model $T/$2.json --cluster ideal --seq 1K --quick; }
cluster() { printf '%s' "$1" > $T/$2.json; bad predict --model gpt2 --cluster $T/$2.json --seq 1K --quick; }

# files that cannot be read
bad predict --model $T/none.json --cluster ideal --seq 1K
bad predict --model gpt2 --cluster $T/none.json --seq 1K
bad predict $T/none.ir --cluster ideal
bad check $T/none.ir
bad validate --data $T/none.csv
mkdir $T/folder.json
bad predict --model $T/folder.json --cluster ideal --seq 1K
bad validate --data $T/folder.json

# truncated and hostile JSON
config '' empty
config '{"model_type": "llama", "hidden_size": 40' cut
config '[1, 2]' list
config '{"model_type": "llama"}' few
config '{"model_type": "no-such-model", "hidden_size": 1}' unknown
model='"longhaul_transformer": 1, "name": "x", "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "ffn": 64, "vocab": 64'
config "{$model, \"layers\": -1}" negative
config "{$model, \"layers\": 1e999}" huge
config "{$model, \"layers\": 2, \"lairs\": 3}" lairs
config '{"longhaul_transformer": 1, "longhaul_transformer": 1}' twice
config '{"longhaul_transformer": 99}' version
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' > $T/deep.json
bad predict --model $T/deep.json --cluster ideal --seq 1K
head -c 4096 /dev/zero > $T/zeros.json
bad predict --model $T/zeros.json --cluster ideal --seq 1K
cluster '{"name": "x", "summary": "x", "base": "ideal", "gpus": 3}' key
cluster '{"name": "x", "summary": "x", "base": "ideal", "nodes": {"value": -3, "source": "x"}}' sign
cluster '{"name": "x", "summary": "x", "base": "ideal", "nodes": {"value": 3, "source": 7}}' source
cluster '{"name": "x", "base": "dgx-h100", "nodes": 12, "nic": {"bandwidth": 25}}' unit
cluster '{"name": "x", "summary": "x", "base": "no-such"}' base
cluster '{"name": "x"' cutcluster

# schedules and tables
printf 'not a schedule\n' > $T/bad.ir
bad check $T/bad.ir
printf 'import torch\n' > $T/recipe.py
bad predict $T/recipe.py --cluster ideal
bad plan --from $T/recipe.py --cluster ideal
bad check $T/recipe.py
printf 'longhaul schedule 1\nmesh dp=1\nop 0 frobnicate\n' > $T/bad2.ir
bad predict $T/bad2.ir --cluster ideal
longhaul schedule --model gpt2 --cluster ideal --gpus 1 --seq 1K | grep -E '^(longhaul|mesh|tokens) ' > $T/empty.ir
bad predict $T/empty.ir --cluster ideal
printf 'source,table\n1,2\n' > $T/bad.csv
bad validate --data $T/bad.csv
bad validate --source Nobody

# places that cannot be written
what="--model gpt2 --cluster ideal --gpus 1 --seq 1K"
bad schedule $what -o $T/no/such/folder.ir
bad schedule $what -o /dev/full
bad predict $what --quick -o $T/no/such/folder
mkdir $T/small
(ulimit -f 1; longhaul schedule $what -o $T/small/a.ir 2>&1 || echo "  exit $?: past ulimit -f") | cat
ls $T/small
printf x > $T/file
bad predict $what --quick -o $T/file
for command in 'list' 'help predict' "predict $what --quick" "predict $what --quick --json" \
    "schedule $what" "check $what" 'validate --source torchtitan-cp --table text' '--version'; do
    longhaul $command > /dev/full 2> $T/err && echo "taken" || echo "  exit $?: $command"
    cat $T/err
done
