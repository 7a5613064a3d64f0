#!/usr/bin/env python3
"""Checks files of JSON that commands wrote for a path that is not UTF-8.

    check_utf8.py MARK FILE [...]

Each file must be UTF-8 and JSON (FILE.jsonl: each of its lines), and MARK, in which U+FFFD stands for the byte that is
not UTF-8, must stand in one of its strings, so that the path was printed at all."""
import json
import sys


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


mark, *paths = sys.argv[1:]
for path in paths:
    name = path.encode("utf-8", "replace").decode()
    try:
        text = open(path, "rb").read().decode("utf-8")
        values = [json.loads(line) for line in (text.splitlines() if path.endswith(".jsonl") else [text])]
    except ValueError as error:
        print(f"{name}: {error}")
        continue
    if not any(mark in string for string in strings(values)):
        print(f"{name}: no string has {mark!a}")
