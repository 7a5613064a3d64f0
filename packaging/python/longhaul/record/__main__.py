"""python -m longhaul.record: runs a script and records its second training step. See --help."""
import argparse
import os
import pathlib
import runpy
import sys
import traceback

from torch.optim import optimizer as optimizers

from longhaul import record


class _Recorded(BaseException):
    """Ends the script once its step is recorded; no `except Exception` of the script catches it."""


class _Watch:
    """Records from the end of an optimizer's step to the end of its next one. The first `warm_up` steps make states. Steps
    without a backward before them, such as DeepSpeed's for each group of parameters, are parts of the one before."""

    def __init__(self, recorder, warm_up):
        self.recorder, self.left, self.first, self.others = recorder, warm_up, None, set()
        self.steps = self.backwards = 0

    def stepped(self, optimizer, arguments, keywords):
        self.first = self.first or optimizer
        if self.recorder.recorded:
            raise _Recorded
        if optimizer is not self.first:
            if self.recorder.on and id(optimizer) not in self.others:
                self.left = 1  # it has made its states within the recording: the next step is recorded instead
            self.others.add(id(optimizer))
            return
        if self.recorder.backwards == self.backwards:
            return
        self.backwards = self.recorder.backwards
        self.steps += 1
        if self.left > 0:
            self.left -= 1
            if self.left == 0:
                self.recorder.begin()
        else:
            self.recorder.end()
            raise _Recorded


def _default(name, otherwise):
    """A variable of the environment, by which a program that records many steps sets what a command leaves open."""
    return os.environ.get(f"LONGHAUL_RECORD_{name}", otherwise)


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m longhaul.record",
        description="Runs a PyTorch training script on a machine without a GPU, with tensors that hold no values, and records "
                    "what one rank of it would do on GPUs in one training step: from the end of the optimizer's first step to "
                    "the end of its second.",
        epilog="Defaults are those of the variables LONGHAUL_RECORD_OUTPUT, LONGHAUL_RECORD_WORLD_SIZE, LONGHAUL_RECORD_RANK and "
               "LONGHAUL_RECORD_DEVICE, where they are set.")
    parser.add_argument("-o", dest="path", metavar="FILE", default=_default("OUTPUT", "step.json.gz"),
                        help="the recording, compressed if it ends in .gz; written whole or not at all (default: %(default)s)")
    parser.add_argument("--world-size", type=int, default=_default("WORLD_SIZE", "1"), metavar="N", help="ranks of the job (default: %(default)s)")
    parser.add_argument("--rank", type=int, default=_default("RANK", "0"), metavar="N",
                        help="the rank to record: one of each stage of a pipeline is needed (default: %(default)s)")
    parser.add_argument("--local-world-size", type=int, metavar="N", help="ranks of a node (default: 8, or all of fewer)")
    parser.add_argument("--device", default=_default("DEVICE", "h100-sxm"), choices=sorted(record.DEVICES), metavar="NAME",
                        help="the GPU whose kernels PyTorch chooses: %(choices)s (default: %(default)s)")
    parser.add_argument("--tokens", type=int, metavar="N",
                        help="tokens that this rank reads in a step (default: those of the model's first embedding)")
    parser.add_argument("--warm-up", type=int, default=1, metavar="N",
                        help="optimizer steps before the recorded one (default: %(default)s)")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="arguments of the script")
    options = parser.parse_args()
    for name in "world_size", "warm_up", "local_world_size", "tokens":
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    return options


def _run(options):
    if options.module:
        sys.argv = [options.script, *options.arguments]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        return
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, str(pathlib.Path(options.script).resolve().parent))
    runpy.run_path(options.script, run_name="__main__")


def _fail(text):
    print(f"longhaul.record: error: {text}", file=sys.stderr)
    return 2


def _refusal(error):
    """The refusal that another exception, such as one of torch.compile, was raised for, or None."""
    while error is not None and not isinstance(error, record.Refused):
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return error


def _where(error, script):
    """The line of the script at which an exception left it."""
    name = os.path.abspath(script)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if os.path.abspath(frame.filename) == name]
    return f"{script}:{lines[-1]}: " if lines else f"{script}: "


def _placed(error, text, script):
    """What is said of an exception, with the place unless the text begins with it."""
    where, text = _where(error, script), str(text)
    return text if text.startswith(f"{os.path.basename(script)}:") else where + text


def main():
    options = _options()
    script = options.script
    if not options.module and not os.path.isfile(script):
        return _fail(f"{script}: there is no such script")
    if not options.path or os.path.isdir(options.path):
        return _fail(f"-o {options.path or repr('')}: the name of a file is needed")
    folder = pathlib.Path(options.path).parent
    if not os.access(folder, os.W_OK | os.X_OK):
        return _fail(f"-o {options.path}: the folder {folder} is missing or cannot be written")
    local = options.local_world_size or min(options.world_size, 8)
    # One GPU is seen, so every rank is the first one of its node.
    os.environ.update(RANK=str(options.rank), WORLD_SIZE=str(options.world_size), LOCAL_RANK="0", LOCAL_WORLD_SIZE=str(local),
                      GROUP_RANK=str(options.rank // local), MASTER_ADDR="localhost", MASTER_PORT="29500")
    try:
        recorder = record.Step(None, options.world_size, options.rank, options.device, options.tokens,
                               [script, *options.arguments])
        watch = _Watch(recorder, options.warm_up)
        with recorder:
            hook = optimizers.register_optimizer_step_post_hook(watch.stepped)
            try:
                _run(options)
            except _Recorded:
                pass
            except record.Refused as error:
                if not recorder.recorded:
                    return _fail(_placed(error, error, script))
            except SystemExit as error:
                if not recorder.recorded and error.code not in (None, 0):
                    return _fail(f"{_where(error, script)}the script ended itself: {error.code}")
            except KeyboardInterrupt:
                print("longhaul.record: interrupted; nothing was written", file=sys.stderr)
                return 130
            except Exception as error:
                if not recorder.recorded:
                    refused = _refusal(error)
                    if refused is None:
                        traceback.print_exc()
                    return _fail(_placed(error, refused or f"the script failed: {type(error).__name__}: {error}", script))
            finally:
                hook.remove()
        if not recorder.recorded:
            steps = "1 step" if watch.steps == 1 else f"{watch.steps} steps"
            return _fail(f"{script}: the script ended after {steps} of the optimizer; a recording needs "
                         f"{options.warm_up + 1}, of which the last is recorded (--warm-up {options.warm_up})")
        if not any("k" in event for event in recorder.events):
            return _fail(f'{script}: the recorded step ran nothing on the GPU: move the model and its inputs to "cuda"')
        recorder.write(options.path)
    except record.Refused as error:
        return _fail(error)
    _report(recorder, options.path)
    return 0


def _report(recorder, path):
    kernels = sum("k" in event and event["k"] != "comm" for event in recorder.events)
    collectives = sum(event.get("k") == "comm" for event in recorder.events)
    size = os.path.getsize(path)
    print(f"{path}: {kernels} kernels and {collectives} collectives of rank {recorder.rank} of {recorder.world}, at most "
          f"{recorder.peak / 2**30:.2f} GiB of tensors ({size / 1000:.0f} KB)")
    for note in recorder.content()["notes"]:
        print(f"note: {note}")
    for what, count in recorder.guessed.items():
        print(f"longhaul.record: warning: {what}" + (f" ({count} times)" if count > 1 else ""), file=sys.stderr)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # without destructors of PyTorch, which would look for the GPU
