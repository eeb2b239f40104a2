"""The library for authors of KAOS policies in Python.

A policy is the module `policy` with the functions `describe` and `translate`, and if it wants them `needs`, `map_env` and
`assess`. The functions must be pure: their answers must depend only on the arguments. All types of the contract are here
too, for example `kaos.Plan` and `kaos.EnvSource_Literal`.
"""

import json
import re
from dataclasses import dataclass

from componentize_py_types import Err
from wit_world.imports import types
from wit_world.imports.types import *  # noqa: F403


# The build compiles the patterns, because a compilation in each pass would cost most of its fuel.
_ESCAPED = re.compile(r"\$(?=[$(\u0080-\U0010ffff])")
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_LABEL = re.compile(r"[a-z0-9-]*")


def text(value):
    """Returns the canonical JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# Refusals are exceptions: `raise kaos.invalid("spec.title", "must not be blank: give the site a title")`.


def invalid(path, message):
    """Refuses an object that is invalid at `path`. The message names the mistake and the remedy."""
    return Err(types.Refusal_Invalid([types.Violation(path, message)]))


def waiting(*blockers):
    """Refuses an object until one of the objects in these blockers appears or changes."""
    return Err(types.Refusal_Waiting(list(blockers)))


def unsupported(message):
    """Refuses an object that the cluster or the policy does not support."""
    return Err(types.Refusal_Unsupported(message))


class Violations:
    """Collects mistakes, so that the user sees all of them at once."""

    def __init__(self):
        self.all = []

    def require(self, holds, path, message):
        """Adds the mistake unless `holds` is true."""
        if not holds:
            self.all.append(types.Violation(path, message))

    def refuse(self):
        """Refuses the object if there are mistakes."""
        if self.all:
            raise Err(types.Refusal_Invalid(self.all))


def claim(api_version, kind, emits, samples, reads=(), wishes=(), finalizer=None):
    """Returns a claim. Types are pairs of an API version and a kind, and samples map names to objects."""
    pairs = lambda of: [types.ResourceType(*pair) for pair in of]  # noqa: E731
    made = [types.Sample(name, text(object), []) for name, object in samples.items()]
    return types.Claim(types.ResourceType(api_version, kind), pairs(emits), pairs(reads), pairs(wishes), finalizer, made, "{}")


def descriptor(name, version, claims, settings_schema):
    """Returns the descriptor of a policy."""
    return types.Descriptor(name, version, claims, text(settings_schema), "{}")


def plan(env, *children):
    """Returns a plan. A child is a manifest, or a pair of a manifest and its origins: `{path: source}`."""
    manifests, origins = [], []
    for number, child in enumerate(children):
        manifest, sources = child if isinstance(child, tuple) else (child, {})
        manifests.append(text(manifest))
        origins += [types.Origin(number, path, source) for path, source in sources.items()]
    return types.Plan(manifests, origins, [], env, [], None, [], False, "{}")


def report(ready, phase, message, fields=None, conditions=()):
    """Returns the report for the object's status."""
    return types.Report(ready, phase, message, text(fields or {}), list(conditions), "{}")


class Env:
    """Builds the mapping of environment variables. A container has each name once, and the user's variables win."""

    def __init__(self, base):
        self._vars = [(variable, False) for variable in base]

    def set(self, container, name, value, origin):
        """Sets a variable of the policy. The process sees exactly this text. A variable of the user keeps its value."""
        return self.bind(container, name, types.EnvSource_Literal(unexpanded(value)), origin)

    def bind(self, container, name, source, origin):
        """Like `set`, but takes any source, and Kubernetes expands `$(NAME)` in a literal."""
        own = types.EnvVar(container, name, source, origin)
        for at, (variable, stays) in enumerate(self._vars):
            if variable.container == container and variable.name == name:
                if not stays:
                    self._vars[at] = (own, False)
                return self
        self._vars.append((own, False))
        return self

    def user(self, container, entries, path):
        """Adds the user's variables from the `env` list at `path` of the object."""
        wrong = Violations()
        read = [_variable(container, item, f"{path}[{at}]", wrong) for at, item in enumerate(entries or [])]
        wrong.refuse()
        both = self._vars + [(variable, True) for variable in read]
        self._vars = [both[at] for at in _order([variable if variable.container == container else None for variable, _ in both])]
        return self

    def vars(self):
        """Returns the finished mapping."""
        return [variable for variable, _ in self._vars]


def container_env(env, container):
    """Returns the `env` list of one container."""
    return [_listed(variable) for variable in env if variable.container == container]


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


