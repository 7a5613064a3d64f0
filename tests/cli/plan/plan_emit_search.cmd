# Settings of what a search finds.
model="--model llama3-8b --cluster dgx-h100"

# of a search: the best that the framework expresses, predicted as its own; its options predict the same
for f in torchtitan megatron deepspeed; do
    # torchtitan's settings are those of a flavor, the others' of any number of layers
    small="--cluster dgx-h100 --model $(test $f = torchtitan && echo llama3.2-1b || echo llama3-8b --set layers=4) --gpus 8 --seq 32K --batch 8"
    longhaul plan $small --emit $f > $T/$f
    echo "$f, gaps $(grep -cE '^# (not expressed|no settings)' $T/$f)"
    sed -n '2s/: .*//p; 4s/^\(# [0-9.]* % .*\): .*/\1/p' $T/$f | sed 's/[0-9.]* %/x %/'
    sed -n '2s/.*GPU: //p' $T/$f > $T/options
    sed -n '2s/.*: \([0-9.]* tokens\/s\/GPU\): .*/\1/p' $T/$f > $T/found
    longhaul predict $small $(cat $T/options) --quick 2> $T/notes | sed -nE 's|^(tokens/s/GPU) *([0-9.]+).*|\2 \1|p' | cmp - $T/found && echo "predicted alike"
done
small="$model --gpus 8 --seq 32K --batch 8"
# the winner on request, and where it is what the framework expresses
longhaul plan $small --strategy 2d --emit torchtitan --emit-winner | sed -n '2s/: .*//p; 4,5p'
longhaul plan $small --strategy local --profile torchtitan --weights zero3 --emit torchtitan | sed -n '2s/: .*//p; 4s/: .*//p'
longhaul plan --goal gpus $model --seq 32K --strategy ring --emit torchtitan | sed -n '2s/: .*//p; 4s/: .*//p'
longhaul plan --goal longest --model llama3.2-1b --cluster dgx-h100 --gpus 8 --strategy ring --weights zero3 --emit torchtitan | sed -n '2s/: .*//p; 4s/: .*//p'
# what it does not express alone is left, and that it does not
longhaul plan $small --hp 2 --strategy ulysses --emit torchtitan > $T/none || echo "exit $?"
sed 's/: .*//' $T/none
# a search of what is expressed
longhaul plan $small --only deepspeed --top 1000 --all | grep -E '^(goal|fits|[0-9]+ )' | sed -E 's/[0-9.]+ tokens.s.*--strategy ([a-z-]+) --profile ([a-z]+).*/\1 \2/; s/^[0-9]+ +//' | sort -u
longhaul plan $small --only torchtitan --strategy ulysses --hp 2 > $T/none || echo "exit $?"
cat $T/none
