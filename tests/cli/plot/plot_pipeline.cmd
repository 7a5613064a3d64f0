# the pipeline figure: of every order a row a stage, in which each unit has its passes through each chunk of layers,
# without overlaps
what="--model llama3-8b --set layers=16 --cluster dgx-h100 --gpus 4 --pp 4 --strategy ulysses --quick"
names="1:forward 2:forward* 3:backward 4:backward* 5:weights 6:weights* 7:optimizer 8:between" # *: other layers
draw() { # NAME OPTIONS
    name=$1
    shift
    longhaul predict "$@" -o $T/$name > $T/note 2>&1
    longhaul plot pipeline $T/$name -o $T/$name-figure
    awk -F, -v names="$names" -v what="$name" '
        $1 == row && $3 < end - 1e-9 { bad++ }
        { row = $1; end = $4; rows[$1] = 1; boxes[$2]++; busy[$2] += $4 - $3 }
        $5 != "" && !once[$1 "," $2 "," $5]++ { numbers[$2]++; if ($5 > last) last = $5 }
        END {
            for (r in rows) stages++
            printf "%s: %d stages, units to %d, %d overlaps;", what, stages, last, bad
            split(names, name, " ")
            for (c = 1; c <= 8; c++) if (boxes[c]) printf " %s %d;", substr(name[c], 3), numbers[c]
            print ""
        }' $T/$name-figure/data.csv
}
draw gpipe $what --seq 8K --batch 8 --pipeline gpipe
draw 1f1b $what --seq 8K --batch 8
draw interleaved $what --seq 8K --batch 8 --pipeline interleaved
draw zb-1p $what --seq 8K --batch 8 --pipeline zb-1p
draw zb-v $what --seq 8K --batch 8 --pipeline zb-v
draw terapipe $what --seq 64K --pipeline terapipe --subsequences 8
# stages of msp share subsequences: a stage takes its own layers (dark) and those of others (light)
draw msp --model llama3-8b --set layers=16 --cluster dgx-h100 --gpus 4 --pp 4 --seq 64K --strategy sppo --tp 1 --pipeline msp --subsequences 8 --quick
# what it is of, and what was measured is drawn alike
sed -n "s/^title = //p; s/^classes = //p" $T/zb-1p-figure/figure.gp
longhaul run --model longhaul-3m --set layers=2 --gpus 2 --pp 2 --batch 4 --seq 64 -o $T/run > $T/note
longhaul plot pipeline $T/run -o $T/run-figure
cut -d, -f1,2,5 $T/run-figure/data.csv | grep '[0-9]$' | sort -u | wc -l
longhaul plot pipeline $T/1f1b -o $T/f.svg --dark && grep -c '<svg' $T/f.svg
longhaul predict --model gpt2 --cluster ideal --gpus 2 --seq 1K --quick -o $T/one > $T/note
longhaul plot pipeline $T/one -o $T/f.svg 2>&1 || echo "exit $?"
