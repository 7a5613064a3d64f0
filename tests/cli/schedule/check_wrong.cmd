# an answer of no is exit code 1, and each fault has its message
longhaul schedule --model gpt2 --cluster ideal --gpus 4 --seq 1K -o $T/right.ir
longhaul check $T/right.ir --quiet && echo "right: $?"
sed '/^op /s/waits [^ ]*//' $T/right.ir > $T/wrong.ir
longhaul check $T/wrong.ir --quiet 2> $T/faults || echo "wrong: $?"
grep -c ': error: ' $T/faults > $T/count && test $(cat $T/count) -gt 0 && echo "faults are told"
longhaul predict $T/wrong.ir --cluster ideal --gpus 4 --quick > $T/nothing 2> $T/faults || echo "predict: $?"
wc -c < $T/nothing
# a file has its own choices, and is looked at without a machine
longhaul check $T/right.ir --strategy ring 2>&1 | sed "s|$T|T|"
longhaul check $T/right.ir --nodes 2 2>&1 | sed "s|$T|T|"
# layout dealt, whose sequences must say which rank has which tokens
longhaul schedule --model gpt2 --set layers=1 --cluster dgx-h100 --gpus 2 --strategy ring --seq 1K | sed 's/layout=zigzag/layout=dealt/' > $T/dealt.ir
longhaul check $T/dealt.ir --quiet 2>&1 | sed "s|$T|T|"
longhaul run $T/dealt.ir 2>&1 | sed "s|$T|T|"
