"""Builds the Deployment. Merges the object's `container` and then the object's `podSpec` into the policy's own pod."""

import kaos
from checks import check_pod, name_of
from kaos import patch
from names import CONTAINER
from request import child, extra, extra_origins

POD = "spec.template.spec"
POD_SPEC = "spec.podSpec"
# The fields of `spec.container` that the policy merges. `env` is not one of these fields: the mapping contains it.
MERGED = ("image", "command", "args", "resources", "securityContext", "workingDir", "volumeMounts")


def deployment(request, env, notes):
    """Returns the Deployment with its origins, and the mapping after all merges."""
    spec, settings, workload = request.spec, request.settings, request.workload
    own, is_older = _own_container(spec)
    pod = _pod(request, own)
    planned = _set_env(pod, env)
    pod_spec = spec.get("podSpec")
    if pod_spec is not None:
        kaos.check_patch(pod_spec, POD_SPEC)
        pod = patch.pod_spec(pod, pod_spec, CONTAINER, POD_SPEC)
    _add_env(pod, env, planned, notes)
    _one_value_a_name(pod, notes)
    _without_void_handlers(pod)
    notes += _repeated_env(own)
    check_pod(pod, pod_spec)
    template = {"metadata": extra(settings, workload.selector()), "spec": pod}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": workload.metadata(workload.child_name, settings),
        "spec": {"selector": {"matchLabels": workload.selector()}, "template": template},
    }
    if spec.get("replicas") is not None:
        manifest["spec"]["replicas"] = spec["replicas"]
    origins = _origins(spec, settings, own, is_older)
    return child(settings, manifest, *origins), kaos.env_of_pod_spec(pod, env, POD_SPEC)


def _origins(spec, settings, own, is_older):
    """Returns the origins of the values of the Deployment. The settings for a container have the same names as the
    fields of the container, so one origin covers these settings."""
    main = f'{POD}.containers[name="{CONTAINER}"]'
    origins = [("spec.replicas", "spec.replicas"), *extra_origins(settings, "spec.template."), (main, "settings")]
    if is_older:
        origins.append((f"{main}.resources", "spec.resources"))
    if own is not None:
        origins.append((main, "spec.container"))
    if settings["podSecurityContext"]:
        origins.append((f"{POD}.securityContext", "settings.podSecurityContext"))
    if spec.get("serviceAccountName"):
        origins.append((f"{POD}.serviceAccountName", "spec.serviceAccountName"))
    if spec.get("podSpec") is not None:
        origins.append((POD, POD_SPEC))
    return origins


def _own_container(spec):
    """Returns `spec.container`, with resources of the older field if it has none. Also returns whether it got them."""
    own, resources = spec.get("container"), spec.get("resources")
    if resources is None or (own or {}).get("resources") is not None:
        return own, False
    return {**(own or {}), "resources": resources}, True


def _pod(request, own):
    """Builds the policy's own pod."""
    spec, settings, launch = request.spec, request.settings, request.launch
    port = settings["containerPort"]
    main = {
        "name": CONTAINER,
        "image": launch.image,
        "imagePullPolicy": settings["imagePullPolicy"],
        "ports": [{"name": settings["portName"], "containerPort": port, "protocol": "TCP"}],
        "livenessProbe": _probe(settings["livenessProbe"], port),
        "readinessProbe": _probe(settings["readinessProbe"], port),
        "command": _words(launch.command, own, "command"),
        "args": _words(launch.args, own, "args"),
        "resources": settings["resources"],
        "securityContext": settings["securityContext"],
    }
    main = {field: value for field, value in main.items() if field == "image" or not _is_void(value)}
    if own is not None:
        # An empty field counts as absent, because typed clients omit empty fields.
        kept = {field: own[field] for field in MERGED if not _is_void(own.get(field))}
        main = patch.container(main, kept, "spec.container")
    pod = {"containers": [main]}
    if spec.get("serviceAccountName"):
        pod["serviceAccountName"] = spec["serviceAccountName"]
    if settings["podSecurityContext"]:
        pod["securityContext"] = settings["podSecurityContext"]
    if settings["automountServiceAccountToken"] is not None:
        pod["automountServiceAccountToken"] = settings["automountServiceAccountToken"]
    return pod


def _words(words, own, field):
    """Returns a list of the registry. But an empty list in the object removes the registry's list. A strategic merge
    would not remove it."""
    return None if (own or {}).get(field) == [] else words


def _is_void(value):
    return value is None or value in ("", [], {})


def _probe(probe, container_port):
    port = container_port if probe["port"] is None else probe["port"]
    handlers = {
        "httpGet": {"path": probe["path"], "port": port, "scheme": probe["scheme"]},
        "tcpSocket": {"port": port},
    }
    if probe["handler"] not in handlers:
        return None
    timing = {field: value for field, value in probe.items() if field.endswith(("Seconds", "Threshold"))}
    return {**timing, probe["handler"]: handlers[probe["handler"]]}


def containers(pod):
    """Returns the containers and then the init containers of a pod."""
    return [
        container
        for part in ("containers", "initContainers")
        for container in pod.get(part) or []
        if isinstance(container, dict)
    ]


def _set_env(pod, env):
    """Sets the variables of each container of the policy's own pod. Returns the names of these containers."""
    for container in containers(pod):
        entries = kaos.container_env(env, container["name"])
        if entries:
            container["env"] = entries
    return [container["name"] for container in containers(pod)]


def _add_env(pod, env, planned, notes):
    """Adds variables to the containers that only `podSpec` defines. Overlays set these variables."""
    for other in sorted({variable.container for variable in env} - set(planned)):
        found = next((container for container in containers(pod) if container.get("name") == other), None)
        if found is None:
            message = f"the pod has no container `{other}`, so the plan leaves out the variables of this container"
            notes.append(kaos.note("UnknownContainer", message))
        elif isinstance(found.setdefault("env", []), list):
            own = [name_of(variable) for variable in found["env"]]
            found["env"] += [variable for variable in kaos.container_env(env, other) if variable["name"] not in own]


def _one_value_a_name(pod, notes):
    """Removes duplicate variables of each container. As in Kubernetes, the last value wins."""
    for container in containers(pod):
        entries = container.get("env")
        if not isinstance(entries, list):
            continue
        once = kaos.each_once(entries)
        if len(once) < len(entries):
            container["env"] = once
            message = f"container `{container.get('name', '')}` sets a variable more than once: the last value wins"
            notes.append(kaos.note("DuplicateEnv", message, POD_SPEC, warning=False))


def _repeated_env(own):
    """Returns the note about the first variable that `spec.container.env` contains more than once."""
    seen = set()
    for variable in (own or {}).get("env") or []:
        name = name_of(variable)
        if name is not None and name in seen:
            message = f"`{kaos.shown(name, 63)}` occurs more than once: the last value wins"
            return [kaos.note("DuplicateEnv", message, "spec.container.env", warning=False)]
        seen.add(name)
    return []


def _without_void_handlers(pod):
    """Removes probes and hooks that a patch has made empty, because an API server refuses them."""
    for container in containers(pod):
        for field in [field for field, value in container.items() if field.endswith("Probe") and value == {}]:
            del container[field]
        hooks = container.get("lifecycle")
        if isinstance(hooks, dict):
            container["lifecycle"] = {name: hook for name, hook in hooks.items() if hook != {}}
