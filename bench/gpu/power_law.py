#!/usr/bin/env python3
"""What a flop costs at other clocks: products and attention with pauses between them, under the board's power limit.

The limit holds for a mean over some 50 ms, so a kernel that runs for a share of the time only may draw more than the
limit while it runs. Less and less of it raises the clock that the limit leaves, up to the highest. Each row holds a load
for some seconds and prints, of their last part: the share of the time in the kernel, its rate, watts of the whole board
(by its energy counter), the clock, and watts of the kernel alone, without what a pause draws. Operands of products of
other spreads draw other powers at the same clock, which moves the clock at the limit.

Without PyTorch, NVML or a GPU: one line that says why, exit code 77."""
import argparse
import sys
import threading
import time

SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


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
    """Runs call() and a pause alternately. Returns the Watch of the last two thirds, seconds of a call and of a period."""
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
        begin, calls, period = time.perf_counter(), [], 0
        waiting = queue(20)
        while time.perf_counter() - begin < least:
            following = queue(20)
            following[0][0].synchronize()
            calls += [b.elapsed_time(e) / 1e3 for b, e in waiting]
            period = waiting[0][0].elapsed_time(following[0][0]) / 1e3 / 20
            waiting = following
        torch.cuda.synchronize()
        return sum(calls) / len(calls), period

    run(seconds / 3)
    with Watch(board) as watch:
        call_s, period = run(seconds * 2 / 3)
    return watch, call_s, period


def operand(kind, *shape):
    x = torch.randn(*shape, device="cuda")
    if kind == "zero":
        x.zero_()
    elif kind == "positive":
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
    begin, rest = time.perf_counter(), 0.0
    print("load,share_of_time,ms,tflop_or_gb_per_s,board_w,clock_mhz,kernel_w,c", flush=True)

    def row(name, work, call, pause_ms=0.0, scale=1e12):
        if time.perf_counter() - begin > a.within - a.seconds:
            print(f"# no time left: {name}", flush=True)
            return 0.0
        # The pause counts cycles of a clock that the load sets; 1.8 GHz is near all of them.
        watch, seconds, period = hold(board, call, int(pause_ms * 1.8e6), a.seconds)
        share, watts = min(1.0, seconds / period), watch.joules / watch.seconds
        print(f"{name},{share:.3f},{seconds * 1e3:.4g},{work / seconds / scale:.4g},{watts:.1f},{watch.clock:.0f},"
              f"{(watts - rest * (1 - share)) / share:.1f},{watch.temperature}", flush=True)
        return watts

    rest = row("pause alone", 0, lambda: torch.cuda._sleep(2000000))
    n = 8192
    pairs = {kind: (operand(kind, n, n), operand(kind, n, n)) for kind in ("normal", "zero", "positive", "wide")}

    def product(kind):
        x, w = pairs[kind]
        return lambda: x @ w.t()

    for pause in (0, 0.15, 0.3, 0.5, 0.8, 2, 5, 0):
        row(f"product normal {pause} ms", 2 * n ** 3, product("normal"), pause)
    for kind in ("wide", "positive", "zero"):
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
    # Memory traffic beside products leaves them less of the limit: clocks below those of products alone.
    other = torch.cuda.Stream()
    for size in (1 << 24, 1 << 27):
        part = f[:size]
        target = torch.empty_like(part)

        def both(part=part, target=target):
            other.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(other):
                target.copy_(part)
            product("normal")()
            torch.cuda.current_stream().wait_stream(other)
        row(f"product normal beside copy of {4 * size >> 20} MiB", 2 * n ** 3, both)


if __name__ == "__main__":
    main()
