# on a terminal a line says how far each part of a plan is, and goes away; elsewhere there is none
lines() { # COMMAND: how many came and went
    script -qec "longhaul $*" $T/typescript < /dev/null > $T/out
    tr '\r' '\n' < $T/out > $T/words
    grep -q '^\[[#.]*\] [0-9]*/[0-9]*, ' $T/words && grep -c "^$(printf '\033')\[K" $T/words
}
small="--model gpt2 --set layers=2 --cluster dgx-a100 --gpus 2"
echo "the longest, and what other options would give: $(lines plan --longest $small)"
echo "the search, other machines, losers: $(lines plan $small --strategy sppo --subsequences 2 --seq 1K --batch 64 --all)"
# a prediction that takes more than two seconds says what it does, here that it waits for the schedule
longhaul schedule $small --seq 1K > $T/a.ir
mkfifo $T/pipe.ir
(sleep 4 && cat $T/a.ir > $T/pipe.ir) &
script -qec "longhaul predict $T/pipe.ir --cluster dgx-a100 --gpus 2 --quick" $T/typescript < /dev/null > $T/out
tr '\r' '\n' < $T/out > $T/words
grep -oE '^(reading the schedule, [2-9] s|step)' $T/words | sed 's/[2-9] s/N s/' | uniq
echo "rows of measurements: $(lines validate --source LoongTrain --table 2 --system ulysses)"
longhaul plan --longest $small 2> $T/err > $T/out
cat $T/err
