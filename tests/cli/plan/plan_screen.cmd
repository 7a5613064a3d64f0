# The screen of a plan on a terminal of 80 columns: what was searched, what is proved, and of each strategy that lost what
# it reaches and why; no line is longer, with --all, too, and on the line that shows how far the search is.
screen() { # OPTIONS
    NO_COLOR=1 script -qec "stty cols 80; longhaul plan $* 2> $T/progress.tty" $T/typescript < /dev/null > $T/raw || echo "exit $?"
    tr -d '\r' < $T/raw > $T/out
    awk 'length($0) > 80 { print "more than 80 columns: " $0 }' $T/out
    # lines of a label, whole again, without their numbers
    awk '/^              / { sub(/^ +/, " "); line = line $0; next } { print line; line = $0 } END { print line }' $T/out |
        sed -nE '/^(Fastest|Fewest GPUs|Longest|Nothing fits)/s/[:,].*//p
            /^searched   [^ ]|^What (other|each)/,/^$/d
            /^(searched|proved|batches)    /p' > $T/head
    awk '/^              / { sub(/^ +/, " "); line = line $0; next } { print line; line = $0 } END { print line }' $T/out |
        sed -n '/^What other strategies reach/,/^$/p; /^What each lacks/,/^$/p' | cat $T/head - | sed '/^$/d; s/[0-9][0-9.]*/N/g; s/N [mu]s more/N s more/'
}
small="--model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K"
for all in "" --all; do
    screen $small --top 20 $all
    screen --goal gpus $small --optimizer device $all
    screen --goal longest --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 2 --weights zero3 --loss-chunks 8 --ffn-chunks 8 --optimizer device $all
    screen --strategy sppo --model gpt-7b --set layers=4 --cluster sppo-a100 --gpus 8 --seq 64K --batch 1 --top 20 $all
    screen --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 2 --seq 4K --batch 4 --batches 2 --documents lognormal:1000,1 --weights zero1 $all
    screen --model llama3-70b --cluster dgx-h100 --gpus 8 --seq 8K --strategy local --optimizer device $all
    screen $small --within 1e-9 $all
done > $T/screens
# details follow the same screen
n=$(wc -l < $T/screens)
head -$((n / 2)) $T/screens > $T/short
tail -$((n / 2)) $T/screens | cmp - $T/short
cat $T/short
# how far a search is, on one row of the terminal
script -qec "stty cols 80; longhaul plan --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 512K > $T/out" $T/typescript < /dev/null > $T/raw
tr '\r' '\n' < $T/raw | sed "s/$(printf '\033')\[K//" > $T/rows
awk 'length($0) > 79 { print "more than a row: " $0 }' $T/rows
grep -cE '^[0-9]+/[0-9]+, [0-9:]+ left, [0-9.]+ tokens/s/GPU \(fits: [0-9]+ %\), at most [0-9.]+ % more$|^\[#*\.*\] [0-9]+/[0-9]+, [0-9:]+ left, [0-9.]+ tokens/s/GPU \(fits: [0-9]+ %\), at most [0-9.]+ % more$' $T/rows > $T/count || true
test $(cat $T/count) -gt 0 && echo "the best so far, its odds, and the gap"
grep -oE '[0-9]{3,}:[0-9]+:[0-9]+ left' $T/rows || echo "no endless wait"
