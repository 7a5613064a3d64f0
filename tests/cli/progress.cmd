# on a terminal a line says how far each part of a plan is, and goes away; elsewhere there is none
lines() { # COMMAND: how many came and went
    script -qec "longhaul $*" $T/typescript < /dev/null > $T/out
    tr '\r' '\n' < $T/out > $T/words
    grep -q '^\[[#.]*\] [0-9]*/[0-9]*, ' $T/words && grep -c "^$(printf '\033')\[K" $T/words
}
small="--model gpt2 --set layers=2 --cluster dgx-a100 --gpus 2"
echo "the longest, and what other options would give: $(lines plan --longest $small)"
echo "estimates, the search, other machines: $(lines plan $small --strategy sppo --subsequences 2 --seq 1K --batch 64)"
longhaul plan --longest $small 2> $T/err > $T/out
cat $T/err
