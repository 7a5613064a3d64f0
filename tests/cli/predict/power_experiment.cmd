# The steps of bench/gpu/power_experiment.sh that are committed before they are measured are what the presets predict
what=$(sed -n 's/^what=(\(.*\))$/\1/p' $S/bench/gpu/power_experiment.sh)
grep -v '^#' $S/bench/gpu/power_predicted.csv | tail -n +2 | while IFS=, read -r cluster batch step; do
  longhaul predict $what --batch $batch --cluster $cluster --json 2> $T/note | awk -v c=$cluster -v b=$batch -v s=$step \
    '/"step_s":/ { gsub(/[^0-9.e+-]/, "", $2); printf "%s, batch %s: committed %s, predicted %.4g%s\n", c, b, s, $2, (sprintf("%.4g", $2) == s ? "" : ": DIFFERS"); exit }'
done
