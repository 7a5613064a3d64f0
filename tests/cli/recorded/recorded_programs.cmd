# A recorded step is predicted as a schedule file is. The recordings are of 2 layers of Llama, with FSDP2 over 8 ranks and
# on one.
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
cd $T
cp $S/tests/data/recordings/llama-fsdp.json.gz fsdp.json.gz
gzip -dc $S/tests/data/recordings/llama-one.json.gz > one.json
longhaul predict fsdp.json.gz --cluster dgx-h100 --nodes 1
# a file whose name is that of a launch file; other devices take other kernels
longhaul predict one.json --cluster dgx-a100 --gpus 1 | grep -E '^(model|layout)'
longhaul predict one.json --cluster dgx-h100 --gpus 1 --attention fa3 | grep -E '^layout'
# a device without costs of the recorded kernels says what is taken; towers whose modules end alike keep apart
longhaul predict one.json --cluster cpu-node --gpus 1 | grep -E '^layout'
sed 's/"model\.layers\.0\./"text_tower.encoder.stack.layers.0./g; s/"model\.layers\.1\./"vision_tower.encoder.stack.layers.1./g' one.json > towers.json
longhaul predict towers.json --cluster dgx-h100 --gpus 1 | sed -n '/^Whose/,/^$/p'
longhaul predict one.json --cluster dgx-h100 --gpus 1 --json | grep -E '^    "(torch|world|rank|events|peak_bytes|kernels_s)":'
# what would help: by the causes of its time, and where it does not fit by what fills memory; nothing compiled is compiled
longhaul predict $S/tests/data/recordings/llama3-8b.json.gz --cluster dgx-h100:device.memory=20GiB --nodes 1 | grep -E '^(Prob|MFU)|What helps' || true
longhaul predict $S/tests/data/recordings/compile.json.gz --cluster dgx-h100 --gpus 1 | grep 'What helps'
# the rules hold, and the text form is read back
longhaul check fsdp.json.gz | tail -1
longhaul schedule fsdp.json.gz --flat > step.ir
longhaul check step.ir | tail -1
longhaul predict fsdp.json.gz --cluster dgx-h100 --nodes 1 -o out > /dev/null && longhaul report out
# a sweep over clusters, links and recordings
longhaul sweep --recording fsdp.json.gz --gpus 8 --vary cluster=dgx-h100,dgx-a100 | grep -v "^#" | cut -d, -f1-4
longhaul sweep --recording fsdp.json.gz --cluster dgx-h100 --gpus 8 --vary fabric.bandwidth=100,450GB/s | grep -v "^#" | cut -d, -f1-4
longhaul sweep --cluster dgx-h100 --gpus 8 --vary recording=fsdp.json.gz,one.json | grep -v "^#" | cut -d, -f1-4
bad sweep --recording fsdp.json.gz --cluster dgx-h100 --gpus 8 --vary seq=1K,2K
# what cannot be
bad run fsdp.json.gz
bad run step.ir
bad predict fsdp.json.gz --cluster dgx-h100 --nodes 2
bad predict one.json --cluster dgx-h100
bad predict one.json --cluster dgx-h100 --gpus 1 --profile ideal
bad predict one.json --cluster dgx-h100 --gpus 1 --tokens 1B
bad predict one.json --cluster dgx-h100 --gpus 1 --seq 4K
bad predict one.json --cluster dgx-h100 --gpus 1 --tp 2
head -c 3000 fsdp.json.gz > cut.json.gz
head -c 3000 one.json > cut.json
sed 's/"version":1/"version":9/' one.json > nine.json
echo '{"traceEvents": []}' | gzip > kineto.json.gz
for file in cut.json.gz cut.json nine.json kineto.json.gz none.json.gz; do
    bad predict $file --cluster dgx-h100 --gpus 1
done
