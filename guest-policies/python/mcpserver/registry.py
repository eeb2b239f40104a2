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
        path = kaos.member("runtimes", name)
        entry = {} if entry is None else entry
        if not isinstance(entry, dict):
            raise Malformed(_mismatch(path, "an object", entry))
        runtime = Runtime(
            _word(entry, "image", path),
            _words(entry, "command", path),
            _words(entry, "args", path),
            _word(entry, "paramsEnvVar", path),
            _words(entry, "requiredEnv", path) or [],
            _words(entry, "tools", path) or [],
        )
        if "=" in runtime.params_env_var or "\0" in runtime.params_env_var:
            raise Malformed(f"{path}.paramsEnvVar: a variable's name must not contain '='")
        return runtime


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
    names = {list: "a list", type(None): "null"}
    return f"{path}: must be {wanted}, not {names.get(type(found), 'an object')}"


def reference(settings, subject):
    """Returns the reference to the registry's ConfigMap."""
    return kaos.Reference("v1", "ConfigMap", subject.cluster.operator_namespace, settings["registry"]["configMap"])


def unusable(settings, subject, reason):
    """Returns the refusal of an object until the registry changes."""
    message = f"failed to get runtime registry: {reason}"
    return kaos.waiting(kaos.Blocker(reference(settings, subject), "RegistryUnusable", message))


def malformed(settings, subject, reason):
    """Returns the refusal of an object until the text of the registry changes."""
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
        fields = _texts(yaml.compose(text, Loader=yaml.SafeLoader), {})
    except yaml.MarkedYAMLError as error:
        raise _at(error.problem_mark, error.problem) from None
    except yaml.YAMLError as error:
        raise Malformed(" ".join(str(error).split())) from None
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    fields = {} if fields is None else fields
    if not isinstance(fields, dict):
        raise Malformed("it must be a mapping with the key runtimes")
    # Without the key `runtimes`, the entries are at the top level.
    runtimes = fields.get("runtimes", fields)
    if runtimes is not None and not isinstance(runtimes, dict):
        raise Malformed("runtimes must be a mapping from names to entries")
    return runtimes or {}


def _at(mark, problem):
    return Malformed(f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem)


# A placeholder for the value of a node while `_texts` reads the node, to detect a node that contains itself.
_INCOMPLETE = object()


def _texts(node, known):
    """Returns a YAML value in which every scalar is a text, even 8000. `known` has the values by node: several aliases
    can share a node, and this function reads each node once."""
    if id(node) not in known:
        known[id(node)] = _INCOMPLETE
        if isinstance(node, yaml.MappingNode):
            known[id(node)] = _members(node, known)
        elif isinstance(node, yaml.SequenceNode):
            known[id(node)] = [_texts(item, known) for item in node.value]
        else:
            known[id(node)] = None if node is None or node.tag == "tag:yaml.org,2002:null" else node.value
    if known[id(node)] is _INCOMPLETE:
        raise _at(node.start_mark, "this alias has no anchor before it")
    return known[id(node)]


def _members(node, known):
    """Returns the members of a mapping. Members of the merge key `<<` come first, because the mapping's own members
    replace them."""
    own, merged = {}, {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _at(key.start_mark, "a key must be plain text")
        if key.tag == "tag:yaml.org,2002:merge":
            bases = _texts(value, known)
            for base in bases if isinstance(bases, list) else [bases]:
                if not isinstance(base, dict):
                    raise _at(value.start_mark, "<< takes an object, or a list of objects")
                merged = base | merged
        elif key.value in own:
            raise _at(key.start_mark, f'the key "{kaos.shown(key.value, 100)}" occurs twice; remove one')
        else:
            own[key.value] = _texts(value, known)
    return merged | own
