"""An overlay that changes the registry of every image.

An overlay changes the answer of the policy below it: its variables (`map_env`), its plan (`amend`), or both. The functions
are pure: they get everything as arguments, and use no clock, network or randomness.
"""

import json
from pathlib import Path

import kaos

# The kinds whose plans the overlay changes, with their API versions.
KINDS = [
    ("kaos.tools/v1alpha1", "Agent"),
    ("kaos.tools/v1alpha1", "MCPServer"),
    ("kaos.tools/v1alpha1", "MemoryStore"),
    ("kaos.tools/v1alpha1", "ModelAPI"),
]

# This line runs at build time, and the component contains the result. So the component reads no file.
SCHEMA = json.loads(Path(__file__).with_name("settings.schema.json").read_text())


def describe():
    """Returns the name and the claims of the overlay."""
    # The types of the children that the overlay changes or adds.
    emits = [("apps/v1", "Deployment")]
    # The gate asks the overlay to amend a small Deployment for the object of the sample.
    claims = [kaos.claim(*kind, emits, {"any": example(*kind)}) for kind in KINDS]
    return kaos.descriptor("mirror", "0.1.0", claims, SCHEMA)


def amend(subject, below):
    """Returns the plan of the policy below, with other images."""
    registry = json.loads(subject.settings)["registry"]
    for template in kaos.amend.pod_templates(below):
        for container in kaos.amend.containers(template):
            if container.get("image"):
                container["image"] = kaos.amend.on_registry(container["image"], registry)
    return below


def example(api_version, kind):
    metadata = {"name": "any", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}}
