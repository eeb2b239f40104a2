"""Reads the live children of an observation."""

import json
from dataclasses import dataclass

from wit_world.imports import types

from kaos.answers import report


def live(seen, kind, name=None):
    """Returns the first live child of a kind, or None. With `name`, the child also has this name."""
    for child in seen.children:
        if child.identity.kind == kind and name in (None, child.identity.name) and child.live is not None:
            return json.loads(child.live)
    return None


@dataclass
class Rollout:
    """Counts the pods of a Deployment or a StatefulSet. `available` counts only pods of the current generation."""

    wanted: int = 0
    replicas: int = 0
    ready: int = 0
    available: int = 0
    is_live: bool = False

    @staticmethod
    def of(seen, kind):
        """Reads the first live child of a kind. Without a live child, all counts are 0."""
        found = live(seen, kind)
        if found is None:
            return Rollout()
        status, spec = found.get("status") or {}, found.get("spec") or {}
        replicas = _count(status, "replicas")
        rollout = Rollout(_count(spec, "replicas", 1), replicas, _count(status, "readyReplicas"), is_live=True)
        if _count(status, "observedGeneration") >= _count(found["metadata"], "generation"):
            # Possibly all old pods are available. Subtract them, so that the number is never too high.
            old = max(replicas - _count(status, "updatedReplicas"), 0)
            rollout.available = max(_count(status, "availableReplicas") - old, 0)
        return rollout

    @property
    def serves(self):
        """Whether a pod of the current generation is available."""
        return self.available > 0

    @property
    def is_complete(self):
        """Whether all wanted pods are available and of the current generation, and no other pods are left."""
        return self.is_live and self.available == self.wanted == self.replicas


def _count(of, field, default=0):
    """Returns a field if it is a whole number from 0. Otherwise, for example for null, returns `default`."""
    value = of.get(field)
    return value if type(value) is int and value >= 0 else default


def default_report(seen):
    """Returns the status for a policy without `assess`: ready as soon as all children exist, and each workload serves
    or wants no pods. The object stays ready while plan gates hold back a change of these children."""
    workloads = [child for child in seen.children if child.identity.kind in ("Deployment", "StatefulSet")]
    up = 0
    for child in workloads:
        own = types.Observation(seen.outcome, [child], [], [], [], "{}")
        rollout = Rollout.of(own, child.identity.kind)
        up += child.live is not None and (rollout.serves or rollout.wanted == 0)
    exist = all(child.live is not None for child in seen.children)
    # Without children, the report cannot tell whether the host applied an earlier plan.
    gated = isinstance(seen.outcome, types.Outcome_Gated) and len(seen.children) > 0
    ready = (isinstance(seen.outcome, types.Outcome_Applied) or gated) and exist and up == len(workloads)
    failed = isinstance(seen.outcome, (types.Outcome_Refused, types.Outcome_Failed))
    phase = "Failed" if failed else "Ready" if ready else "Pending"
    return report(ready, phase, f"{up} of {len(workloads)} workloads available")
