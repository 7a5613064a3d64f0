# A device file from one recorded step, by which the same step is predicted as long as it took.
cd $S/tests/data/kineto
what="--model llama.config.json --cluster cpu.cluster.json --strategy local --weights replicated --activations keep --dtype f32 --attention cpu"
longhaul calibrate llama.json $what --gpus 1 --seq 512 --name recorded -o $T/device.json
grep -o '"points": {.*}' $T/device.json
sed -n '1,2p; /attention/p; /rmsnorm,/p' $T/device.points.csv
longhaul predict $what --gpus 1 --seq 512 --costs $T/device.json --quick -o $T/again > $T/out
longhaul compare $T/again llama.json | grep ^step
# the other model, whose small ops lie far from any rate
other=$(echo $what | sed 's/llama/gpt-steps/')
longhaul calibrate gpt-steps.json $other --gpus 1 --seq 512 --name recorded -o $T/gpt.json | grep '^recorded\|^memory:'
longhaul predict $other --gpus 1 --seq 512 --costs $T/gpt.json --quick -o $T/gpt > $T/out
longhaul compare $T/gpt gpt-steps.json | grep ^step
# traces of ours: a step that was simulated gives the device back that it was simulated with
longhaul predict $what --gpus 2 --dp 2 --batch 2 --seq 512 --costs $T/device.json --quick --exact -o $T/two > $T/out
longhaul calibrate $T/two $what --gpus 2 --dp 2 --batch 2 --seq 512 --base cpu-torch --name again -o $T/two.json 2>&1 | grep '^recorded\|^matmul:\|^attention.*:\|f32_flop'
longhaul predict $what --gpus 2 --dp 2 --batch 2 --seq 512 --costs $T/two.json --quick | grep -o '^step  *[0-9.]* ms'
longhaul compare $T/two $T/two | grep -o 'predicted [0-9.]* ms'
# what does not fit
try() { "$@" 2>&1 > $T/out || echo "exit $?"; }
try longhaul calibrate llama.json -o $T/no.json
try longhaul calibrate llama.json $what --gpus 1 --seq 512 --cluster-out $T/no.json
try longhaul calibrate $T/two $what --gpus 1 --seq 512 -o $T/no.json
try longhaul calibrate $T/two $what --gpus 2 --dp 2 --batch 2 --seq 512 --set layers=1 -o $T/no.json
try longhaul calibrate $S/tests/data/calibration/cpu-example.csv --seq 512 -o $T/no.json
# another run than the one that was recorded: another length, more layers
try longhaul calibrate llama.json $what --gpus 1 --seq 256 -o $T/other.json
try longhaul calibrate llama.json $what --gpus 1 --seq 512 --set layers=4 -o $T/other.json
