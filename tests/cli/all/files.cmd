# what `schedule` prints is predicted like the configuration it came from, and what `predict -o`
# writes holds it again; a file does not say what repeats, and its sums are taken in another order
what="--model gpt2 --cluster ideal --gpus 4 --seq 1K"
longhaul schedule $what -o $T/a.ir
longhaul predict $what --quick --profile ideal -o $T/out --emit-ir --json > $T/a.json
ls $T/out
cmp $T/a.json $T/out/prediction.json
longhaul schedule $what --profile ideal --flat | cmp - $T/out/schedule.ir
longhaul predict $T/out/schedule.ir --cluster ideal --gpus 4 --json > $T/b.json
for name in a b; do
    grep -A 100 '"step_s"' $T/$name.json | grep -E '"(step_s|hfu|recomputation_s|peak_bytes)"' |
        awk '{ printf "%s %.13g\n", $1, $2 }' > $T/$name.figures
done
cmp $T/a.figures $T/b.figures
grep -v '"command"' $T/b.json > $T/b.rest
longhaul predict - --cluster ideal --gpus 4 --json < $T/out/schedule.ir | grep -v '"command"' | cmp - $T/b.rest
# a file's times may be a framework's; without one they are the device's alone
longhaul predict $T/a.ir --cluster dgx-a100 --gpus 4 | sed -n 's/^model  *//p; s/^layout  *//p'
longhaul predict $T/a.ir --cluster dgx-a100 --gpus 4 --profile deepspeed --all | sed -n 's/^model  *//p; s/^layout  *//p; s/^interval .*time.*/an interval of its own/p'
longhaul predict $T/a.ir --cluster ideal --gpus 4 --profile published 2>&1 || echo "exit $?"
longhaul check $T/a.ir | tail -n 1 | sed 's/[0-9]\{2,\}/N/g'
longhaul check $what --quiet
# twice the same bytes
longhaul predict $what --quick -o $T/out2 --json > $T/c.json
longhaul predict $what --quick -o $T/out3 --json | cmp - $T/c.json
cmp $T/out2/trace.json $T/out3/trace.json
cmp $T/out2/ops.csv $T/out3/ops.csv
# a pipe in the folder gets what the file would
for file in ops.csv trace.json; do
    rm $T/out2/$file && mkfifo $T/out2/$file
    cat $T/out2/$file > $T/through.$file &
done
longhaul predict $what --quick -o $T/out2 --json | cmp - $T/c.json
wait
cmp $T/through.ops.csv $T/out3/ops.csv
cmp $T/through.trace.json $T/out3/trace.json
rm $T/out2/ops.csv $T/out2/trace.json
# what another run left in a folder stays, and is named
longhaul predict $what --quick --emit-chakra -o $T/out3 2>&1 > $T/note
small="--model gpt2 --cluster ideal --gpus 2 --seq 1K"
longhaul predict $small --quick --emit-chakra -o $T/out3 2>&1 > $T/note
longhaul predict $small --quick -o $T/out 2>&1 > $T/note
longhaul run --model longhaul-3m --gpus 1 --seq 32 -o $T/out 2>&1 > $T/note
ls $T/out
