#!/usr/bin/env python3
"""Writes a recording of a training step on a GPU in the form of the PyTorch profiler: gpu.py ops.csv schedule.ir > gpu.json

No GPU ran. The rows are those of a prediction of `longhaul predict --exact -o DIR`, and the host's times are ones that
this file chooses, so that a test knows what is to be found. The form is that of libkineto/src/output_json.cpp in
pytorch/kineto, as tests/data/call_stack/backward_thread.json of facebookresearch/HolisticTraceAnalysis has it: an
operator (cpu_op) holds the call of the runtime that launches its kernel; call and kernel have one "correlation"; the
backward pass runs on a thread of its own.
"""
import csv
import json
import re
import sys

LAUNCH, OPERATOR, COLLECTIVE, COPY, WAIT, START = 5, 8, 32, 9, 14, 1.5  # us; what the test looks for
STEPS, SPREAD = 3, 0.2

NAMES = {  # kind: operator, kernels
    "matmul": ("aten::mm", ["nvjet_tst_128x256_64x4_2x1_v_bz_TNT"]),
    "attention": ("aten::_scaled_dot_product_cudnn_attention",
                  ["cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3"]),
    "attention_backward": ("aten::_scaled_dot_product_cudnn_attention_backward",
                           ["cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_3"]),
    "rmsnorm": ("aten::_fused_rms_norm", ["void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float, true>"]),
    "rmsnorm_backward": ("aten::_fused_rms_norm_backward",
                         ["void at::native::layer_norm_grad_input_kernel_vectorized<c10::BFloat16>",
                          "void at::native::GammaBetaBackwardCUDAKernelTemplate<c10::BFloat16>"]),
    "adamw": ("aten::_fused_adamw_", ["void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>"]),
    "embedding": ("aten::embedding", ["void at::native::vectorized_gather_kernel<16, long>"]),
    "embedding_backward": ("aten::embedding_dense_backward", ["void at::native::embedding_backward_kernel"]),
    "cross_entropy": ("aten::_log_softmax", ["void at::native::cunn_SoftMaxForward<8, c10::BFloat16>"]),
    "cross_entropy_backward": ("aten::_log_softmax_backward_data", ["void at::native::cunn_SoftMaxBackward<8>"]),
    "all_gather": ("c10d::_allgather_base_", ["ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"]),
    "reduce_scatter": ("c10d::_reduce_scatter_base_", ["ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"]),
    "all_reduce": ("c10d::allreduce_", ["ncclDevKernel_AllReduce_Sum_f32_RING_LL"]),
    "all_to_all": ("c10d::alltoall_base_", ["ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"]),
    "h2d": ("aten::copy_", ["Memcpy HtoD (Pinned -> Device)"]),
    "d2h": ("aten::copy_", ["Memcpy DtoH (Device -> Pinned)"]),
}
ELEMENTWISE = ("aten::mul", ["void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<c10::BFloat16>>"])
COMMUNICATION = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
STREAM = {"compute": 7, "h2d": 21, "d2h": 23}
PROCESS, MAIN, ENGINE = 4711, 4711, 4790


class Recording:
    def __init__(self):
        self.events, self.correlation, self.external, self.seed = [], 100, 1, 12345
        self.free = {}  # of each stream

    def near(self, value):
        """A value within SPREAD of this one; their mean is this one."""
        self.seed = (self.seed * 1103515245 + 12345) % 2**31
        return value * (1 + SPREAD * (2 * self.seed / 2**31 - 1))

    def add(self, category, name, start, end, thread, process=PROCESS, **arguments):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread,
                            "ts": round(start, 3), "dur": round(end - start, 3), "args": arguments})

    def call(self, name, start, end, thread, external=None):
        self.correlation += 1
        ids = {"External id": external} if external else {}
        self.add("cuda_runtime", name, start, end, thread, **ids, cbid=211, correlation=self.correlation)

    def work(self, category, name, start, seconds, stream, external, **more):
        begin = max(start, self.free.get(stream, 0) + self.near(START))
        self.free[stream] = begin + seconds
        self.add(category, name, begin, begin + seconds, stream, 0, **{"External id": external}, device=0, context=1,
                 stream=stream, correlation=self.correlation, **more)


