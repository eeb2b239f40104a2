"""Changes the plan of the policy below. It is for overlays.

An overlay may change children and add children. It must not drop or rename children, or change their selectors.
"""

import json

from wit_world.imports import types

from kaos.answers import plan
from kaos.refusal import text

HUB = "docker.io"


class Child:
    """A child of the plan below. A change to `manifest` is also a change to the plan."""

    def __init__(self, manifest, position, of):
        self.manifest, self._position, self._plan = manifest, position, of

    def declare(self, path, source):
        """Declares that the value at `path` of the manifest, and all values below it, come from `source`: a field of the
        object, a setting (`settings.tolerations`), or a field of a found object (`ModelAPI/llm status.endpoint`)."""
        self._plan.origins.append(types.Origin(self._position, path, source))


def children(of):
    """Iterates over the children of a plan. The loop may change each child. A manifest that does not change keeps its
    text."""
    # The loop iterates over a copy, so it does not visit children that the caller adds.
    for position, manifest in enumerate(list(of.manifests)):
        child = Child(json.loads(manifest), position, of)
        before = text(child.manifest)
        try:
            yield child
        finally:
            # If the caller ends the loop early, the plan still gets the change of the last child.
            after = text(child.manifest)
            if after != before:
                of.manifests[position] = after


def pod_templates(of):
    """Iterates over the pod template of each workload of a plan. The loop may change each template."""
    for child in children(of):
        template = pod_template(child.manifest)
        if template is not None:
            yield template


def pod_template(manifest):
    """Returns the pod template of a workload, or None. A bare Pod is its own template."""
    for path in ((), ("spec", "template"), ("spec", "jobTemplate", "spec", "template")):
        template = manifest
        for name in (*path, "spec"):
            template, above = _member(template, name), template
        if isinstance(_member(template, "containers"), list):
            return above
    return None


def containers(template):
    """Returns all containers of a pod template, including the init containers."""
    spec = template.get("spec") or {}
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def add(of, manifest, origins=()):
    """Adds a child to a plan. `origins` have the same form as in `kaos.plan`."""
    added = plan([], (manifest, origins or {}))
    for origin in added.origins:
        origin.manifest = len(of.manifests)
    of.origins += added.origins
    of.manifests += added.manifests


def add_labels(to, labels):
    """Adds labels to a manifest or to a pod template. Keeps labels that exist, because selectors may use them."""
    metadata = to["metadata"] = to.get("metadata") or {}
    metadata["labels"] = {**labels, **(metadata.get("labels") or {})}


def push(template, list, item):
    """Appends an item to a list of a pod template's `spec`, such as `containers`, `tolerations` or `volumes`."""
    spec = template["spec"]
    spec[list] = [*(spec.get(list) or []), item]


def on_registry(image, registry):
    """Replaces the registry of an image. A registry is a host, which can have a path: `mirror.example.com/hub`. An
    image without a registry is an image of Docker Hub, so `nginx` becomes `mirror.example.com/hub/library/nginx`. An
    image that is already on `registry` stays as it is. If `registry` is empty, every image stays as it is."""
    registry = registry.rstrip("/")
    if not registry or image.startswith(f"{registry}/"):
        return image
    host, _, path = image.partition("/")
    if not path or not ("." in host or ":" in host or host == "localhost"):
        host, path = HUB, image
    official = "library/" if host == HUB and "/" not in path else ""
    return f"{registry}/{official}{path}"


def _member(of, name):
    return of.get(name) if isinstance(of, dict) else None
