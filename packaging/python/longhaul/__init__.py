"""Predicts one training step of a long-context language model on a GPU cluster.

The functions run the program `longhaul` and return what it prints. Its options are keyword arguments: `--micro-batch 2`
is `micro_batch=2`, the flag `--quick` is `quick=True`, and an option named like a Python keyword ends in an underscore
(`from_="train.sh"`). A dict stands for FIELD=VALUE pairs (`set={"layers": 16}`), a list for values separated by commas.
None leaves an option out. `longhaul help predict` explains each option.
"""
import csv
import importlib.metadata
import io
import json
import os
import pathlib
import signal
import subprocess
import sys

__all__ = ["Data", "Error", "call", "know", "predict", "program", "sweep"]

try:
    __version__ = importlib.metadata.version("longhaul-sim")
except importlib.metadata.PackageNotFoundError:  # imported from the source tree
    __version__ = "unknown"


class Error(Exception):
    """The program could not do what was asked; the text is its own message."""


class Data(dict):
    """A JSON object: a dict whose members are also attributes, `step.memory.peak_bytes`."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no member {name!r}; there are: {', '.join(self)}") from None


_knower = None  # longhaul.record sets it while it records


def know(tensor, value):
    """Gives a tensor of a program that `longhaul.record` records the values that the program will read of it, such as the
    experts that a router chose: `value` has its shape, or is one number for all elements. Otherwise it does nothing."""
    if _knower is not None:
        _knower(tensor, value)


def program():
    """The path of the program: $LONGHAUL_PROGRAM if that is set, else the one that this package carries."""
    path = os.environ.get("LONGHAUL_PROGRAM")
    if path:
        return path
    path = pathlib.Path(__file__).parent / "tree" / "libexec" / "longhaul"
    if not path.is_file():
        raise Error(f"{path} is missing: install the wheel longhaul-sim, or let LONGHAUL_PROGRAM name a program")
    return str(path)


def predict(*arguments, model=None, cluster=None, seq=None, **options):
    """Predicts a step and returns what `longhaul predict --json` prints, as Data. `verdict.fits` says whether the
    step fits in memory: one that does not fit is an answer, not an Error."""
    return call("predict", *arguments, model=model, cluster=cluster, seq=seq, **options)


def sweep(vary, **options):
    """Predicts every combination of the values of `vary`, such as {"seq": "64K..1M:x2", "zero": [1, 2, 3]}. Returns
    its rows as a pandas DataFrame where pandas is installed, else as a list of dicts; tokens ("64K") are numbers. With o="rows.csv" the rows are
    kept in that file, and the same call goes on where an earlier one ended."""
    varied = []
    for key, values in vary.items():
        if isinstance(values, (list, tuple)):
            values = (";" if key == "set" else ",").join(_value(key, value) for value in values)
        varied += ["--vary", f"{key if '.' in key else _name(key)}={_value(key, values)}"]
    text = _run(["sweep", *varied, *_options(options)])
    if options.get("o") is not None:
        text = pathlib.Path(options["o"]).read_text(encoding="utf-8", errors="surrogateescape")
    lines = io.StringIO(text, newline="")
    start = 0
    while lines.readline().startswith("#"):  # comments come before the names of the columns only
        start = lines.tell()
    lines.seek(start)
    rows = [{key: _tokens(cell) if key in ("seq", "chunk") else _cell(cell) for key, cell in row.items()}
            for row in csv.DictReader(lines)]
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def call(command, *arguments, **options):
    """Runs any command that has --json, such as "plan", "validate" or "compare", and returns what it prints."""
    text = _run([command, *map(os.fspath, arguments), *_options({**options, "json": True})])
    try:
        return json.loads(text, object_hook=Data)
    except ValueError as error:
        raise Error(f"longhaul {command} printed no JSON: {error}") from error


def main():
    """The command `longhaul`: this process becomes the program."""
    try:
        path = program()
        os.execv(path, [path, *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"longhaul: error: {error}")


def _run(arguments):
    path = program()
    try:
        # Paths are bytes, and the program repeats them: they are text as os.fsdecode() makes it.
        done = subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise Error(f"cannot run {path}: {error.strerror}") from error
    if done.returncode < 0:
        raise Error(f"longhaul {arguments[0]} was ended by {signal.Signals(-done.returncode).name}\n{done.stderr}")
    if done.returncode > 1:  # 1 is an answer: it does not fit
        raise Error(done.stderr.strip())
    sys.stderr.write(done.stderr.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
    return done.stdout


def _options(options):
    words = []
    for key, value in options.items():
        name = f"-{key}" if len(key) == 1 else f"--{_name(key)}"
        if value is True:
            words.append(name)
        elif value is not None:
            words += [name, _value(key, value)]
    return words


def _name(key):
    return key.rstrip("_").replace("_", "-")


def _value(key, value):
    if isinstance(value, bool):
        raise Error(f"{key}={value}: give None to leave a flag out, or the word that the option takes, such as 'off'")
    if isinstance(value, dict):
        return ",".join(f"{field}={str(item).lower() if isinstance(item, bool) else _value(field, item)}"
                        for field, item in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(_value(key, item) for item in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _tokens(text):
    """A count of tokens ("64K", "1.5M") as an int; other text as a cell."""
    unit = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:].upper()) if text else None
    try:
        return int(float(text[:-1]) * unit) if unit else _cell(text)
    except ValueError:
        return text


def _cell(text):
    """A cell as an int, a float, None where it is empty, or its text."""
    if not text:
        return None
    for kind in int, float:
        try:
            return kind(text)
        except ValueError:
            pass
    return text
