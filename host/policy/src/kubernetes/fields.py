#!/usr/bin/env python3
"""Writes fields.txt: the fields of the kinds that the default policies make, from the schemas that host/cluster has recorded.

    ./fields.py
"""
import json, pathlib

KINDS = ["Deployment", "Service", "ConfigMap", "Secret", "ServiceAccount", "Pod"]
PREFIX = "#/components/schemas/"

here = pathlib.Path(__file__).parent
definitions = json.loads((here / "../../../cluster/schemas/definitions.json").read_text())


def type_of(schema):
    """Returns the definition of a field's value, or of the items of its list. Returns None for plain values and for maps."""
    if "$ref" in schema:
        return schema["$ref"].removeprefix(PREFIX)
    return type_of(schema["items"]) if schema.get("type") == "array" else None


lines = {}
todo = [name for name, schema in definitions.items()
        if any(kind["kind"] in KINDS for kind in schema.get("x-kubernetes-group-version-kind", []))]
while todo:
    name = todo.pop()
    short = name.rpartition(".")[2]
    if short in lines:
        continue
    fields = []
    for field, schema in sorted(definitions[name]["properties"].items()):
        of = type_of(schema)
        # Policies write no status. Definitions without properties, such as times and amounts, have no fields.
        if field != "status" and of and definitions[of].get("properties"):
            todo.append(of)
            field += ":" + of.rpartition(".")[2]
        fields.append(field)
    lines[short] = " ".join([short, *fields])
(here / "fields.txt").write_text("\n".join(lines[name] for name in sorted(lines)) + "\n")
