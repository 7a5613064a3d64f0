"""Chakra's execution traces (mlcommons/chakra, schema et_def.proto) of recorded steps, and recorded steps of such traces.

    python -m longhaul.chakra step.json.gz -o step.et           # what ASTRA-sim and others read
    python -m longhaul.chakra trace.et --world-size 64 -o step.json.gz

A Chakra trace holds work, collectives and dependencies, but no storages with their lives, so a step that was made of one has
no memory to predict. It needs no PyTorch."""
import argparse
import gzip
import json
import os
import pathlib
import struct
import sys
import zlib

import longhaul

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7

# Chakra's CollectiveCommType, and the words by which an operator of PyTorch is recognised; the first that fits holds.
COLLECTIVES = [
    (7, "reduce_scatter", "_reduce_scatter_base"), (0, "allreduce", "all_reduce"), (2, "allgather", "all_gather", "_allgather_base"),
    (6, "alltoall", "all_to_all"), (5, "broadcast"), (9, "barrier"), (1, "reduce_"), (3, "gather_"), (4, "scatter_"),
]
OPERATORS = {0: "allreduce_", 1: "reduce_", 2: "_allgather_base_", 3: "gather_", 4: "scatter_", 5: "broadcast_",
             6: "alltoall_base_", 7: "_reduce_scatter_base_", 8: "_reduce_scatter_base_", 9: "barrier"}


# ---- Protocol Buffers

