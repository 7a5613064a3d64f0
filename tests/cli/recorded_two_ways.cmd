# Two ways to one figure: two layers of Llama 3 8B's widths over 8192 tokens, FSDP2 over 8 GPUs, in bf16, recorded from
# transformers, and predicted by our own model of transformers' code. They share the costs of devices only. The most bytes
# of tensors agree within 1 %, the step and its waterfall's largest parts within 3 %.
cd $T
longhaul predict $S/tests/data/recordings/llama3-8b.json.gz --cluster dgx-h100 --nodes 1 --json > recorded.json
longhaul predict --model llama3-8b --set layers=2 --cluster dgx-h100 --nodes 1 --seq 8K --strategy local --dp 8 --batch 8 \
    --zero 3 --checkpoint none --profile hf --states bf16 --attention cudnn --quick --json > own.json
python3 - << 'END'
import json
recorded, own = (json.load(open(name + ".json")) for name in ("recorded", "own"))
def compare(what, a, b, most):
    print(what, "agrees" if abs(a / b - 1) <= most else f"differs: recorded {a:.6g}, own {b:.6g}")
compare("peak", recorded["recording"]["peak_bytes"], own["memory"]["peak_bytes"], 0.01)
compare("step", recorded["step_s"], own["step_s"], 0.03)
for cause in ("model_flops_at_peak_s", "memory_bound_work_s"):
    compare(cause, recorded["waterfall"][cause], own["waterfall"][cause], 0.03)
END
