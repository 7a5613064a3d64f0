#!/usr/bin/env python3
"""Checks longhaul.chakra, which needs no PyTorch: check_chakra.py SOURCE."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from longhaul import Error, chakra

SOURCE = pathlib.Path(sys.argv.pop(1))
RECORDINGS = sorted((SOURCE / "tests/data/recordings").glob("*.json.gz"))


def load(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def work(step):
    return [event for event in step["events"] if "k" in event and not event["op"].endswith("wait_tensor")]


def node(number, kind=chakra.COMPUTE, deps=(), name="node", **attributes):
    message = chakra._number(1, number) + chakra._bytes(2, name) + chakra._number(3, kind)
    message += b"".join(chakra._number(5, before) for before in deps)
    return message + b"".join(chakra._attribute(*pair) for pair in attributes.items())


def trace(*nodes):
    return b"".join(chakra._varint(len(message)) + message for message in (chakra._bytes(1, "0.0.4"), *nodes))


def event(op, stream=0, kind="opaque", **more):
    return {"op": op, "k": kind, "ph": "f", "m": 0, "n": -1, "s": stream, "in": [], "out": [], "rd": 8, "wr": 8, **more}


def step_of(*events):
    return {"rank": 1, "modules": [""], "events": list(events)}


def dependencies(data):
    return {number["name"]: sorted(number["deps"]) for number in chakra._nodes(data)}


class Chakra(unittest.TestCase):
    def test_there_are_recordings(self):
        self.assertGreater(len(RECORDINGS), 2)

    def test_nodes_are_the_work_and_depend_on_earlier_ones(self):
        for path in RECORDINGS:
            with self.subTest(path.name):
                step = load(path)
                nodes = list(chakra._nodes(chakra.export(step)))
                self.assertEqual([number["name"] for number in nodes], [event["op"] for event in work(step)])
                ids = {number["id"] for number in nodes}
                self.assertTrue(all(set(number["deps"]) <= ids and max(number["deps"], default=0) < number["id"]
                                    for number in nodes))
                self.assertEqual(sum(number["attr"].get("num_ops", 0) for number in nodes),
                                 sum(event.get("fl", 0) for event in work(step)))
                self.assertEqual([number["attr"]["comm_size"] for number in nodes if number["type"] != chakra.COMPUTE],
                                 [event["full"] for event in work(step) if event["k"] == "comm"])

    def test_streams_records_and_waits_become_dependencies(self):
        data = chakra.export(step_of(
            event("a"), {"op": "record", "s": 0, "e": 7}, event("b"), {"op": "wait", "s": 5, "e": 7}, event("c", 5),
            event("d", 5), {"op": "record", "s": 5, "e": 7}, {"op": "wait", "s": 0, "e": 7}, event("e")))
        self.assertEqual(dependencies(data), {"a": [], "b": [1], "c": [1], "d": [5], "e": [3, 6]})

    def test_collectives_beside_the_stream_are_joined_where_they_are_waited_for(self):
        def reduce(op, **more):
            return event(op, kind="comm", g="0", full=64, **more)
        data = chakra.export(step_of(
            event("a"), reduce("c10d.allreduce_", **{"async": True}), event("b"), {"op": "work_wait", "s": 0, "on": 1},
            event("c"), reduce("_c10d_functional.all_reduce", out=[[4, [8], "int64"]]), event("d"),
            reduce("_c10d_functional.wait_tensor", **{"in": [[4, [8], "int64"]]}), event("e")))
        self.assertEqual(dependencies(data), {"a": [], "c10d.allreduce_": [1], "b": [1], "c": [2, 3],
                                              "_c10d_functional.all_reduce": [2, 5], "d": [5], "e": [6, 7]})

    def test_the_host_holds_back_what_it_issues_later(self):
        data = chakra.export(step_of(event("a"), {"op": "item", "s": 0}, event("b", 3)))
        self.assertEqual(dependencies(data), {"a": [], "b": [1]})

    def test_there_and_back_again(self):
        for path in RECORDINGS:
            with self.subTest(path.name):
                step = load(path)
                once = chakra.export(step)
                back = chakra.convert(once, step["world"], step["rank"])
                self.assertEqual([event.get("fl", 0) for event in work(back)], [event.get("fl", 0) for event in work(step)])
                self.assertEqual([event["rd"] + event["wr"] for event in work(back) if event["k"] != "comm"],
                                 [event["rd"] + event["wr"] for event in work(step) if event["k"] != "comm"])
                collectives = [event for event in work(back) if event["k"] == "comm"]
                self.assertEqual([event["full"] for event in collectives],
                                 [event["full"] for event in work(step) if event["k"] == "comm"])
                self.assertTrue(all(event["g"] in back["groups"] for event in collectives))

    def test_dependencies_of_a_trace_become_order_and_waits(self):
        data = trace(node(1, name="a"), node(2, name="host", deps=[1], is_cpu_op=True), node(9, name="b", deps=[2]),
                     node(4, chakra.COLLECTIVE, [1], "nccl:all_gather", comm_size=96, pg_name="7", comm_type=2),
                     node(5, chakra.SEND, [4], comm_size=32, comm_dst=3), node(12, name="c", deps=[4, 9]))
        step = chakra.convert(data, 4)
        self.assertEqual([event["op"] for event in step["events"] if event["op"] != "record"],
                         ["a", "wait", "c10d._allgather_base_", "wait", "c10d.send", "b", "wait", "c"])
        streams = {event["op"]: event["s"] for event in work(step)}
        self.assertEqual(streams, {"a": 0, "c10d._allgather_base_": 1, "c10d.send": 2, "b": 0, "c": 0})
        gather = next(event for event in work(step) if event["op"].endswith("_allgather_base_"))
        self.assertEqual((gather["full"], gather["g"], step["groups"]["7"]["ranks"]), (96, "7", [0, 1, 2, 3]))
        self.assertEqual(next(event for event in work(step) if event["op"] == "c10d.send")["peer"], 3)

    def test_bad_traces(self):
        collective = chakra.COLLECTIVE
        for data, want in (
            (b"", "this Chakra trace has no node"),
            (trace(node(1))[:-3], "this is no Chakra trace: a message is cut off"),
            (b"\xff" * 12, "this is no Chakra trace: a number is cut off"),
            (trace(node(1, deps=[2]), node(2, deps=[1])), "depends on itself"),
            (trace(node(1, deps=[8])), "node 1 depends on 8, which is not in the trace"),
            (trace(node(1), node(1)), "two nodes have one id"),
            (trace(node(1, collective, name="x", comm_type=44)), r"node 1 \(x\) does not say which collective it is"),
            (trace(node(1, chakra.SEND, comm_dst=9)), "communicates with rank 9 of 4"),
        ):
            with self.subTest(want), self.assertRaisesRegex(Error, want):
                chakra.convert(data, 4)

    def test_the_command(self):
        def run(*words):
            done = subprocess.run([sys.executable, "-m", "longhaul.chakra", *words], encoding="utf-8", cwd=folder,
                                  stderr=subprocess.PIPE)
            return done.returncode, done.stderr

        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(str(RECORDINGS[0]), "-o", "step.et"), (0, ""))
            self.assertEqual(run("step.et", "--world-size", "4", "-o", "step.json.gz"), (0, ""))
            self.assertEqual(load(pathlib.Path(folder) / "step.json.gz")["world"], 4)
            code, error = run("step.et", "-o", "x.json")
            self.assertEqual((code, error), (2, "longhaul.chakra: error: a Chakra trace does not say how many ranks there are: give "
                                                "--world-size N\n"))
            code, error = run("step.et", "--world-size", "4", "--rank", "4", "-o", "x.json")
            self.assertEqual((code, error), (2, "longhaul.chakra: error: rank 4 is not below the world size 4\n"))
            code, error = run("no.et", "-o", "x.json")
            self.assertEqual((code, error), (2, "longhaul.chakra: error: cannot read no.et: No such file or directory\n"))
            (pathlib.Path(folder) / "other.json").write_text('{"format": "other"}')
            code, error = run("other.json", "-o", "x.json")
            self.assertEqual((code, error), (2, "longhaul.chakra: error: other.json is no recorded step of version 1\n"))
            self.assertEqual(sorted(os.listdir(folder)), ["other.json", "step.et", "step.json.gz"])


if __name__ == "__main__":
    unittest.main()
