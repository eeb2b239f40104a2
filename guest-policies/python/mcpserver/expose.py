"""Exposes a server through a Service, and through a route on the Gateway."""

import re

import kaos
import security
from names import APP, ROUTE_PREFIX
from request import at, child

ROUTE = ("gateway.networking.k8s.io/v1", "HTTPRoute")

# The build compiles the patterns.
_TIMEOUT = re.compile(r"(?:[0-9]+(?:h|ms|m|s)){1,4}")
_PART = re.compile(r"([0-9]+)([a-z]+)")
# The length of each unit of a timeout, in milliseconds.
_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


def service(request):
    """Builds the Service."""
    settings, workload = request.settings, request.workload
    port = {
        "name": settings["portName"],
        "port": settings["servicePort"],
        "targetPort": settings["containerPort"],
        "protocol": "TCP",
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": workload.metadata(workload.child_name, settings),
        "spec": {"type": settings["serviceType"], "selector": workload.selector(), "ports": [port]},
    }
    return child(
        settings,
        manifest,
        ("spec.type", "settings.serviceType"),
        ("spec.ports[0].port", "settings.servicePort"),
        ("spec.ports[0].targetPort", "settings.containerPort"),
    )


def entrance(request, notes):
    """Builds the HTTPRoute, if the server gets one, and the objects that protect the server."""
    route = _route(request, notes)
    protection = security.protection(request, route is not None)
    children = [child(request.settings, manifest) for manifest in protection]
    if route is not None:
        origins = [
            ("spec.parentRefs[0]", "settings.gateway"),
            ("spec.rules[0].timeouts.request", _timeout(request)[1]),
        ]
        children.append(child(request.settings, route, *origins))
    return children


def _timeout(request):
    """Returns the timeout in the object or the settings, and its path."""
    own = at(request.spec, "gatewayRoute.timeout")
    if own:
        return own, "spec.gatewayRoute.timeout"
    return request.settings["gateway"]["timeout"], "settings.gateway.timeout"


def _route(request, notes):
    """Builds the HTTPRoute if routes are enabled. Adds a note instead if the settings name no Gateway, or if the
    cluster does not serve the kind."""
    gateway, workload = request.settings["gateway"], request.workload
    timeout, path = _timeout(request)
    if not _TIMEOUT.fullmatch(timeout):
        message = (
            f"`{kaos.shown(timeout, 40)}` is not a timeout: write up to four numbers with a unit h, m, s or ms, for example "
            "1h30m"
        )
        raise kaos.invalid(path, message)
    if not gateway["enabled"]:
        return None
    if not gateway["name"]:
        message = "routes are enabled and no Gateway is named, so there is no HTTPRoute: set GATEWAY_NAME for the operator"
        notes.append(kaos.note("GatewayUnnamed", message))
        return None
    if not request.serves(ROUTE):
        message = (
            "routes are enabled and this cluster does not serve HTTPRoute of gateway.networking.k8s.io/v1, so there is no "
            "HTTPRoute: install the Gateway API, or set GATEWAY_API_ENABLED to false for the operator"
        )
        notes.append(kaos.note("GatewayUnserved", message))
        return None
    prefix = f"/{workload.namespace}/{ROUTE_PREFIX}/{workload.name}"
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": prefix}}],
        "filters": _filters(request),
        "backendRefs": [
            {"kind": "Service", "name": workload.child_name, "port": request.settings["servicePort"]},
        ],
    }
    if timeout != "0s":
        rule["timeouts"] = {"request": _spelled(timeout, path, notes)}
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway["name"]}
    if gateway["namespace"]:
        parent["namespace"] = gateway["namespace"]
    api_version, kind = ROUTE
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": workload.metadata(workload.route_name, request.settings),
        "spec": {"parentRefs": [parent], "rules": [rule]},
    }


def _filters(request):
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    filters = [{"type": "URLRewrite", "urlRewrite": rewrite}]
    if security.settings_of(request.settings)["targetHeader"]:
        target = f"kaos://{APP}/{request.workload.namespace}/{request.workload.name}"
        header = {"set": [{"name": "x-kaos-target-resource", "value": target}]}
        filters.insert(0, {"type": "RequestHeaderModifier", "requestHeaderModifier": header})
    return filters


def _spelled(timeout, path, notes):
    """Returns the timeout in a form that the Gateway API accepts, unchanged if possible."""
    spelled = for_gateway(timeout)
    if spelled is None:
        message = (
            f"`{kaos.shown(timeout, 40)}` is longer than the Gateway API allows (99999h): write a shorter timeout, or 0s for "
            "none"
        )
        raise kaos.invalid(path, message)
    if spelled != timeout:
        message = (
            f"`{timeout}` is written `{spelled}` in the HTTPRoute: the Gateway API allows at most five digits in a "
            "number"
        )
        notes.append(kaos.note("TimeoutRespelled", message, path, warning=False))
    return spelled


def for_gateway(timeout):
    """Splits numbers with too many digits: 100000s becomes 27h46m40s. Returns None for a duration that is too long."""
    parts = _PART.findall(timeout)
    if all(len(digits) <= 5 for digits, _ in parts):
        return timeout
    # A number with more than 18 digits is a timeout that is too long, in any unit.
    if any(len(digits.lstrip("0")) > 18 for digits, _ in parts):
        return None
    rest = sum(int(digits) * _UNITS[unit] for digits, unit in parts)
    spelled = ""
    for unit, size in _UNITS.items():
        number, rest = divmod(rest, size)
        if number > 99_999:
            return None
        if number:
            spelled += f"{number}{unit}"
    return spelled or "0s"
