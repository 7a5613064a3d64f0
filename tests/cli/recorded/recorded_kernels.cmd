# A recorded step beside the profiler's recording of the same program on a GPU: compared by operator and shapes, and
# predicted with its times (tests/data/kineto/operators.py).
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
cd $T
cp $S/tests/data/kineto/operators.step.json.gz step.json.gz
cp $S/tests/data/kineto/operators.json.gz gpu.json.gz
longhaul predict step.json.gz --cluster dgx-h100 --gpus 1 -o own > /dev/null
longhaul compare own gpu.json.gz --top 6
longhaul compare own gpu.json.gz --json > compared.json
grep -E '"(match_rate|steps|step_error)"' compared.json
bad compare own gpu.json.gz --top 0 --tolerance 5%
# a measurement that can be read only once
gzip -dc gpu.json.gz | longhaul compare own - --json > piped.json
sed 's/"gpu.json.gz"/"-"/' compared.json | cmp - piped.json && echo "the same from a pipe"
# with the measured times of kernels; what has none is named, and keeps its cost
longhaul predict step.json.gz --cluster dgx-h100 --gpus 1 --kernel-times gpu.json.gz -o timed | grep -E '^step|Beware'
longhaul compare timed gpu.json.gz --top 3
longhaul schedule step.json.gz --flat > step.ir
# on which GPU they ran: on one as the cluster's, on another one, and on one that only its name tells from it
on() { gzip -dc gpu.json.gz | sed "s/\"name\":\"none: see operators.py\"/$1/" > on.json; }
on '"name":"NVIDIA H100 80GB HBM3","numSms":132,"totalGlobalMem":84942979072'
longhaul predict step.json.gz --cluster dgx-h100 --gpus 1 --kernel-times on.json | grep -o 'those of on.json[^;]*'
on '"name":"NVIDIA H200","numSms":132,"totalGlobalMem":150109880320'
bad predict step.json.gz --cluster dgx-h100 --gpus 1 --kernel-times on.json
on '"name":"NVIDIA H100 PCIe","numSms":114,"totalGlobalMem":85024112640'
bad predict step.json.gz --cluster dgx-h100 --gpus 1 --kernel-times on.json
# what cannot be
gzip -dc gpu.json.gz | sed 's/"cat":"kernel"/"cat":"none"/g' > cpu.json
gzip -dc gpu.json.gz | sed 's/"Input Dims"/"Dims"/g' > shapeless.json
gzip -dc gpu.json.gz | sed 's/"aten::/"other::/g' > other.json
gzip -dc gpu.json.gz | sed -E 's/"(correlation|External id)"/"number"/g' > uncalled.json
bad compare own cpu.json
bad compare own shapeless.json
bad compare own gpu.json.gz --by kind
bad predict step.json.gz --cluster dgx-h100 --gpus 1 --kernel-times cpu.json
bad predict step.json.gz --cluster dgx-h100 --gpus 1 --kernel-times other.json
bad predict step.json.gz --cluster dgx-h100 --gpus 1 --kernel-times uncalled.json
bad predict step.json.gz --cluster dgx-h100 --gpus 1 --kernel-times none.json
bad predict step.ir --cluster dgx-h100 --gpus 1 --kernel-times gpu.json.gz
bad predict --model gpt2 --cluster dgx-h100 --gpus 1 --seq 1K --kernel-times gpu.json.gz
