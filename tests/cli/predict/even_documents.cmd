# A ring of more than 64 ranks over packed documents takes all its ranks as the fullest one, says so, and ends; a ring of
# 512 ranks stays below 1.5 GiB. Where documents are cut one by one, all ranks see equally many pairs.
ring="--model longhaul-3m --cluster dgx-h100 --strategy ring --documents lognormal:4000,1"
for options in "--nodes 9 --seq 144K" "--nodes 9 --seq 144K --layout striped" "--nodes 9 --seq 144K --layout zigzag-documents" "--nodes 8 --seq 128K"; do
    for exact in "" --exact; do
        longhaul predict --quick --all $ring $options $exact -o $T/step$exact > $T/step$exact.txt
        grep -E -o '[0-9]+ ranks in [0-9]+ (even )?class(es)?|the 72 ranks.*pairs(;[^;]*them)?' $T/step$exact.txt
    done
    awk -F '[:,]+' '/"step_s"/ && !(FILENAME in step) { step[FILENAME] = $2 }
        END { e = step[ARGV[1]] / step[ARGV[2]] - 1; print (e > -0.02 && e < 0.1 ? "close" : "off by " e) }' \
        $T/step/prediction.json $T/step--exact/prediction.json
done
(ulimit -v 1572864; longhaul predict --quick --model llama3-8b --cluster dgx-h100 --nodes 64 --strategy ring --seq 1M \
    --documents $S/traces/documents/python-3.11.csv) | grep -o 'the 512 ranks of the ring are taken as the fullest one'
# Rows that ranks need of each other are counted once for a sequence, not once a layer.
(ulimit -v 1572864; timeout 100 longhaul predict --quick --model llama3-8b --cluster dgx-h100 --nodes 64 --strategy ring --seq 1M \
    --core-plan per-document --rotate needed --documents $S/traces/documents/python-3.11.csv) |
    grep -o 'the 512 ranks of the ring are taken as the fullest one'
longhaul predict --quick --json $ring --nodes 9 --seq 144K | grep -E '"(even_ranks|even_bound|fullest_over_mean)"'
