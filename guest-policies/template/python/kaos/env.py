"""Builds the mapping of environment variables, and reads it from a pod spec."""

import json
import re

from wit_world.imports import types

from kaos.refusal import Violations, text

# The build compiles these patterns, because compiling them in each pass would cost most of the pass's fuel.
_ESCAPED = re.compile(r"\$(?=[$(\u0080-\U0010ffff])")
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_NO_LIST = "must be a list of variables"


class Env:
    """Builds the mapping of environment variables. A container has each name once, and the user's variables win."""

    def __init__(self, base):
        self._vars = [(variable, False) for variable in base]

    def set(self, container, name, value, origin):
        """Sets a variable, unless `user` or `hold` has set it. The process sees exactly this text."""
        return self.bind(container, name, types.EnvSource_Literal(unexpanded(value)), origin)

    def bind(self, container, name, source, origin):
        """Like `set`, but takes any source, and Kubernetes expands `$(NAME)` in a literal."""
        return self._put(types.EnvVar(container, name, source, origin), False)

    def hold(self, container, name, source, origin):
        """Like `bind`, but the value stays even if the policy later sets another value. The user's value wins."""
        return self._put(types.EnvVar(container, name, source, origin), True)

    def _put(self, own, holds):
        at = self._position(own.container, own.name)
        if at is None:
            self._vars.append((own, holds))
        elif not self._vars[at][1]:
            self._vars[at] = (own, holds)
        return self

    def user(self, container, entries, path):
        """Adds the user's variables from the `env` list at `path` of the object."""
        wrong = Violations()
        read = []
        for at, item in enumerate(entries or []):
            place = f"{path}[{at}]"
            found = _variable(item, place, wrong)
            if found is not None:
                read.append((types.EnvVar(container, *found, place), True))
        wrong.refuse()
        both = self._vars + read
        kept = _order([_definition(variable) if variable.container == container else None for variable, _ in both])
        self._vars = [both[at] for at in kept]
        return self

    def remove(self, container, name):
        """Removes a variable, even if the user set it."""
        at = self._position(container, name)
        if at is not None:
            del self._vars[at]
        return self

    def vars(self):
        """Returns the finished mapping."""
        return [variable for variable, _ in self._vars]

    def _position(self, container, name):
        for at, (variable, _) in enumerate(self._vars):
            if variable.name == name and variable.container == container:
                return at
        return None


def container_env(env, container):
    """Returns the `env` list of one container."""
    return [_listed(variable) for variable in env if variable.container == container]


def check_patch(patch, root):
    """Checks the variables in a patch of a pod spec. `root` is the path of the patch in the object. Call this function
    before the merge, because the merge moves items and so changes their paths."""
    wrong = Violations()
    for _, at, env in _env_lists(patch):
        if not isinstance(env, list):
            wrong.add(f"{root}.{at}", _NO_LIST)
            continue
        for number, item in enumerate(env):
            # An item with the directive `$patch` is not a variable.
            if not isinstance(item, dict) or "$patch" not in item:
                _variable(item, f"{root}.{at}[{number}]", wrong)
    wrong.refuse()


def each_once(entries):
    """Returns an `env` list with one definition of each variable: the last one, as in Kubernetes."""
    definitions = []
    for item in entries:
        members = item if isinstance(item, dict) else {}
        name, value = members.get("name"), members.get("value")
        value = value if isinstance(value, str) else ""
        definitions.append((name, value) if isinstance(name, str) else None)
    return [entries[at] for at in _order(definitions)]


def env_of_pod_spec(pod_spec, known, patched):
    """Returns the mapping of a pod spec after all merges. A variable that equals its entry in `known` keeps its origin.
    Every other variable came from the patch, and gets the origin `patched`."""
    wrong = Violations()
    variables = []
    for container, _, env in _env_lists(pod_spec):
        if not isinstance(env, list):
            wrong.add(patched, _NO_LIST)
            continue
        before = {variable.name: variable for variable in reversed(known) if variable.container == container}
        for number, item in enumerate(env):
            found = _variable(item, f"{patched}[{number}]", wrong)
            if found is None:
                continue
            own = types.EnvVar(container, *found, patched)
            same = before.get(own.name)
            if same is not None and _listed(same) == _listed(own):
                own.origin = same.origin
            variables.append(own)
    wrong.refuse()
    return variables


