"""Helpers for tests of a policy, which run natively."""

import json

from wit_world.imports import types

from kaos.refusal import text


def subject(object, schema, settings=None, found=None, served=()):
    """Returns a subject. `settings` has the settings that differ from the defaults of the schema. `found` maps the ids
    of needs to lists of objects. `served` has the pairs of API version and kind that the cluster serves."""
    all_settings = _merged(defaults(schema), settings or {})
    answers = [
        types.Found(id, types.Answer_Objects([text(of) for of in objects])) for id, objects in sorted((found or {}).items())
    ]
    cluster = types.Cluster("cluster.local", "kaos-system", [types.ResourceType(*pair) for pair in served])
    return types.Subject(text(object), answers, text(all_settings), cluster, False, "{}")


def plan(policy, of, base=()):
    """Returns the plan of the module `policy` for a subject."""
    env = policy.map_env(of, list(base)) if hasattr(policy, "map_env") else list(base)
    return policy.translate(of, env)


def manifest(of, kind):
    """Returns the first manifest of a kind in a plan."""
    return next(object for object in map(json.loads, of.manifests) if object["kind"] == kind)


def defaults(schema):
    """Returns the defaults of a schema. As on the host, a property without a default is absent, unless it has
    properties with defaults."""
    if "default" in schema:
        return schema["default"]
    return {name: defaults(of) for name, of in schema.get("properties", {}).items() if _has_default(of)}


def _has_default(schema):
    return "default" in schema or any(map(_has_default, schema.get("properties", {}).values()))


def _merged(base, over):
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {name: _merged(base.get(name), value) for name, value in over.items()}
    return over
