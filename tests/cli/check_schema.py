#!/usr/bin/env python3
"""Validates answers of longhaul against the schemas in docs/schema.

    check_schema.py FOLDER < LISTS

Each line of LISTS is a schema and files that follow it:

    NAME FILE.json[.gz] [...]     whole answers
    NAME#DEF FILE.csv [...]       every row of a CSV file

The names in the schemas themselves are checked first: each is snake_case, and a figure of a sweep's CSV row has the
definition that predict's JSON refers to by the same name. Prints each fault, and ends with exit code 1 if there is one."""
import csv
import gzip
import json
import pathlib
import re
import sys

import jsonschema

faults = 0


def fault(text):
    global faults
    faults += 1
    print(text)


def load(folder, name):
    """A schema that refers to nothing outside of itself."""
    def read(name):
        return json.loads(re.sub(r"(common|choices|rows)\.json#", "#", (folder / f"{name}.json").read_text()))

    schema = read(name)
    schema["$defs"] = {**read("common")["$defs"], **read("choices")["$defs"], **read("rows")["$defs"],
                       **schema.get("$defs", {})}
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def properties(schema):
    """All properties of a schema and of what stands in it."""
    if isinstance(schema, list):
        for item in schema:
            yield from properties(item)
    elif isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for value in schema.values():
            yield from properties(value)


def columns(schema, defs):
    """The properties of a schema, with those of schemas that it includes."""
    found = dict(schema["properties"])
    for part in schema.get("allOf", []):
        found.update(defs[part["$ref"].rpartition("/")[2]]["properties"])
    return found


def typed(name, cell, schema, defs):
    """A cell of CSV as the value that its property has."""
    of = columns(schema, defs).get(name, {})
    of = defs[of["$ref"].rpartition("/")[2]] if "$ref" in of else of
    types = of.get("type", [])
    if cell == "" and "null" in types:
        return None
    if types == "boolean":
        return {"true": True, "false": False}.get(cell, cell)
    if "number" in types or "integer" in types or types in ("number", "integer"):
        try:
            value = float(cell)
            return int(value) if value == int(value) else value
        except ValueError:
            return cell
    return cell


def check_names(folder):
    common = json.loads((folder / "common.json").read_text())["$defs"]
    for path in sorted(folder.glob("*.json")):
        schema = load(folder, path.stem)
        for name, _ in properties(schema):
            if not re.fullmatch("[a-z][a-z0-9_]*", name):
                fault(f"{path.name}: '{name}' is not snake_case")
    predict = list(properties(json.loads((folder / "predict.json").read_text())))
    predict += properties(common)
    predict += properties(json.loads((folder / "rows.json").read_text()))
    row = json.loads((folder / "sweep.json").read_text())["$defs"]["row"]["properties"]
    for name, of in row.items():
        if name in ("status", "reason"):
            continue
        if of != {"$ref": f"common.json#/$defs/{name}"} or (name, of) not in predict:
            fault(f"sweep.json: the column {name} is not what {name} of predict.json is")


def check_files(folder, name, paths):
    name, _, part = name.partition("#")
    schema = load(folder, name)
    defs = schema["$defs"]
    if part:
        schema = {**defs[part], "$defs": defs}
    validator = jsonschema.Draft202012Validator(schema)
    for path in paths:
        count = 0
        opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path, newline="")
        with opened as file:
            if part:
                rows = csv.DictReader(line for line in file if not line.startswith("#"))
                values = [{k: typed(k, v, schema, defs) for k, v in row.items()
                           if v != "" or k in schema["required"]} for row in rows]
                lacking = set(columns(schema, defs)) - set(rows.fieldnames)
                if lacking:
                    fault(f"{path}: no column {', '.join(sorted(lacking))}")
            else:
                values = [json.load(file)]
        for value in values:
            for error in validator.iter_errors(value):
                fault(f"{path}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
            count += 1
        if count == 0:
            fault(f"{path}: nothing to validate")


def main():
    folder = pathlib.Path(sys.argv[1])
    check_names(folder)
    print("names: looked at")
    for line in sys.stdin:
        name, *paths = line.split()
        check_files(folder, name, paths)
        print(f"{name}: looked at")


main()
sys.exit(faults > 0)
