"""Refusals are exceptions: `raise kaos.invalid("spec.title", "must not be blank: give the site a title")`."""

import json

from componentize_py_types import Err
from componentize_py_types import Err as Refused  # noqa: F401
from wit_world.imports import types


def text(value):
    """Returns the canonical JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def invalid(path, message):
    """Returns the refusal of an object that is invalid at `path`. The message names the mistake and the remedy."""
    return Err(types.Refusal_Invalid([types.Violation(path, message)]))


def waiting(*blockers):
    """Returns the refusal of an object until one of the objects in these blockers appears or changes."""
    return Err(types.Refusal_Waiting(list(blockers)))


def unsupported(message):
    """Returns the refusal of an object that the cluster or the policy does not support."""
    return Err(types.Refusal_Unsupported(message))


def not_found(on):
    """Returns a blocker for an object that does not exist."""
    return types.Blocker(on, "NotFound", f"{on.kind} {on.name} not found")


class Violations:
    """Collects mistakes, so that the user sees all of them at once."""

    def __init__(self):
        self.all = []

    def add(self, path, message):
        """Adds a mistake."""
        self.all.append(types.Violation(path, message))

    def require(self, holds, path, message):
        """Adds the mistake unless `holds` is true."""
        if not holds:
            self.add(path, message)

    def collect(self, function, *arguments):
        """Calls a function. If it refuses the object as invalid, adds its mistakes and returns None."""
        try:
            return function(*arguments)
        except Err as refused:
            if not isinstance(refused.value, types.Refusal_Invalid):
                raise
            self.all += refused.value.value
            return None

    def refuse(self):
        """Refuses the object if there are mistakes."""
        if self.all:
            raise Err(types.Refusal_Invalid(self.all))
