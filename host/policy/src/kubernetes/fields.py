#!/usr/bin/env python3
"""Writes fields.txt: the fields of every kind in a stable version of Kubernetes' own APIs, from the OpenAPI document of
a release.

    ./fields.py $(go env GOMODCACHE)/k8s.io/kubernetes@v1.36.1/api/openapi-spec/swagger.json
"""
import json, pathlib, re, sys

PREFIX = "#/definitions/"

here = pathlib.Path(__file__).parent
definitions = json.loads(pathlib.Path(sys.argv[1]).read_text())["definitions"]


def type_of(schema):
    """Returns the definition of a field's value, or of the items of its list. Returns None for plain values and for maps."""
    if "$ref" in schema:
        return schema["$ref"].removeprefix(PREFIX)
    return type_of(schema["items"]) if schema.get("type") == "array" else None


def inner(name):
    """Returns the fields of a definition, each with the definition of its value if the value has fields too."""
    for field, schema in sorted(definitions[name].get("properties", {}).items()):
        of = type_of(schema)
        # Policies write no status. Definitions without properties, such as times and amounts, have no fields.
        yield field, of if field != "status" and of and definitions[of].get("properties") else None


roots = {}
for name, schema in definitions.items():
    # A definition of stored objects has exactly one group, version and kind. Other definitions, such as DeleteOptions,
    # have several.
    match schema.get("x-kubernetes-group-version-kind", []):
        case [{"group": group, "version": version, "kind": kind}] if (
            re.fullmatch(r"v\d+", version) and "ObjectMeta" in schema["properties"].get("metadata", {}).get("$ref", "")
        ):
            roots[name] = f"{group}/{version}/{kind}".removeprefix("/")

reached, todo = set(), list(roots)
while todo:
    name = todo.pop()
    if name not in reached:
        reached.add(name)
        todo.extend(of for _, of in inner(name) if of)

# The last part of a definition's name identifies the definition, except if several groups use the same word.
short = {name: name.rpartition(".")[2] for name in reached}
words = list(short.values())
called = {name: roots.get(name) or (word if words.count(word) == 1 else ".".join(name.split(".")[-3:]))
          for name, word in short.items()}
lines = {called[name]: " ".join(field + (f":{called[of]}" if of else "") for field, of in inner(name)) for name in reached}
(here / "fields.txt").write_text("".join(f"{name} {lines[name]}\n" for name in sorted(lines)))
