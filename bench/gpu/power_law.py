#!/usr/bin/env python3
"""Measures how much power a GPU draws at each rate of products and attention, without changing its power limit.

The board keeps the mean over some 50 ms below its limit. A kernel that alternates with pauses may therefore draw more
than the limit while it runs: the longer the pauses, the higher the clock, up to the highest one. Each row runs a kernel
and pauses for some seconds. It prints, for the last two thirds of them, the share of the time that the kernel runs, its
rate, the watts of the board (from its energy counter), the clock, the watts of the board while the kernel runs (without
what it draws in the pauses), and the temperature. Operands with another distribution draw another power.

Without PyTorch, NVML or a GPU: one line that says why, exit code 77."""
import argparse
import threading
import time

from skip import skip

try:
    import pynvml
    import torch
    import torch.nn.functional as F
except ImportError as error:
    skip(f"{error}")


class Watch:
    """Mean clock (MHz) and temperature (C) while it runs, sampled each 10 ms, and joules from the energy counter."""

    def __init__(self, board):
        self.board, self.clocks, self.over = board, [], False
        self.thread = threading.Thread(target=self.sample)

    def sample(self):
        while not self.over:
            self.clocks.append(pynvml.nvmlDeviceGetClockInfo(self.board, pynvml.NVML_CLOCK_SM))
            time.sleep(0.01)

    def __enter__(self):
        self.begin, self.joules = time.perf_counter(), pynvml.nvmlDeviceGetTotalEnergyConsumption(self.board)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.begin
        self.joules = (pynvml.nvmlDeviceGetTotalEnergyConsumption(self.board) - self.joules) / 1e3
        self.over = True
        self.thread.join()
        self.clock = sum(self.clocks) / len(self.clocks)
        self.temperature = pynvml.nvmlDeviceGetTemperature(self.board, pynvml.NVML_TEMPERATURE_GPU)


def hold(board, call, pause_cycles, seconds):
    """Alternates call() with a pause. Returns, for the last two thirds, their Watch and the mean seconds of a call and
    of a call with its pause."""

    def queue(count):
        events = []
        for _ in range(count):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            events.append((begin, end))
            if pause_cycles:
                torch.cuda._sleep(pause_cycles)
        return events

    def run(least):
        # Two batches are in flight, so that the GPU never waits for the host.
        begin, calls, periods = time.perf_counter(), [], []
        waiting = queue(20)
        while time.perf_counter() - begin < least:
            following = queue(20)
            following[0][0].synchronize()
            calls += [b.elapsed_time(e) / 1e3 for b, e in waiting]
            periods.append(waiting[0][0].elapsed_time(following[0][0]) / 1e3 / 20)
            waiting = following
        torch.cuda.synchronize()
        return sum(calls) / len(calls), sum(periods) / len(periods)

    run(seconds / 3)
    with Watch(board) as watch:
        call_s, period = run(seconds * 2 / 3)
    return watch, call_s, period


def operand(kind, *shape):
    x = torch.randn(*shape, device="cuda")
    if kind == "positive":
        x.uniform_(0.25, 1)
    elif kind == "wide":
        x *= torch.exp2(torch.randint(-12, 13, shape, device="cuda").float())
    return x.bfloat16()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3, help="of each load; the last two thirds count")
    parser.add_argument("--within", type=float, default=150, help="seconds of all")
    a = parser.parse_args()
    if not torch.cuda.is_available():
        skip("PyTorch sees no GPU")
    pynvml.nvmlInit()
    board = pynvml.nvmlDeviceGetHandleByIndex(0)
    limit = pynvml.nvmlDeviceGetEnforcedPowerLimit(board) / 1e3
    print(f"# torch {torch.__version__}, {torch.cuda.get_device_name()}, limit {limit:g} W, "
          f"driver {pynvml.nvmlSystemGetDriverVersion()}")
    begin, idle_w = time.perf_counter(), 0.0
    print("load,share_of_time,ms,tflop_or_gb_per_s,board_w,clock_mhz,kernel_w,c", flush=True)

    def row(name, work, call, pause_ms=0.0, scale=1e12):
        if time.perf_counter() - begin > a.within - a.seconds:
            print(f"# no time left: {name}", flush=True)
            return 0.0
        # The pause counts cycles of a clock that the load sets; 1.8 GHz is near all of them.
        watch, seconds, period = hold(board, call, int(pause_ms * 1.8e6), a.seconds)
        share, watts = min(1.0, seconds / period), watch.joules / watch.seconds
        print(f"{name},{share:.3f},{seconds * 1e3:.4g},{work / seconds / scale:.4g},{watts:.1f},{watch.clock:.0f},"
              f"{(watts - idle_w * (1 - share)) / share:.1f},{watch.temperature}", flush=True)
        return watts

    idle_w = row("pause alone", 0, lambda: torch.cuda._sleep(2000000))
    n = 8192
    pairs = {kind: (operand(kind, n, n), operand(kind, n, n)) for kind in ("normal", "positive", "wide")}

    def product(kind):
        x, w = pairs[kind]
        return lambda: x @ w.t()

    for pause in (0, 0.15, 0.3, 0.5, 0.8, 2, 5, 0):
        row(f"product normal {pause} ms", 2 * n ** 3, product("normal"), pause)
    for kind in ("wide", "positive"):
        for pause in (5, 0):
            row(f"product {kind} {pause} ms", 2 * n ** 3, product(kind), pause)
    rows, heads, dim = 16384, 16, 128
    q, k, v = (torch.randn(1, heads, rows, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    flops = 2 * heads * dim * rows * rows
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            for pause in (0, 0.4, 5):
                row(f"{backend.name.lower()} forward {pause} ms", flops,
                    lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), pause)
    count = 1 << 29
    x, y = (torch.randn(count, device="cuda").bfloat16() for _ in range(2))
    for pause in (0, 2):
        row(f"add bf16 {pause} ms", 6 * count, lambda: torch.add(x, y, out=y), pause, 1e9)
    f = torch.randn(count // 2, device="cuda")
    row("copy fp32 0 ms", 4 * count, lambda: f.clone(), 0, 1e9)
    row("cast to fp32 0 ms", 6 * count, lambda: x.float(), 0, 1e9)
    row("gelu bf16 0 ms", 4 * count, lambda: F.gelu(x), 0, 1e9)


if __name__ == "__main__":
    main()
