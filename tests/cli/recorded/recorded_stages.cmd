# The stages of a pipeline, each recorded by itself, are predicted together: four of 1F1B with 8 micro-batches, and two
# interleaved ones with FSDP2 over two ranks of each.
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
cd $T
mkdir stages few none
cp $S/tests/data/recordings/stage-?.json.gz stages
cp $S/tests/data/recordings/interleaved-?.json.gz $S/tests/data/recordings/llama-one.json.gz .
cp stages/stage-0.json.gz stages/stage-3.json.gz few
longhaul predict stages/stage-*.json.gz --cluster dgx-h100 --gpus 4
longhaul predict $S/tests/data/recordings/grid-?.json.gz --cluster dgx-h100 --gpus 4 | grep -E '^model|^step|pipeline'
longhaul predict interleaved-*.json.gz --cluster dgx-h100 --gpus 4 | grep -E '^model|pipeline|together'
# the order of the files is of no account, and a folder stands for its files
longhaul predict stages/stage-3.json.gz stages/stage-[0-2].json.gz --cluster dgx-h100 --gpus 4 | grep ^step
longhaul predict stages --cluster dgx-h100 --gpus 4 | grep ^step
longhaul predict stages --cluster dgx-h100 --gpus 4 --json > stages.json
grep -A6 '"stage_ranks"' stages.json
longhaul sweep --recording stages --gpus 4 --vary cluster=dgx-h100,dgx-a100 | grep -v "^#" | cut -d, -f1-3,8-10
# the rules hold, and the text form is read back
longhaul check stages | grep -E 'message|deadlock|right'
longhaul check interleaved-0.json.gz interleaved-2.json.gz | grep -E 'message|deadlock|right'
longhaul schedule stages --flat > step.ir
longhaul check step.ir | tail -1
# what does not go together
bad predict stages/stage-1.json.gz --cluster dgx-h100 --gpus 4
bad predict few --cluster dgx-h100 --gpus 4
bad predict stages interleaved-0.json.gz --cluster dgx-h100 --gpus 4
bad predict stages/stage-0.json.gz interleaved-2.json.gz --cluster dgx-h100 --gpus 4
bad predict stages/stage-0.json.gz llama-one.json.gz --cluster dgx-h100 --gpus 4
bad predict stages/stage-0.json.gz step.ir --cluster dgx-h100 --gpus 4
bad predict stages --cluster dgx-h100 --gpus 8
bad predict none --cluster dgx-h100 --gpus 4
