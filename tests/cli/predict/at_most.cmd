# A run that does less than is predicted: what does not fit may fit, and the reasons are said; what fits is sure
most() { longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 4K --strategy local --quick --at-most "$@" || echo "exit $?"; }
said() { sed -n '1p; /^How sure/,/^$/p; /^exit/p'; }
most adapter --weights replicated | said
most lengths,adapter --weights zero3 | said
most lengths --json | grep -A3 '"at_most"'
# what cannot be meant, and what a measured run does not have
most length
most adapter,
longhaul run --model gpt2 --seq 1K --gpus 1 --at-most adapter || echo "exit $?"
# commands that have neither a predicted time nor an interval refuse the options about both
for command in schedule check "calibrate x.csv" "why x.pickle"; do
    longhaul $command --model gpt2 --cluster dgx-h100 --seq 1K --at-most adapter || echo "exit $?"
done
for option in "--framework mine" "--measured mine.csv"; do
    longhaul check --model gpt2 --cluster dgx-h100 --seq 1K $option || echo "exit $?"
done
# sweep and plan say so, too
T=$(mktemp -d)
longhaul sweep --model llama3-8b --cluster dgx-h100 --nodes 1 --strategy local --weights replicated --at-most adapter --vary seq=4K,8K -o $T/most.csv >$T/said || echo "exit $?"
sed "s,$T/,," $T/said
grep -o '^[48]K,[a-z ]*,"*at most, [^(]*' $T/most.csv
longhaul plan --model llama3-8b --cluster dgx-h100 --nodes 1 --gpus 1 --seq 4K --at-most adapter | sed -n '1p; /^ *at most/,/^ *proved/p'
rm -r $T
