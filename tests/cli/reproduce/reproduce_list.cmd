# Every figure and table with what it shows and how it came out; each has a state, and the states that ship are of them all
longhaul reproduce --list
longhaul reproduce --list | grep 'not run' || echo 'all were run'
longhaul reproduce --list | sed -n 's/^\([a-z]*:[a-z0-9-]*\) .*/\1/p' > $T/names
sed -n 's/,.*//; 2,$p' $S/traces/published/reproduced.csv | cmp - $T/names && echo "states are of all"
# what cannot be meant
longhaul reproduce || echo "exit $?"
longhaul reproduce fpdt:fig1 || echo "exit $?"
longhaul reproduce fpdt:fig15 -o $T/out || echo "exit $?"
longhaul reproduce --list fpdt:fig1 || echo "exit $?"
longhaul reproduce --list -o $T/out || echo "exit $?"
entry() { printf '{"entries": [%s]}' "$1" > $T/own.json; longhaul reproduce all --catalogue $T/own.json -o $T/own || echo "exit $?"; }
entry '{"names": "own:a", "shows": "x", "kind": "picture"}'
entry '{"names": "own:a", "shows": "x", "kind": "nothing"}'
entry '{"names": "own:a", "shows": "x", "kind": "chart", "grids": [{"args": "--seq 1K", "measure": "speed"}]}'
entry '{"names": "own:a", "shows": "x", "kind": "chart", "claims": [{"says": "y", "left": {"serie": "b"}}]}'
entry '{"names": "own:a", "shows": "x", "kind": "chart", "claims": [{"says": "y", "left": {}, "right": {}}]}'
# a configuration that cannot be is a row that says so
entry '{"names": "own:a", "shows": "x", "kind": "chart", "grids": [{"args": "--model gpt2 --cluster ideal --gpus 5 --hp 5 --seq 1K", "measure": "step_s", "x": "1K"}]}'
sed 1d $T/own/own-a.csv
# published values of a grid: as many as points; lengths and verdicts are right or wrong, others have an error
L="--model gpt2 --cluster ideal --gpus 4 --hp 4 --seq 1K --scope layer --zero 0 --checkpoint none"
entry "{\"names\": \"own:a\", \"shows\": \"x\", \"kind\": \"points\", \"grids\": [{\"args\": \"$L\", \"measure\": \"fits\", \"published\": [1, 1]}]}"
entry "{\"names\": \"own:a\", \"shows\": \"x\", \"kind\": \"points\", \"grids\": [{\"args\": \"$L\", \"measure\": \"attention_units\", \"published\": [5], \"x\": \"operands\"},
    {\"args\": \"$L\", \"measure\": \"fits\", \"published\": [1]}, {\"args\": \"$L --batch 2\", \"measure\": \"fits\", \"published\": [0]}]}"
cut -d, -f4-7 $T/own/own-a.csv
# a series `together` has the rate of its cases one after the other
mixed() { entry "{\"names\": \"own:mix\", \"shows\": \"a mix\", \"kind\": \"chart\", \"x\": \"\", \"y\": \"tokens/s/GPU\", \"grids\": [{\"args\": \"--model longhaul-3m --cluster dgx-h100 --gpus 2\", \"cases\": {\"short\": \"--seq 1K\", \"long\": \"--seq 64K\"}, \"measure\": \"tokens_per_s_gpu\", \"series\": \"{case}\", \"together\": \"mix\", \"shares\": $1}], \"claims\": []}"; }
mixed '[0.75, 0.25]' > $T/text
awk -F, '/^,(short|long|mix),/ { rate[$2] = $5 } END { e = rate["mix"] * (0.75 / rate["short"] + 0.25 / rate["long"]) - 1
    print (rate["long"] != rate["short"] && e < 1e-4 && e > -1e-4 ? "a mix of both" : "off by " e) }' $T/own/own-mix.csv
mixed '[0.75, 0.75]'
mixed '[1]'
