"""The registry of runtimes, which defines the valid names for `spec.runtime`.

A cluster's registry is a ConfigMap in the operator's namespace. Without this ConfigMap, the runtimes of the settings
apply. The policy reads only the chosen entry, so a mistake in another entry has no effect.
"""

from dataclasses import dataclass, field

import kaos
import yaml

# The id of the need for the registry.
ID = "registry"


class Malformed(Exception):
    """The registry is not usable. The text gives the reason."""


@dataclass
class Runtime:
    """How to start servers of a runtime."""

    image: str = ""
    command: list | None = None
    args: list | None = None
    params_env_var: str = ""
    required_env: list = field(default_factory=list)
    tools: list = field(default_factory=list)

    @staticmethod
    def of(name, entry):
        """Reads the entry `name` of a registry."""
        path = f"runtimes.{name}"
        entry = {} if entry is None else entry
        if not isinstance(entry, dict):
            raise Malformed(_mismatch(path, "an object", entry))
        variable = _word(entry, "paramsEnvVar", path)
        if "=" in variable or "\0" in variable:
            raise Malformed(f"{path}.paramsEnvVar: a variable's name must not contain '='")
        return Runtime(
            _word(entry, "image", path),
            _words(entry, "command", path),
            _words(entry, "args", path),
            variable,
            _words(entry, "requiredEnv", path) or [],
            _words(entry, "tools", path) or [],
        )


def _word(entry, name, path):
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise Malformed(_mismatch(f"{path}.{name}", "a string", value))
    return value or ""


def _words(entry, name, path):
    values = entry.get(name)
    if values is None:
        return None
    if not isinstance(values, list):
        raise Malformed(_mismatch(f"{path}.{name}", "a list", values))
    for at, value in enumerate(values):
        if not isinstance(value, str):
            raise Malformed(_mismatch(f"{path}.{name}[{at}]", "a string", value))
    return values


def _mismatch(path, wanted, found):
    if isinstance(found, str):
        return f'{path}: must be {wanted}, not string "{kaos.shown(found, 200)}"'
    return f"{path}: must be {wanted}, not {'a list' if isinstance(found, list) else 'an object'}"


def reference(settings, subject):
    """Returns the reference to the registry's ConfigMap."""
    return kaos.Reference("v1", "ConfigMap", subject.cluster.operator_namespace, settings["registry"]["configMap"])


def unusable(settings, subject, reason):
    """Refuses an object until the registry changes."""
    message = f"failed to get runtime registry: {reason}"
    return kaos.waiting(kaos.Blocker(reference(settings, subject), "RegistryUnusable", message))


def malformed(settings, subject, reason):
    """Refuses an object until the text of the registry changes."""
    key, config_map = settings["registry"]["key"], settings["registry"]["configMap"]
    return unusable(settings, subject, f"{key} in ConfigMap {config_map} is not usable: {reason}")


def entries(settings, subject):
    """Returns the entries of the registry by name."""
    try:
        found = kaos.one(subject, ID)
    except kaos.Forbidden as forbidden:
        raise unusable(settings, subject, forbidden) from None
    if found is None:
        return settings["runtimes"]
    key, config_map = settings["registry"]["key"], settings["registry"]["configMap"]
    text = (found.get("data") or {}).get(key)
    if not isinstance(text, str):
        raise unusable(settings, subject, f"ConfigMap {config_map} has no key {key}")
    try:
        return _parsed(text)
    except Malformed as reason:
        raise malformed(settings, subject, reason) from None


def _parsed(text):
    most, length = 150_000, len(text.encode())
    if length > most:
        raise Malformed(f"it has {length} bytes, but the limit is {most}: remove unused entries")
    try:
        fields = _texts(yaml.compose(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise Malformed(f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}") from None
    fields = {} if fields is None else fields
    if not isinstance(fields, dict):
        raise Malformed("it must be a mapping with the key runtimes")
    # Without the key `runtimes`, the entries are at the top level.
    runtimes = fields.get("runtimes", fields)
    if runtimes is not None and not isinstance(runtimes, dict):
        raise Malformed("runtimes must be a mapping from names to entries")
    return runtimes or {}


def _texts(node):
    """Returns a YAML value in which every scalar is a text, even 8000."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _texts(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_texts(item) for item in node.value]
    return None if node is None or node.tag == "tag:yaml.org,2002:null" else node.value
