#!/usr/bin/env python3
"""Checks the Python module longhaul: the one that is installed, or packaging/python with $LONGHAUL_PROGRAM.

    check_module.py PROGRAM

PROGRAM is a longhaul whose answers the module's must equal."""
import contextlib
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import longhaul

PROGRAM = sys.argv.pop(1)
STEP = {"model": "llama3-8b", "cluster": "dgx-h100", "nodes": 1}
WORDS = ["--model", "llama3-8b", "--cluster", "dgx-h100", "--nodes", "1"]


def printed(*arguments):
    done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout


def no_pandas():
    """Within this, pandas cannot be imported, as where it is not installed."""
    return mock.patch.dict(sys.modules, pandas=None)


class Module(unittest.TestCase):
    def test_predict_returns_what_the_program_prints(self):
        step = longhaul.predict(**STEP, seq="128K", quick=True, micro_batch=1, price=None)
        want = json.loads(printed("predict", *WORDS, "--seq", "128K", "--quick", "--micro-batch", "1", "--json"))
        self.assertEqual(step, want)
        self.assertIs(step.verdict.fits, True)
        self.assertEqual(step.memory.peak_bytes, want["memory"]["peak_bytes"])
        with self.assertRaisesRegex(AttributeError, "no member 'step'; there are: schema, "):
            step.step

    def test_a_step_that_does_not_fit_is_an_answer(self):
        step = longhaul.predict(**STEP, seq="8M", quick=True)
        self.assertIs(step.verdict.fits, False)

    def test_dicts_lists_and_keywords_become_options(self):
        fields = {"layers": 2, "hidden": 512, "heads": 4, "ffn": 1024, "vocab": 1000}
        step = longhaul.predict(model=fields, cluster="1x2xh100", seq=4096, quick=True, set={"layers": 3})
        line = ",".join(f"{key}={value}" for key, value in fields.items())
        want = printed("predict", "--model", line, "--cluster", "1x2xh100", "--seq", "4096", "--quick", "--set",
                       "layers=3", "--json")
        self.assertEqual(step, json.loads(want))
        with self.assertRaisesRegex(longhaul.Error, "/no/such"):
            longhaul.predict(cluster="dgx-h100", from_="/no/such")

    def test_fields_of_a_dict_may_be_bools(self):
        tied = longhaul.predict(model="gpt2", set={"layers": 2, "tied_head": True}, cluster="1x1xh100", seq=1024)
        apart = longhaul.predict(model="gpt2", set={"layers": 2, "tied_head": False}, cluster="1x1xh100", seq=1024)
        self.assertLess(tied.memory.peak_bytes, apart.memory.peak_bytes)

    def test_bytes_that_are_no_utf8_stay_in_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.fsdecode(os.path.join(os.fsencode(folder), b"m\xe9.json"))
            with self.assertRaisesRegex(longhaul.Error, "cannot open"):
                longhaul.predict(model=path, cluster="dgx-h100", seq="64K")
            with open(path, "w") as file:
                json.dump({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 512, "vocab_size": 1000,
                           "num_attention_heads": 4, "intermediate_size": 1024}, file)
            rows = longhaul.sweep({"model": [path]}, cluster="1x1xh100", seq="4K")
        rows = rows if isinstance(rows, list) else rows.to_dict("records")
        self.assertEqual([(row["model"], row["status"]) for row in rows], [(path, "fits")])

    def test_an_error_has_the_programs_message(self):
        with self.assertRaisesRegex(longhaul.Error, "^--model: error: no model 'nope' in "):
            longhaul.predict(model="nope", cluster="dgx-h100", seq="64K")
        with self.assertRaisesRegex(longhaul.Error, "^--colour: error: there is no such option"):
            longhaul.predict(**STEP, seq="64K", colour="red")
        with self.assertRaisesRegex(longhaul.Error, "kv_offload=False: give None .* 'off'"):
            longhaul.predict(**STEP, seq="64K", kv_offload=False)

    def test_sweep_returns_a_row_per_point(self):
        vary = {"seq": ["64K", "8M"], "micro_batch": [1], "nic.latency": "5,10us"}
        with no_pandas():
            rows = longhaul.sweep(vary, **STEP)
        self.assertEqual([(row["seq"], row["micro-batch"], row["nic.latency"], row["status"]) for row in rows],
                         [(65536, 1, "5us", "fits"), (65536, 1, "10us", "fits"),
                          (8388608, 1, "5us", "does not fit"), (8388608, 1, "10us", "does not fit")])
        step = longhaul.predict(**STEP, seq="64K", micro_batch=1)
        self.assertEqual(rows[0]["step_s"], step.step_s)
        self.assertIsNone(rows[2]["step_s"])
        self.assertIn("too much", rows[2]["reason"])

    def test_sweep_keeps_its_rows_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder, no_pandas():
            path = pathlib.Path(folder) / "rows.csv"
            first = longhaul.sweep({"seq": ["8M", "16M"]}, **STEP, o=path)
            again = longhaul.sweep({"seq": ["8M", "16M"]}, **STEP, o=path)
            self.assertTrue(path.read_text().startswith("# command="))
        self.assertEqual([row["seq"] for row in first], [8388608, 16777216])
        self.assertEqual(first, again)

    def test_sweep_hands_its_rows_to_pandas(self):
        with mock.patch.dict(sys.modules, pandas=types.SimpleNamespace(DataFrame=lambda rows: ("frame", rows))):
            kind, rows = longhaul.sweep({"seq": ["8M"]}, **STEP)
        self.assertEqual((kind, rows[0]["seq"]), ("frame", 8388608))

    def test_sweep_returns_a_frame_with_pandas(self):
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = longhaul.sweep({"seq": ["64K", "128K"]}, **STEP)
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame["seq"]), [65536, 131072])
        self.assertGreater(frame["step_s"][1], frame["step_s"][0])

    def test_call_runs_other_commands(self):
        found = longhaul.call("plan", **STEP, seq="64K", strategy="ulysses")
        self.assertEqual(found.schema, "plan")

    def test_a_missing_program_is_an_error(self):
        with mock.patch.dict(os.environ, LONGHAUL_PROGRAM="/no/such/longhaul"):
            with self.assertRaisesRegex(longhaul.Error, "cannot run /no/such/longhaul: No such file"):
                longhaul.predict(**STEP, seq="64K")

    def test_warnings_of_the_program_are_passed_on(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "longhaul"
            script.write_text("#!/bin/sh\necho 'x: warning: y' >&2\necho '{}'\n")
            script.chmod(0o755)
            with mock.patch.dict(os.environ, LONGHAUL_PROGRAM=str(script)):
                with contextlib.redirect_stderr(io.StringIO()) as said:
                    self.assertEqual(longhaul.predict(), {})
        self.assertEqual(said.getvalue(), "x: warning: y\n")


if __name__ == "__main__":
    unittest.main()
