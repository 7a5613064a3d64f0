# A plan that is written by hand, three documents on two ranks, is verified, predicted, and executed exactly.
cat > $T/three.plan <<END
core plan 1 ranks=2
sequence,what,begin,rows,key,keys,rank,round
0,document,0,8,,,,
0,document,8,4,,,,
0,document,12,4,,,,
0,own,0,2,,,0,
0,own,2,4,,,1,
0,own,6,3,,,0,
0,own,9,2,,,1,
0,own,11,2,,,0,
0,own,13,2,,,1,
0,own,15,1,,,0,
END
cd $T
step="--model longhaul-3m --gpus 2 --strategy ring --seq 16 --core-plan three.plan"
longhaul check three.plan
for rotate in p2p needed; do
    longhaul schedule $step --cluster dgx-h100 --rotate $rotate | grep '^documents'
    longhaul run $step --rotate $rotate --check --dtype f32 > run.txt || echo "exit $?"
    grep -o '^right: .* beside the reference' run.txt
    longhaul check $step --cluster dgx-h100 --rotate $rotate | grep -E '^(documents|right)' | grep -o '^[a-z]*'
done
longhaul predict $step --cluster dgx-h100 --rotate needed --quick --json | grep -E '"(core_plan|ring_layout|rotation|pairs_over_mean|mean_rows|most_rows|least_mean_rows|least_rows)"'
# that no measured step was divided so is part of how sure a prediction is
longhaul predict $step --cluster dgx-h100 --quick | grep -o 'never measured: ring with a core plan'
# what does not go together
fails() { longhaul predict --quick --model longhaul-3m --cluster dgx-h100 --strategy ring "$@" || echo "exit $?"; }
fails --gpus 4 --cp 4 --seq 16 --core-plan three.plan
fails --gpus 2 --seq 32 --core-plan three.plan
fails --gpus 2 --seq 16 --core-plan three.plan --batch 2
fails --gpus 2 --seq 16 --core-plan three.plan --documents lognormal:8,1
fails --gpus 2 --seq 16 --core-plan four.plan
sed 's/own,15/own,14/' three.plan > wrong.plan
fails --gpus 2 --seq 16 --core-plan wrong.plan
fails --gpus 2 --seq 16 --core-plan zigzag --layout zigzag # a layout that is the default is given, too
fails --gpus 2 --seq 16 --core-plan all
# plan and sweep compare rules
documents="--documents lognormal:2000,1 --seed 3"
longhaul plan --model longhaul-3m --cluster dgx-h100 --gpus 8 --strategy ring --cp 8 --seq 64K $documents --core-plan all \
    --batches 1 --weights zero3 --activations full > plan.txt
grep -o '^searched .* configurations' plan.txt
grep -oE -- '--rotate needed .*--core-plan [a-z]+:[0-9]*' plan.txt | head -1
longhaul sweep --model longhaul-3m --cluster dgx-h100 --gpus 8 --strategy ring --seq 64K $documents \
    --vary core-plan=zigzag,chunks:2048 --vary rotate=p2p,needed -o sweep.csv | grep -o 'with .*'
