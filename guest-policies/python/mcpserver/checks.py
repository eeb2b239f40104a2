"""Checks the pod spec after all merges for mistakes that an API server would refuse."""

import kaos
from names import CONTAINER

ROOT = "spec.podSpec"
PARTS = ("containers", "initContainers")


def name_of(item):
    """Returns the name of an item of a list."""
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _items(pod, part):
    found = pod.get(part) if isinstance(pod, dict) else None
    return found if isinstance(found, list) else []


def check_pod(pod, pod_spec):
    """Refuses the object if its pod is invalid. `pod_spec` is the user's pod spec, for the paths in refusals."""
    if all(name_of(container) != CONTAINER for container in _items(pod, "containers")):
        message = f"the pod must keep the container `{CONTAINER}`: remove the patch that deletes it"
        raise kaos.invalid(f"{ROOT}.containers", message)
    names = set()
    for part in PARTS:
        for container in _items(pod, part):
            name = name_of(container)
            written = [of for of in _items(pod_spec, part) if name_of(of) == name]
            _check_container(container, bool(written) and "image" in written[-1], pod_spec, part)
            if name in names:
                message = f"two containers are named `{kaos.shown(name, 63)}`: choose another name"
                raise kaos.invalid(_place(pod_spec, part, name, "name"), message)
            names.add(name)


def _place(pod_spec, part, name, field):
    """Returns the path of a field of the container with this name in the user's pod spec."""
    for of in (part, *PARTS):
        positions = [at for at, container in enumerate(_items(pod_spec, of)) if name_of(container) == name]
        if positions:
            return f"{ROOT}.{of}[{positions[-1]}].{field}"
    return f"{ROOT}.{part}"


def _check_container(container, has_image, pod_spec, part):
    name = name_of(container)
    place = lambda field: _place(pod_spec, part, name, field)  # noqa: E731
    if not name:
        raise kaos.invalid(place("name"), "is required; it is the container's name")
    image = container.get("image")
    if not isinstance(image, str) or not image:
        if name != CONTAINER:
            message = (
                f"container `{kaos.shown(name, 63)}` needs an image; to change the container of this kind "
                f"instead, name it `{CONTAINER}`"
            )
            raise kaos.invalid(place("image"), message)
        if has_image:
            raise kaos.invalid(place("image"), "removes the container's image: set an image, or remove this field")
        message = "no image is set: set it here, or set the default image of the operator"
        raise kaos.invalid("spec.container.image", message)
    ports = set()
    for port in _items(container, "ports"):
        port = name_of(port)
        if port and port in ports:
            message = (
                f"two ports are named `{kaos.shown(port, 15)}`, since ports merge by number: choose another name, or set "
                "the policy setting containerPort to change the port"
            )
            raise kaos.invalid(place("ports"), message)
        ports.add(port)
