# A ring of more than 64 ranks is even, and text, JSON and page say so; one of 64, a contiguous one and --exact are not.
step="predict --quick --model longhaul-3m --cluster dgx-h100 --strategy ring"
longhaul $step --nodes 9 --seq 144K --all -o $T/even > $T/even.txt
grep -E -o 'every rank: they are taken as even|72 ranks in . even class(es)?|the 72 ranks.*exact.s' $T/even.txt
grep -E '"(classes|even_ranks|even_bound)"' $T/even/prediction.json
longhaul report $T/even -o $T/page.html
grep -o 'the 72 ranks of the ring are taken as even' $T/page.html | head -1
for options in "--nodes 8 --seq 128K" "--nodes 8 --seq 128K --even-above 63" "--nodes 9 --seq 144K --exact" "--nodes 9 --seq 144K --layout contiguous"; do
    longhaul $step $options --all > $T/other.txt
    grep -E -o 'rank 0|ranks in [0-9]+ (even )?classes|taken as even' $T/other.txt | tr '\n' ' '
    echo
done
# Only times differ: arenas and reserved memory do not, nor the flops that are executed (HFU times seconds).
longhaul $step --nodes 9 --seq 144K --exact -o $T/exact > $T/exact.txt
for folder in even exact; do
    grep -E '"(pinned_|pageable_)?(arena|reserved)_bytes"' $T/$folder/prediction.json > $T/$folder.memory
done
cmp $T/even.memory $T/exact.memory
awk -F '[:,]+' '/"step_s"/ && !(FILENAME in step) { step[FILENAME] = $2 } /"hfu"/ { hfu[FILENAME] = $2 }
    END { e = hfu[ARGV[1]] * step[ARGV[1]]; x = hfu[ARGV[2]] * step[ARGV[2]]; print (e > 0 && (e / x - 1) ^ 2 < 1e-16) }' $T/even/prediction.json $T/exact/prediction.json
# Traces hold one rank of each of 8 classes, and what it runs: 4 layers of 72 steps, of whose two tiles each runs one.
grep -c ',attention,forward,' $T/even/ops.csv
