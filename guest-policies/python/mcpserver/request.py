"""Reads everything that the policy must know about one MCPServer."""

import json
from dataclasses import dataclass

import kaos
from launch import Launch
from names import APP, PREFIX, ROUTE_PREFIX
from wanted import Wanted

# The maximum number of entries in each list. A longer list would need too much fuel in a pass.
LONGEST = {
    "spec.container.env": 12_000,
    "spec.podSpec.containers": 100,
    "spec.podSpec.initContainers": 100,
    "spec.podSpec.volumes": 2_000,
}


def at(object, path):
    """Returns the value at a path of member names, or None."""
    for name in path.split("."):
        object = object.get(name) if isinstance(object, dict) else None
    return object


def spec_of(subject):
    """Returns the spec. Refuses lists that are too long."""
    object = json.loads(subject.object)
    for path, most in LONGEST.items():
        entries = at(object, path)
        count = len(entries) if isinstance(entries, list) else 0
        if count > most:
            remedy = "split the object, or move long content to ConfigMaps or Secrets"
            raise kaos.invalid(path, f"has {count} entries, but the limit is {most}: {remedy}")
    return object.get("spec") or {}


@dataclass
class Request:
    """The object, its settings, and how to start its container."""

    subject: object
    spec: dict
    settings: dict
    wanted: Wanted
    launch: Launch
    workload: object

    @staticmethod
    def of(subject):
        """Reads the subject. Refuses an object for which the policy cannot start a container."""
        settings, spec = json.loads(subject.settings), spec_of(subject)
        wanted = Wanted.of(spec)
        launch = Launch.of(wanted.source, settings, subject, at(spec, "container") or {})
        return Request(subject, spec, settings, wanted, launch, workload_of(subject))

    def serves(self, type):
        """Returns whether the cluster serves a type, a pair of an API version and a kind."""
        return any((served.api_version, served.kind) == type for served in self.subject.cluster.served)


@dataclass
class Workload:
    """The names and addresses of an object."""

    name: str
    namespace: str
    domain: str

    @property
    def child_name(self):
        """The name of the Deployment and of the Service."""
        return f"{PREFIX}-{self.name}"

    @property
    def route_name(self):
        """The name of the HTTPRoute."""
        return f"{ROUTE_PREFIX}-{self.name}"

    def selector(self):
        """Returns the labels that select the pods. Every child has these labels, too."""
        return {"app": APP, APP: self.name}

    def endpoint(self, port):
        """Returns the base URL of the Service."""
        return f"http://{self.child_name}.{self.namespace}.svc.{self.domain}:{port}"

    def metadata(self, name, settings):
        """Returns the metadata of a child."""
        return {**extra(settings, self.selector()), "name": name, "namespace": self.namespace}

    def check_name(self):
        """Returns why the names of the children would be invalid. Kubernetes has the strictest rules for Services."""
        longest = 63 - len(PREFIX) - 1
        wrong = kaos.Violations()
        if len(self.name) > longest:
            wrong.add(
                "metadata.name",
                f"the name has {len(self.name)} characters, but the limit is {longest}: the Service is named `{PREFIX}-` "
                "plus this name, and names of Services have at most 63 characters; choose a shorter name",
            )
        elif self.name.startswith("-") or not self.name or kaos.dns1035_label(self.child_name):
            wrong.add(
                "metadata.name",
                f"`{kaos.shown(self.name, 253)}` cannot be part of a Service name: use at most {longest} lower-case letters, "
                "digits and `-` (no dots), with a letter or digit at the beginning and at the end",
            )
        return wrong


def workload_of(subject):
    """Returns the workload of the object."""
    metadata = json.loads(subject.object)["metadata"]
    return Workload(metadata["name"], metadata.get("namespace", ""), subject.cluster.domain)


def extra(settings, labels):
    """Returns a `metadata` with these labels and the additions of the settings. These labels win over additions."""
    metadata = {"labels": {**settings["extraLabels"], **labels}}
    if settings["extraAnnotations"]:
        metadata["annotations"] = settings["extraAnnotations"]
    return metadata


def extra_origins(settings, above=""):
    """Returns the origins of the additions. `above` is the path above `metadata`, with a dot at its end."""
    fields = [("labels", "extraLabels"), ("annotations", "extraAnnotations")]
    return [(f"{above}metadata.{field}", f"settings.{setting}") for field, setting in fields if settings[setting]]


def child(settings, manifest, *origins):
    """Returns a child with its origins, and with the origins of the additions in its metadata."""
    return manifest, extra_origins(settings) + list(origins)
