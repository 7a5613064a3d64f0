#!/usr/bin/env python3
"""Draws comments, help strings and messages of the tree for cold readers.

A reader restates each drawn text from the file that it stands in; a text that cannot be restated
at the first reading fails. The same seed draws the same texts from the same tree.

    tests/scripts/prose_sample.py [--seed HEX] [--comments N] [--help-strings N] [--messages N]
    tests/scripts/prose_sample.py --all comments|help|messages    every text, in the order of the files
"""
import argparse
import random
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("*.c", "*.h", "*.cu", "*.cuh", "*.cpp", "*.hpp", "*.def")
TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
LICENCE = re.compile(r"copyright|SPDX|licen[cs]e", re.I)
CALL = re.compile(r"\b((?:diag_(?:error|warning|note)|verify_fail|cuda_record_failure|run_record_failure|command_note)"
                  r"|(?:[a-z_]*_)?(?:fail|failed|failure|note|reject|warn|warning)(?:_[a-z_]+)?)\s*\(")
STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
HELP_FILES = re.compile(r"^cli/|^bench/")


def sources(*patterns):
    """The tracked files that match, outside tests/data, with forward slashes."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--", *patterns],
                            check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if name and not name.startswith("tests/data/")]


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def comments():
    """Block comments of at least two lines that are no licences."""
    found = []
    for name in sources(*CODE):
        text = (ROOT / name).read_text()
        for token in TOKENS.finditer(text):
            body = token.group()
            if body.startswith("/*") and "\n" in body and not LICENCE.search(body):
                found.append((name, line_of(text, token.start()), body))
    return found


def literal_of(call):
    """The adjacent string literals that make the longest text in a call's arguments."""
    best = run = ""
    end = None
    for part in STRING.finditer(call):
        between = call[end:part.start()] if end is not None else ","
        joined = end is not None and re.fullmatch(r"(?:\s|PRI\w+|[A-Z_]+)*", between)
        run = run + re.sub(r"\s", "", between) + part.group(1) if joined else part.group(1)
        end = part.end()
        if len(run) > len(best):
            best = run
    return best


def messages():
    """The format strings of errors, warnings and notes, outside the tests, of at least three words."""
    found = []
    for name in sources(*CODE):
        if name.startswith("tests/"):
            continue
        text = (ROOT / name).read_text()
        bare = TOKENS.sub(lambda t: t.group() if t.group()[0] == '"' else " " * 0
                          + re.sub(r"[^\n]", " ", t.group()), text)
        for call in CALL.finditer(bare):
            depth, at, quoted = 1, call.end(), False
            while depth and at < len(bare):
                letter = bare[at]
                if letter == "\\" and quoted:
                    at += 1
                elif letter == '"':
                    quoted = not quoted
                elif not quoted:
                    depth += {"(": 1, ")": -1}.get(letter, 0)
                at += 1
            said = literal_of(bare[call.end():at])
            if len(re.findall(r"[A-Za-z]+", said)) >= 3:
                found.append((name, line_of(bare, call.start()), said))
    return found


def help_strings():
    """The help of the rows {.name = "...", ..., .help = "..."} of the tables of options."""
    found = []
    row = re.compile(r'\.name = "([a-z0-9_-]+)",(?:(?!\.name = ).)*?'
                     r'\.help =\s*((?:"(?:\\.|[^"\\\n])*"\s*)+)', re.S)
    for name in sources("*.c", "*.h", "*.def"):
        if not HELP_FILES.search(name):
            continue
        text = (ROOT / name).read_text()
        for match in row.finditer(text):
            said = "".join(STRING.findall(match.group(2)))
            found.append((name, line_of(text, match.start()), f"--{match.group(1)}: {said}"))
    return found


KINDS = {"comments": comments, "help": help_strings, "messages": messages}


def show(kind, rows):
    for number, (name, line, said) in enumerate(rows, 1):
        print(f"[{kind} {number}] {name}:{line}\n{said}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", default="487aea5b", help="hexadecimal seed of the draw")
    parser.add_argument("--comments", type=int, default=60, help="number of comments to draw")
    parser.add_argument("--help-strings", type=int, default=40, help="number of help strings to draw")
    parser.add_argument("--messages", type=int, default=40, help="number of messages to draw")
    parser.add_argument("--all", choices=KINDS, help="print every text of one kind, undrawn")
    given = parser.parse_args()
    if given.all:
        show(given.all, KINDS[given.all]())
        return
    for kind, count in zip(KINDS, (given.comments, given.help_strings, given.messages)):
        every = sorted(KINDS[kind]())
        if len(every) < count:
            sys.exit(f"{kind}: only {len(every)} texts found, {count} wanted")
        draw = random.Random(f"{kind} {int(given.seed, 16):x}")
        show(kind, draw.sample(every, count))


if __name__ == "__main__":
    main()
