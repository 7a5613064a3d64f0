# The host's costs from a recording on a GPU: calls of the runtime, matched with kernels by correlation. The recording has
# the form of the PyTorch profiler's, and times that tests/data/kineto/gpu.py chose, which are found again.
gunzip -c $S/tests/data/kineto/gpu.json.gz > $T/gpu.json
what="--model longhaul-3m --set layers=2 --seq 32K --cluster dgx-h100 --gpus 2 --strategy ulysses --activations offload"
longhaul calibrate $T/gpu.json $what -o $T/gpu.device.json > $T/out 2>&1
sed -n '/^recorded/p; /^host /p' $T/out
# within LEAST..MOST us of the time that was chosen
found() { sed -n "s/^  $1  *\([0-9.]*\) us.*/\1/p" $T/out | awk -v name=$1 -v true=$2 '{e = $1 / true - 1; print name ": " (e < 0.03 && e > -0.03 ? "found" : $1 " and not " true)}'; }
found host.op_s 8
found host.kernel_s 5
found host.collective_s 32
found host.copy_s 9
found device.kernel_start_s 1.5
sed -n '/"host"/,/calibrated/s/.*\("[a-z_]*": {"value": "\)[^"]*\(".*"spread": \).*/\1...\2.../p' $T/gpu.device.json
cut -d, -f1,2 $T/gpu.device.points.csv | grep 'launch\|issue\|step,matmul' | sort | uniq -c
# and the step by them
longhaul predict $what --costs $T/gpu.device.json --quick -o $T/again > $T/predicted
longhaul compare $T/again $T/gpu.json --tolerance 5% | grep ^verdict
# without waits, collectives and copies, their numbers stay as the base has them
grep -v 'Synchronize\|ncclDev\|Memcpy' $T/gpu.json > $T/local.json
longhaul calibrate $T/local.json $what -o $T/local.device.json | grep '^host'
# a recording on processors has no such calls
longhaul calibrate $S/tests/data/kineto/llama.json --model $S/tests/data/kineto/llama.config.json --cluster $S/tests/data/kineto/cpu.cluster.json \
    --gpus 1 --seq 512 --strategy local --weights replicated --activations keep --dtype f32 --attention cpu -o $T/cpu.json | grep '^host\|^unmeasured'
