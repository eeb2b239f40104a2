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

    @staticmethod
    def of(seen, kind):
        """Reads the first live child of a kind. Without one, all counts are 0."""
        found = live(seen, kind)
        if found is None:
            return Rollout()
        status, spec = found.get("status") or {}, found.get("spec") or {}
        replicas = status.get("replicas", 0)
        rollout = Rollout(spec.get("replicas", 1), replicas, status.get("readyReplicas", 0))
        if status.get("observedGeneration", 0) >= found["metadata"].get("generation", 0):
            # The old pods can be among the available pods. Assume that they are: then at least this many are new.
            old = max(replicas - status.get("updatedReplicas", 0), 0)
            rollout.available = max(status.get("availableReplicas", 0) - old, 0)
        return rollout

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
