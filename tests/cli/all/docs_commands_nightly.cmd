# Every command that a document shows runs as it stands there, block by block, in a folder with the files that they speak of;
# left out are blocks with "..." or placeholders, and what needs a GPU, nodes, PyTorch, a machine of its own, gigabytes or hours, or shows an error.
mkdir $T/work $T/blocks
cd $T/work
cp $S/README.md .
mkdir traces && cp -r $S/traces/published traces/
cp $S/tests/data/snapshots/oom.pickle snapshot.pickle
cp $S/tests/data/calibration/cpu-example.csv mine.csv
cp -r $S/traces/published/external-models .
head -n 3 $S/traces/published/external.csv > rows.csv
cp $S/tests/data/launch/megatron-llama3-8b-fp8.sh train.sh
cp $S/tests/data/launch/torchtitan-llama3-8b.toml llama3_8b.toml
cp $S/tests/data/launch/trl-smollm3-64k.yaml sft.yaml
cp $S/tests/data/launch/accelerate-fsdp2.yaml fsdp2.yaml
cp $S/tests/data/configs/qwen3-8b.json config.json
longhaul schedule --model longhaul-3m --cluster ideal --gpus 2 --seq 1K --dtype f32 --attention cpu -o step.ir
longhaul predict --model longhaul-3m --cluster cpu-node --gpus 2 --seq 1K --dtype f32 --attention cpu --exact --quick -o predicted > note
longhaul predict --model longhaul-3m --cluster cpu-node --gpus 2 --seq 1K --dtype f32 --attention cpu --exact --quick -o out > note
longhaul run --model longhaul-3m --gpus 2 --seq 1K -o measured > note
for f in $S/README.md $S/docs/*.md $S/docs/strategies/*.md; do
    awk -v to=$T/blocks/$(basename $f .md) -f $S/tests/cli/blocks.awk $f
done
# the plans that docs/core-plans.md shows as blocks of their own
set -- $(grep -l '^core plan 1' $T/blocks/*)
cp $1 moved.plan
cp $2 three.plan
ran=0
for block in $T/blocks/*; do
    grep -qE '(^|[ (])longhaul [a-z]+ ' $block || continue
    grep -qE '\.\.\.|FIGURE|OPTIONS|mpirun|SBATCH|cuda|--seq 4M|longhaul bench|\.txt |rank0\.pt|operators\.csv|gpus=8\.\.512|mixtral|longhaul\.record|step\.json\.gz|stages/|bloom/' $block && continue
    sed -i 's/\(longhaul list[ a-z]*\)  *\(longhaul list\)/\1; \2/' $block
    code=0
    sh -c "cd $T/work; traces=$S/traces; . $block" > $T/said 2> $T/wrong < /dev/null || code=$?
    test $code -le 1 || { echo "$(basename $block): exit $code: $(tail -1 $T/wrong)"; cat $block; }
    ran=$((ran + 1))
done
test $ran -ge 20 && echo "blocks: run"
