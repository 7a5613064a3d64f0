# On more ranks than any step of the strategy was compared on, a prediction adds what measured jitter does to that
# many: nothing below, nothing where none was measured, and E(64) = 2.41 deviations at most. A size that no measured run
# comes near is named.
step="--model gpt-2.7b --strategy ulysses --seq 64K --quick"
longhaul predict $step --cluster 4x8xa100-80g | grep -c 'a run of about this size' || true
longhaul predict $step --cluster 64x8xa100-80g --batch 16 | grep -o 'never measured: .*'
printf '{"longhaul_device_cost": 1, "name": "shaky", "base": "a100-80g", "device": {"jitter": {"value": 0.02, "source": "made up"}}}' > $T/shaky.json
longhaul predict $step --cluster 8x8xa100-80g --json > $T/steady.txt
longhaul predict $step --cluster 8x8xa100-80g --costs $T/shaky.json --json > $T/shaky.txt
awk -F '[:,]+' '/"step_s"/ { s[FILENAME] = $2 } /"jitter_s"/ { j[FILENAME] = $2 } /"other_ranks_s"/ { o[FILENAME] = $2 }
    END { a = ARGV[1]; b = ARGV[2]
        print j[a] + 0, (j[b] > 0 && j[b] < 2.41 * 0.02 * s[a]), (s[b] - s[a] - j[b]) ^ 2 < 1e-18, (o[b] - o[a] - j[b]) ^ 2 < 1e-18 }' $T/steady.txt $T/shaky.txt
# a strategy that shares no sequence after all says so in the report, and with what would have had to divide
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 7 --strategy ulysses --seq 8K --quick 2> $T/note | grep 'Beware'
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 8 --strategy ulysses --seq 8K --quick 2> $T/note | grep -c 'Beware' || :