def _env_lists(pod_spec):
    """Returns the `env` of each container, with the container's name and the path of `env`."""
    members = pod_spec if isinstance(pod_spec, dict) else {}
    found = []
    for part in ("initContainers", "containers", "ephemeralContainers"):
        containers = members.get(part)
        for at, container in enumerate(containers if isinstance(containers, list) else []):
            if isinstance(container, dict) and container.get("env") is not None:
                name = container.get("name")
                found.append((name if isinstance(name, str) else "", f"{part}[{at}].env", container["env"]))
    return found


def _listed(variable):
    source = variable.source
    if isinstance(source, types.EnvSource_Literal):
        return {"name": variable.name, "value": source.value} if source.value else {"name": variable.name}
    if isinstance(source, types.EnvSource_SecretKey):
        origin = {"secretKeyRef": _selected(source.value)}
    elif isinstance(source, types.EnvSource_ConfigMapKey):
        origin = {"configMapKeyRef": _selected(source.value)}
    elif isinstance(source, types.EnvSource_FieldPath):
        origin = {"fieldRef": {"fieldPath": source.value}}
    else:
        origin = json.loads(source.value)
    return {"name": variable.name, "valueFrom": origin}


def _selected(selector):
    optional = {"optional": True} if selector.optional else {}
    return {"key": selector.key, "name": selector.name, **optional}


def _variable(item, path, wrong):
    """Returns the name and the source of an item of an `env` list, or None for a wrong item."""
    members = item if isinstance(item, dict) else {}
    name, value, origin = members.get("name"), members.get("value"), members.get("valueFrom")
    if not isinstance(name, str) or not name:
        wrong.add(path + ".name", "is required; it is the variable's name")
    elif "=" in name or "\0" in name:
        wrong.add(path + ".name", "must not contain '='")
    elif value is not None and not isinstance(value, str):
        wrong.add(path + ".value", "must be text; put it into quotes")
    elif origin is None:
        return name, types.EnvSource_Literal(value or "")
    elif not isinstance(origin, dict):
        wrong.add(path + ".valueFrom", "must be an object")
    elif value:
        wrong.add(path + ".valueFrom", "must not be set together with value; remove one of them")
    else:
        return name, _reference(origin)
    return None


def _reference(origin):
    """Returns a typed source if its type can express every member. Otherwise, returns the JSON text."""
    if len(origin) == 1:
        [(kind, content)] = origin.items()
        content = content if isinstance(content, dict) else {}
        typed = {"secretKeyRef": types.EnvSource_SecretKey, "configMapKeyRef": types.EnvSource_ConfigMapKey}.get(kind)
        if typed and _is_selector(content):
            return typed(types.KeySelector(content["name"], content["key"], "optional" in content))
        if kind == "fieldRef" and set(content) == {"fieldPath"} and isinstance(content["fieldPath"], str):
            return types.EnvSource_FieldPath(content["fieldPath"])
    return types.EnvSource_Other(text(origin))


def _is_selector(content):
    texts = all(isinstance(content.get(field), str) and content[field] for field in ("name", "key"))
    return texts and set(content) <= {"name", "key", "optional"} and content.get("optional", True) is True


def _definition(variable):
    """Returns the name of a variable, and the text that can refer to other variables."""
    return variable.name, variable.source.value if isinstance(variable.source, types.EnvSource_Literal) else ""


def _order(definitions):
    """Returns the positions to keep, in order. The last definition of a name moves to the place of the first.
    But a definition that refers to a variable between the two places keeps its own place."""
    stands, kept = {}, []
    for at, definition in enumerate(definitions):
        if definition is not None:
            name, value = definition
            stood = stands.get(name)
            if stood is not None:
                if not any(stands.get(other, -1) > stood for other in references(value)):
                    kept[stood] = at
                    continue
                kept[stood] = None
            stands[name] = len(kept)
        kept.append(at)
    return [at for at in kept if at is not None]


def unexpanded(value):
    """Escapes a text so that Kubernetes expands no variable in it."""
    return _ESCAPED.sub("$$", value)


def references(value):
    """Returns the names that Kubernetes looks for in a text."""
    return [name for name in _REFERENCE.findall(value) if name]