def _varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, data):
    data = data.encode() if isinstance(data, str) else data
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(data):
    """The fields of a message: their numbers and values, ints or bytes."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _read_varint(data, at)
        else:
            if wire == 2:
                size, at = _read_varint(data, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")
            if at + size > len(data):
                raise ValueError("a message is cut off")
            value, at = data[at:at + size], at + size
        yield key >> 3, value


# ---- a recorded step as a trace

class _Order:
    """What a node has to wait for: the work before it on its stream, and what events and the host have made it wait for."""

    def __init__(self):
        self.last, self.pending, self.marks, self.host, self.queues = {}, {}, {}, (), {}
        self.seen = {}  # by stream, the waits of the host that its last node knew
        self.made = {}  # by storage, the functional collective that fills it

    def of(self, stream):
        waits = set(self.last.get(stream, ())) | self.pending.pop(stream, set())
        if self.seen.get(stream) is not self.host:
            self.seen[stream] = self.host
            waits |= set(self.host)
        return waits

    def wait(self, stream, nodes):
        self.pending.setdefault(stream, set()).update(nodes)

    def sync(self, event):
        what, stream = event["op"], event["s"]
        if what == "record":
            self.marks[event["e"]] = set(self.last.get(stream, ())) | self.pending.get(stream, set())
        elif what == "wait":
            self.wait(stream, self.marks.get(event["e"], ()))
        elif what == "work_wait" and event.get("on") is not None:
            self.wait(stream, [event["on"] + 1])
        elif event.get("e"):
            self.host = tuple(set(self.host) | self.marks.get(event["e"], set()))
        else:
            self.host = tuple(set(self.host) | set(self.last.get(stream, ())))


def _collective(name):
    return next((kind for kind, *words in COLLECTIVES if any(word in name for word in words)), None)


def _attribute(name, value):
    if isinstance(value, bool):
        inner = _number(27, int(value))
    else:
        inner = _bytes(29, value) if isinstance(value, str) else _number(9, value)
    return _bytes(10, _bytes(1, name) + inner)


def export(step):
    """The bytes of the Chakra trace of a recorded step (the object of docs/schema/step.json)."""
    out = [_bytes(1, "0.0.4")]
    order, writer = _Order(), {}
    for index, event in enumerate(step["events"]):
        if "k" not in event:
            order.sync(event)
            continue
        stream, name, number = event["s"], event["op"], index + 1
        if name.endswith("wait_tensor"):
            order.wait(stream, [order.made[ref[0]] for ref in event["in"] if ref[0] in order.made])
            continue
        control = order.of(stream)
        if event.get("async") or name.startswith("_c10d_functional"):
            order.last[stream] = control  # the stream goes on; collectives of a group follow each other
            control = control | order.queues.get(event.get("g"), set())
            order.queues[event.get("g")] = {number}
            order.made.update((ref[0], number) for ref in event["out"])
        else:
            order.last[stream] = {number}
        data = {writer[ref[0]] for ref in event["in"] if ref[0] in writer}
        writer.update((ref[0], number) for ref in event["out"])
        attributes = [("is_cpu_op", False), ("stream", stream), ("tensor_size", event["rd"] + event["wr"]),
                      ("num_ops", event.get("fl", 0)), ("module", step["modules"][event["m"]])]
        kind = COMPUTE
        if event["k"] == "comm":
            short = name.split(".")[-1]
            kind = SEND if short == "send" else RECEIVE if short == "recv_" else COLLECTIVE
            attributes += [("pg_name", event.get("g", "")), ("comm_size", event["full"])]
            if kind == COLLECTIVE:
                found = _collective(name)
                if found is None:
                    raise longhaul.Error(f"event {index}: Chakra has no collective for {name}")
                attributes.append(("comm_type", found))
            else:
                ends = (step["rank"], event["peer"])
                attributes += zip(("comm_src", "comm_dst"), ends if kind == SEND else ends[::-1])
                attributes.append(("comm_tag", 0))
        node = _number(1, number) + _bytes(2, name) + _number(3, kind)
        node += b"".join(_number(4, i) for i in sorted(control - data)) + b"".join(_number(5, i) for i in sorted(data))
        out.append(node + b"".join(_attribute(*pair) for pair in attributes))
    return b"".join(_varint(len(message)) + message for message in out)


# ---- a trace as a recorded step

def _value(fields):
    for field, value in fields:
        if field in (7, 9, 11, 13):
            return value - (1 << 64) if value >> 63 else value
        if field in (15, 17):  # zigzag
            return value >> 1 ^ -(value & 1)
        if field == 27:
            return bool(value)
        if field == 29:
            return value.decode("utf-8", "replace")
        if field == 3:
            return struct.unpack("<d", value)[0]
        if field == 5:
            return struct.unpack("<f", value)[0]
    return None


def _packed(value):
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = _read_varint(value, at)
        numbers.append(number)
    return numbers


def _nodes(data):
    at, first = 0, True
    while at < len(data):
        size, at = _read_varint(data, at)
        if at + size > len(data):
            raise ValueError("a message is cut off")
        message, at = data[at:at + size], at + size
        if first:  # the metadata
            first = False
            continue
        node = {"id": 0, "name": "", "type": 0, "deps": [], "attr": {}}
        for field, value in _fields(message):
            if field in (1, 3):
                node["id" if field == 1 else "type"] = value
            elif field == 2:
                node["name"] = value.decode("utf-8", "replace")
            elif field in (4, 5):
                node["deps"] += _packed(value)
            elif field == 10:
                pairs = list(_fields(value))
                node["attr"][dict(pairs).get(1, b"").decode()] = _value([pair for pair in pairs if pair[0] > 2])
        yield node


def _sorted(nodes):
    """Nodes with each after what it depends on, and otherwise by their ids."""
    by_id = {node["id"]: node for node in nodes}
    if len(by_id) != len(nodes):
        raise longhaul.Error("two nodes have one id")
    done, out = {}, []
    for root in sorted(by_id):
        stack = [(root, False)]
        while stack:
            number, left = stack.pop()
            if left:
                done[number] = True
                out.append(by_id[number])
                continue
            if number in done:
                if not done[number]:
                    raise longhaul.Error(f"node {number} depends on itself")
                continue
            done[number] = False
            stack.append((number, True))
            for before in by_id[number]["deps"]:
                if before not in by_id:
                    raise longhaul.Error(f"node {number} depends on {before}, which is not in the trace")
                if not done.get(before):
                    stack.append((before, False))
    return out


def convert(data, world, rank=0):
    """The recorded step of a Chakra trace of one rank, of a job of `world` ranks."""
    try:
        nodes = list(_nodes(data))
    except (ValueError, UnicodeDecodeError, struct.error) as error:
        raise longhaul.Error(f"this is no Chakra trace: {error}") from error
    if not nodes:
        raise longhaul.Error("this Chakra trace has no node")
    events, groups, reach, streams = [], {}, {}, {}
    notes = ["converted from a Chakra trace, which holds no storages: memory is not predicted"]
    after = {}    # by stream, the event of each other stream that it has waited for
    recorded = {} # by event, the number of the record that follows it
    for node in _sorted(nodes):
        attributes = node["attr"]
        waits = set().union(*(reach[number] for number in node["deps"]))
        work = node["type"] in (COMPUTE, SEND, RECEIVE, COLLECTIVE)
        if not work or attributes.get("is_cpu_op"):
            reach[node["id"]] = waits  # what depends on it depends on what it has waited for
            continue
        communicates = node["type"] != COMPUTE
        group = str(attributes.get("pg_name") or "world") if communicates else ""
        own = attributes.get("stream")
        key = ("stream", own) if isinstance(own, int) else ("group", group) if communicates else ("compute", 0)
        stream = streams.setdefault(key, len(streams))
        for index in sorted(waits):
            other = events[index]["s"]
            if other == stream or after.setdefault(stream, {}).get(other, -1) >= index:
                continue
            after[stream][other] = index
            events.append({"op": "wait", "s": stream, "e": recorded[index]})
        size = max(int(attributes.get("tensor_size") or 0), 0)
        event = {"op": node["name"] or "node", "k": "opaque", "ph": "f", "m": 0, "n": -1, "s": stream, "in": [], "out": [],
                 "rd": size - size // 2, "wr": size // 2}
        if communicates:
            groups.setdefault(group, {"ranks": list(range(world))})
            size = max(int(attributes.get("comm_size") or 0), 0)
            if node["type"] == COLLECTIVE:
                kind = attributes.get("comm_type")
                kind = kind if kind in OPERATORS else _collective(node["name"].lower())
                if kind is None:
                    raise longhaul.Error(f"node {node['id']} ({node['name']}) does not say which collective it is: comm_type is "
                                         f"{attributes.get('comm_type')}")
                event["op"] = "c10d." + OPERATORS[kind]
            else:
                event["op"] = "c10d.send" if node["type"] == SEND else "c10d.recv_"
                peer = attributes.get("comm_dst" if node["type"] == SEND else "comm_src")
                if not isinstance(peer, int) or not 0 <= peer < world:
                    raise longhaul.Error(f"node {node['id']} ({node['name']}) communicates with rank {peer} of {world}")
                event["peer"] = peer
            event.update(k="comm", g=group, full=size, rd=size, wr=size, **{"async": False})
        elif attributes.get("num_ops"):
            event["fl"] = int(attributes["num_ops"])
        reach[node["id"]] = {len(events)}
        recorded[len(events)] = len(events) + 1
        events += [event, {"op": "record", "s": stream, "e": len(events) + 1}]
    if groups:
        notes.append("the trace does not say which ranks form a group: each is taken to be all ranks")
    if not any(key[0] == "stream" for key in streams):
        notes.append("the trace names no streams: computation is one stream, and each group is one")
    return {"format": "longhaul-step", "version": 1, "torch": "none (Chakra)", "world": world, "rank": rank, "groups": groups,
            "modules": [""], "peak": 0, "guessed": {}, "notes": notes, "storages": [], "events": events}


# ---- the command

def _read(path):
    try:
        data = pathlib.Path(path).read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except OSError as error:
        raise longhaul.Error(f"cannot read {path}: {error.strerror}") from error
    except (EOFError, zlib.error) as error:
        raise longhaul.Error(f"{path} is cut off: {error}") from error


def write_file(path, data):
    """Writes a file whole or not at all; a name that ends in .gz is compressed."""
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise longhaul.Error(f"cannot write {path}: {error.strerror}") from error


def main():
    parser = argparse.ArgumentParser(prog="python -m longhaul.chakra",
                                     description="Writes the Chakra trace of a recorded step, or the step of a Chakra trace.")
    parser.add_argument("file", metavar="FILE", help="a recorded step (step.json.gz), or the Chakra trace of one rank")
    parser.add_argument("-o", dest="path", metavar="FILE", required=True, help="what is written")
    parser.add_argument("--world-size", type=int, metavar="N", help="of a trace: the ranks of the job")
    parser.add_argument("--rank", type=int, default=0, metavar="N", help="of a trace: its rank (default: %(default)s)")
    options = parser.parse_args()
    try:
        data = _read(options.file)
        if data.lstrip()[:1] == b"{":
            step = json.loads(data)
            if step.get("format") != "longhaul-step" or step.get("version") != 1:
                raise longhaul.Error(f"{options.file} is no recorded step of version 1")
            write_file(options.path, export(step))
        else:
            if options.world_size is None or options.world_size < 1:
                raise longhaul.Error("a Chakra trace does not say how many ranks there are: give --world-size N")
            if not 0 <= options.rank < options.world_size:
                raise longhaul.Error(f"rank {options.rank} is not below the world size {options.world_size}")
            step = convert(data, options.world_size, options.rank)
            write_file(options.path, json.dumps(step, separators=(",", ":")).encode())
    except (longhaul.Error, ValueError, KeyError) as error:
        what = str(error) if isinstance(error, longhaul.Error) else f"{options.file}: {type(error).__name__}: {error}"
        print(f"longhaul.chakra: error: {what}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
