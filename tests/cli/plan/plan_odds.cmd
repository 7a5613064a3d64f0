# a plan takes what fits in 9 of 10 cases; a faster one that fits less surely stands beside it with its odds
what="--model llama3-8b --cluster dgx-h100 --nodes 1 --seq 512K"
longhaul plan $what -o $T/safe --json > $T/safe.json 2> $T/note
awk -F '[:,]+' '/"ranking"/ {r = 1} /"less_probable"/ {g = 1} /"fits_probability"/ && g && !r {less = $2} /"fits_probability"/ && r && !w {w = $2} /"tokens_per_s_gpu"/ && g && !r && !gr {gr = $2} /"tokens_per_s_gpu"/ && r && !wr {wr = $2}
    END {print "the winner fits with 0.9:", (w >= 0.9); print "the less sure one with less:", (less >= 0.5 && less < 0.9), "and is faster:", (gr > wr)}' $T/safe.json
longhaul plan $what -o $T/safe 2> $T/note | grep -o 'Less sure: .*cases'
# what was asked is taken: at 0.5 the less sure one wins, and none stands beside it
longhaul plan $what --fits-probability 0.5 2> $T/note | sed -n 's/^Fastest: \([0-9.]*\).*(\(fits in [^)]*\)).*/\2/p; /Less sure/p'
# where nothing is that safe, the safest is taken, and the exit code is 0
longhaul plan --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 32K --batch 8 --strategy local --profile torchtitan --weights zero3 --activations full --loss-chunks 1 --ffn-chunks 1 --optimizer device 2> $T/note > $T/out; echo "exit $?"
grep -o 'No configuration fits.*' $T/out
bad() { longhaul plan $what --fits-probability $1 2>&1 || echo "exit $?"; }
bad 0.4; bad 1
