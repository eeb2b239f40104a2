"""Prints the environment variables that the installed packages read: a JSON object with the names for each image.

For the Agent runtime and the memory service, searches all source files. If a variable only sets a field of their settings
and no code uses the field, the variable is `parsed`. Otherwise the variable is `used`. The LiteLLM proxy and
OpenTelemetry read hundreds of variables. For these two, searches only for the names on the command line.
"""

import ast
import json
import re
import sys
from pathlib import Path

NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def files(folder: Path, without: str = "tests"):
    return [path for path in sorted(folder.rglob("*.py")) if without not in path.relative_to(folder).parts]


def settings(tree: ast.Module) -> dict:
    """Finds the fields of pydantic's settings classes. Returns the name of each field by its environment variable."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "BaseSettings" for base in node.bases):
            prefix = re.search(r"env_prefix=['\"]([^'\"]*)", ast.unparse(node))
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and field.target.id != "model_config":
                    name = (prefix.group(1) if prefix else "") + field.target.id.upper()
                    found[name] = field.target.id
    return found


def asked(tree: ast.Module) -> set:
    """Finds texts that may be names of variables: arguments of calls, defaults, assigned values and indices."""
    found = set()

    def take(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
            found.add(node.value)
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            if NAME.fullmatch("".join(parts).replace("{}", "X")):
                found.add("".join(parts))

    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for value in [*node.args, *(word.value for word in node.keywords)]:
                take(value)
        elif isinstance(node, ast.arguments):
            for value in [*node.defaults, *node.kw_defaults]:
                take(value)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            take(node.value)
        elif isinstance(node, ast.Subscript):
            take(node.slice)
    return found


def image(site: Path, packages: list, without: str = "tests") -> dict:
    fields, names, attributes = {}, set(), set()
    for package in packages:
        for path in files(site / package, without):
            tree = ast.parse(path.read_text())
            fields |= settings(tree)
            names |= asked(tree)
            attributes |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    reads = {name: "used" for name in names}
    for name, field in fields.items():
        if reads.get(name) != "used":
            reads[name] = "used" if field in attributes else "parsed"
    return dict(sorted(reads.items()))


def mentioned(site: Path, packages: list, names: list) -> dict:
    texts = [path.read_text(errors="replace") for package in packages for path in files(site / package)]
    return {name: "used" for name in sorted(names) if any(f'"{name}"' in text for text in texts)}


kaos, litellm, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
print(json.dumps({
    "agent": image(kaos, ["pais", "kaos_identity", "kaos_memory/pydantic_ai"]),
    "memory": image(kaos, ["kaos_memory"], without="pydantic_ai"),
    "litellm": mentioned(litellm, ["litellm"], names),
    "opentelemetry": mentioned(kaos, ["opentelemetry"], names),
}, indent=1))
