"""Names the objects that a policy must see, and reads the answers of the host."""

import json

from wit_world.imports import types

from kaos.refusal import text


def named(id, reference, fields=(), optional=False):
    """Returns a need for one object. The contract explains the grammar of `fields`."""
    return types.Need(id, types.Target_Named(reference), list(fields), optional)


def need_of(id, api_version, kind, name, fields=(), optional=False):
    """Returns a need for one object in the namespace of the pass's object."""
    return named(id, types.Reference(api_version, kind, None, name), fields, optional)


def need_all(id, api_version, kind, labels, fields=(), optional=False):
    """Returns a need for all objects of a type that have all of these labels, in the namespace of the pass's object."""
    selector = types.Selector(types.ResourceType(api_version, kind), None, sorted(labels.items()))
    return types.Need(id, types.Target_Labelled(selector), list(fields), optional)


def key(of, name):
    """Returns the path of a member whose name has other characters than letters, digits, "_" and "-"."""
    return f"{of}[{text(name)}]"


def equal(path, value):
    """Returns the path that selects a string that equals the text, or the items of a list that equal the text."""
    return f"{path}[={text(value)}]"


class Forbidden(Exception):
    """The operator or the policy is not allowed to read the object. The text gives the reason."""


def objects(subject, id):
    """Returns the objects that answer a need. The list is empty if there are none, or if the cluster does not serve
    their type. Raises `Forbidden` if the operator or the policy is not allowed to read them."""
    answer = _answer(subject, id)
    if isinstance(answer, types.Answer_Forbidden):
        raise Forbidden(answer.value)
    if isinstance(answer, types.Answer_Objects):
        return [json.loads(object) for object in answer.value]
    return []


def one(subject, id):
    """Returns the first object that answers a need, or None. Raises `Forbidden` as `objects` does."""
    found = objects(subject, id)
    return found[0] if found else None


def secret(subject, id):
    """Returns the facts of the Secret that answers a need, or None. Raises `Forbidden` as `objects` does."""
    answer = _answer(subject, id)
    if isinstance(answer, types.Answer_Forbidden):
        raise Forbidden(answer.value)
    if isinstance(answer, types.Answer_Secret) and answer.value.present:
        return answer.value
    return None


def _answer(subject, id):
    return next((found.answer for found in subject.found if found.id == id), None)
