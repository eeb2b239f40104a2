"""Builds the answers of a policy."""

from wit_world.imports import types

from kaos.refusal import text


def claim(api_version, kind, emits, samples, reads=(), wishes=(), finalizer=None):
    """Returns a claim. A type is a pair of an API version and a kind. `samples` maps each name to an object, or to a
    pair of an object and the list of the other objects in the cluster."""
    pairs = lambda of: [types.ResourceType(*pair) for pair in of]  # noqa: E731
    made = []
    for name, of in samples.items():
        object, beside = of if isinstance(of, tuple) else (of, [])
        made.append(types.Sample(name, text(object), [text(other) for other in beside]))
    return types.Claim(types.ResourceType(api_version, kind), pairs(emits), pairs(reads), pairs(wishes), finalizer, made, "{}")


def descriptor(name, version, claims, settings_schema):
    """Returns the descriptor of a policy."""
    return types.Descriptor(name, version, claims, text(settings_schema), "{}")


def plan(env, *children, notes=(), finalizer=None, gates=(), kept=(), gates_hold=False):
    """Returns a plan. A child is a manifest, or a pair of a manifest and its origins: `{path: source}`. If one path has
    several origins, the origins are pairs: `[(path, source), ...]`."""
    manifests, origins = [], []
    for number, child in enumerate(children):
        manifest, sources = child if isinstance(child, tuple) else (child, {})
        manifests.append(text(manifest))
        pairs = sources.items() if isinstance(sources, dict) else sources
        origins += [types.Origin(number, path, source) for path, source in pairs]
    return types.Plan(manifests, origins, list(gates), env, list(notes), finalizer, list(kept), gates_hold, "{}")


def note(reason, message, path=None, warning=True):
    """Returns a note for the user. Its severity is warning or info."""
    severity = types.Severity.WARNING if warning else types.Severity.INFO
    return types.Note(severity, reason, message, path)


def report(ready, phase, message, fields=None, conditions=()):
    """Returns the report for the object's status."""
    return types.Report(ready, phase, message, text(fields or {}), list(conditions), "{}")


def condition(type, status, reason, message):
    """Returns a condition. The status is True, False, or None for unknown."""
    truth = {True: types.Truth.YES, False: types.Truth.NO, None: types.Truth.UNKNOWN}[status]
    return types.Condition(type, truth, reason, message)
