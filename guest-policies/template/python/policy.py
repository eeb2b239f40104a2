"""A policy that creates a Deployment and a Service for each `Website`.

The functions are pure: they get everything as arguments, and use no clock, network or randomness.
"""

import json
from pathlib import Path

import kaos

API_VERSION = "example.com/v1"
CONTAINER = "web"

# This line runs at build time, and the component contains the result. So the component reads no file.
SCHEMA = json.loads(Path(__file__).with_name("settings.schema.json").read_text())


def describe():
    """Returns the name and the claims of the policy."""
    emits = [("apps/v1", "Deployment"), ("v1", "Service")]
    claim = kaos.claim(API_VERSION, "Website", emits, {"minimal": website({"title": "Hello"})})
    return kaos.descriptor("website", "0.1.0", [claim], SCHEMA)


def map_env(subject, base):
    """Returns the environment variables, each with the origin of its value."""
    spec = json.loads(subject.object).get("spec") or {}
    env = kaos.Env(base).set(CONTAINER, "SITE_TITLE", spec.get("title", "Welcome"), "spec.title")
    return env.user(CONTAINER, spec.get("env"), "spec.env").vars()


def translate(subject, env):
    """Returns the plan: the children that the cluster should have for the object."""
    object, settings = json.loads(subject.object), json.loads(subject.settings)
    spec, name = object.get("spec") or {}, object["metadata"]["name"]
    wrong = kaos.Violations()
    wrong.require(spec.get("title", "Welcome").strip(), "spec.title", "must not be blank: give the site a title")
    why = kaos.dns1035_label(name)
    wrong.require(not why, "metadata.name", f"{why}, since the Service has the same name")
    wrong.refuse()

    labels = {"app": "website", "website": name}
    metadata = {"name": name, "namespace": object["metadata"].get("namespace", ""), "labels": labels}
    web = {
        "name": CONTAINER,
        "image": settings["image"],
        "env": kaos.container_env(env, CONTAINER),
        "ports": [{"name": "http", "containerPort": settings["port"], "protocol": "TCP"}],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [web]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    if spec.get("replicas") is not None:
        deployment["spec"]["replicas"] = spec["replicas"]
    port = {"name": "http", "port": settings["port"], "targetPort": settings["port"], "protocol": "TCP"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": labels, "ports": [port]}}
    return kaos.plan(
        env,
        (deployment, {
            f'spec.template.spec.containers[name="{CONTAINER}"].image': "settings.image",
            "spec.replicas": "spec.replicas",
        }),
        (service, {"spec.ports[0].port": "settings.port"}),
    )


def assess(subject, seen):
    """Returns the status. While new pods start, old pods can still serve. The status does not count the old pods."""
    rollout = kaos.Rollout.of(seen, "Deployment")
    # If a plan sets gates_hold, its gates can hold back a change while the pods of an earlier plan still serve.
    ready = isinstance(seen.outcome, (kaos.Outcome_Applied, kaos.Outcome_Gated)) and rollout.serves
    failed = isinstance(seen.outcome, (kaos.Outcome_Refused, kaos.Outcome_Failed))
    phase = "Failed" if failed else "Ready" if ready else "Pending"
    return kaos.report(ready, phase, f"{rollout.available} replicas available")


def website(spec):
    metadata = {"name": "blog", "namespace": "default"}
    return {"apiVersion": API_VERSION, "kind": "Website", "metadata": metadata, "spec": spec}