def shapes(schedule):
    """The inputs of the products of a schedule, by op."""
    found = {}
    for line in open(schedule):
        match = re.match(r"op (\d+) matmul \S+ m=(\d+) n=(\d+) k=(\d+)", line)
        if match:
            op, m, n, k = map(int, match.groups())
            found[op] = [[m, k], [k, n]]
    return found


def record_op(r, now, row, inputs):
    """Issues one op; returns the time at which its last call ends."""
    kind, backward = row["kind"], row["phase"] in ("backward", "recompute")
    operator, kernels = NAMES.get(kind, ELEMENTWISE)
    copy, communication = kind in ("h2d", "d2h"), kind in COMMUNICATION
    thread = ENGINE if backward else MAIN
    seconds = 1e6 * (float(row["end_s"]) - float(row["start_s"]))
    r.external += 1
    external, begin = r.external, None
    for i, kernel in enumerate(kernels):
        call = r.near(LAUNCH)
        whole = r.near(COLLECTIVE if communication else COPY if copy else OPERATOR + call)
        before = 0 if i > 0 else whole - call
        start, end = now + before, now + before + call
        begin = now + 0.4 * before if begin is None else begin
        r.call("cudaMemcpyAsync" if copy else "cudaLaunchKernelExC" if communication else "cudaLaunchKernel", start, end,
               thread, external)
        more = {}
        if communication:
            more = {"Collective name": kind, "In msg nelems": int(float(row["bytes"])) // 2, "dtype": "BFloat16"}
        if copy:
            more = {"bytes": int(float(row["bytes"]))}
        r.work("gpu_memcpy" if copy else "kernel", kernel, end + 2, r.near(seconds) / len(kernels),
               STREAM.get(row["stream"], 30), external, **more)
        now = end
    end = now + 0.5
    arguments = {"External id": external}
    if inputs:
        arguments.update({"Input Dims": inputs, "Input type": ["c10::BFloat16"] * 2})
    r.add("cpu_op", operator, begin, end, thread, **arguments)
    if backward:
        node = "CheckpointFunctionBackward" if row["phase"] == "recompute" else "Backward0"
        r.add("cpu_op", f"autograd::engine::evaluate_function: {node}", begin - 0.2, end + 0.2, thread)
    if row["phase"] == "optimizer":
        r.add("user_annotation", "Optimizer.step#AdamW.step", begin - 0.2, end + 0.2, thread)
    return now


def record_step(r, now, number, rows, products):
    begin = now
    r.external += 1
    call = now + 20  # the tokens, which hold the host
    r.call("cudaMemcpyAsync", call, call + 60, MAIN, r.external)
    r.work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", call + 50, 5, 7, r.external, bytes=16384)
    now = call + 60
    for i, row in enumerate(rows):
        if i == len(rows) // 2 and number == 1:
            now += 3000  # a pause, as of Python's collection of garbage
        now = record_op(r, now, row, products.get(int(row["op"])))
    wait = min(now + 20, max(r.free.values()) - 1)
    now = max(r.free.values()) + r.near(WAIT)
    r.call("cudaStreamSynchronize", wait, now, MAIN)
    r.add("user_annotation", f"ProfilerStep#{number}", begin, now + 10, MAIN)
    return now + 100


def main():
    rows = [row for row in csv.DictReader(line for line in open(sys.argv[1]) if not line.startswith("#"))
            if row["rank"] == "0"]
    rows.sort(key=lambda row: int(row["op"]))
    r, now = Recording(), 5000.0
    for number in range(STEPS):
        now = record_step(r, now, number, rows, shapes(sys.argv[2]))
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "none: see gpu.py"}],
            "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}}
    print(json.dumps(head)[:-1] + ', "traceEvents": [')
    print(",\n".join(json.dumps(event) for event in r.events))
    print("]}")


if __name__ == "__main__":
    main()