def _variable(container, item, path, wrong):
    members = item if isinstance(item, dict) else {}
    name, value, origin = members.get("name"), members.get("value"), members.get("valueFrom")
    source = types.EnvSource_Literal(value or "")
    if not isinstance(name, str) or not name:
        wrong.require(False, path + ".name", "is required; it is the variable's name")
    elif "=" in name or "\0" in name:
        wrong.require(False, path + ".name", "must not contain '='")
    elif value is not None and not isinstance(value, str):
        wrong.require(False, path + ".value", "must be text; put it into quotes")
    elif origin is not None and not isinstance(origin, dict):
        wrong.require(False, path + ".valueFrom", "must be an object")
    elif origin is not None and value:
        wrong.require(False, path + ".valueFrom", "must not be set together with value; remove one of them")
    elif origin is not None:
        source = _reference(origin)
    return types.EnvVar(container, name, source, path)


def _reference(origin):
    """Returns a typed source if its type has a field for every member, and otherwise the JSON text."""
    if len(origin) == 1:
        [(kind, content)] = origin.items()
        content = content if isinstance(content, dict) else {}
        typed = {"secretKeyRef": types.EnvSource_SecretKey, "configMapKeyRef": types.EnvSource_ConfigMapKey}.get(kind)
        texts = all(isinstance(content.get(field), str) and content[field] for field in ("name", "key"))
        if typed and texts and (set(content) == {"name", "key"} or set(content) == {"name", "key", "optional"} and content["optional"] is True):
            return typed(types.KeySelector(content["name"], content["key"], "optional" in content))
        if kind == "fieldRef" and set(content) == {"fieldPath"} and isinstance(content["fieldPath"], str):
            return types.EnvSource_FieldPath(content["fieldPath"])
    return types.EnvSource_Other(text(origin))


def _order(variables):
    """Returns the positions to keep: the last definition of each name, at the place of the first one. A definition that
    refers to a variable between both keeps its own place."""
    stands, kept = {}, []
    for at, variable in enumerate(variables):
        if variable is not None:
            stood = stands.get(variable.name)
            if stood is not None:
                literal = variable.source.value if isinstance(variable.source, types.EnvSource_Literal) else ""
                if not any(stands.get(name, -1) > stood for name in references(literal)):
                    kept[stood] = at
                    continue
                kept[stood] = None
            stands[variable.name] = len(kept)
        kept.append(at)
    return [at for at in kept if at is not None]


def unexpanded(value):
    """Escapes a text so that Kubernetes expands no variable in it."""
    return _ESCAPED.sub("$$", value)


def references(value):
    """Returns the names that Kubernetes looks for in a text."""
    return [name for name in _REFERENCE.findall(value) if name]


def dns1035_label(name):
    """Returns why a name is not the name of a Service, or None if it is one."""
    if len(name.encode()) > 63:
        return f"must be at most 63 characters long, not {len(name.encode())}"
    if not "a" <= name[:1] <= "z":
        return "must start with a lower-case letter"
    if not _LABEL.fullmatch(name):
        return "must consist of lower-case letters, digits and '-'"
    return "must end with a lower-case letter or a digit" if name.endswith("-") else None


@dataclass
class Rollout:
    """Counts the pods of a Deployment or a StatefulSet. `available` counts only pods of the current generation."""

    wanted: int = 0
    replicas: int = 0
    ready: int = 0
    available: int = 0

    @staticmethod
    def of(seen, kind):
        """Reads the first live child of a kind. Without one, all counts are 0."""
        for child in seen.children:
            if child.identity.kind == kind and child.live is not None:
                live = json.loads(child.live)
                status, spec = live.get("status") or {}, live.get("spec") or {}
                replicas = status.get("replicas", 0)
                rollout = Rollout(spec.get("replicas", 1), replicas, status.get("readyReplicas", 0))
                if status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0):
                    # The old pods can be among the available pods. Assume that they are: then at least this many are new.
                    old = max(replicas - status.get("updatedReplicas", 0), 0)
                    rollout.available = max(status.get("availableReplicas", 0) - old, 0)
                return rollout
        return Rollout()

    @property
    def serves(self):
        """Whether a pod of the current generation is available."""
        return self.available > 0


def default_report(seen):
    """The status of a policy without its own `assess`: ready as soon as all children exist and each workload serves."""
    workloads = [child for child in seen.children if child.identity.kind in ("Deployment", "StatefulSet")]
    up = 0
    for child in workloads:
        own = types.Observation(seen.outcome, [child], [], [], [], "{}")
        rollout = Rollout.of(own, child.identity.kind)
        up += child.live is not None and (rollout.serves or rollout.wanted == 0)
    exist = all(child.live is not None for child in seen.children)
    ready = isinstance(seen.outcome, types.Outcome_Applied) and exist and up == len(workloads)
    failed = isinstance(seen.outcome, (types.Outcome_Refused, types.Outcome_Failed))
    phase = "Failed" if failed else "Ready" if ready else "Pending"
    return report(ready, phase, f"{up} of {len(workloads)} workloads available")
