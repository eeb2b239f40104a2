"""Builds the objects that protect a server: a SecurityPolicy at its route, and a NetworkPolicy around its pods."""

import re

import kaos

GATEWAY_POLICY = ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy")
NETWORK_POLICY = ("networking.k8s.io/v1", "NetworkPolicy")
AGENT_HEADER = "x-agent-authorization"

# The build compiles the patterns.
_END_OF_HOST = re.compile(r"[/?#]")
_NUMBER = re.compile(r"\+?[0-9]+")

# The settings without protection. The group `security` is null unless a layer sets one of its settings.
_OFF = {
    "targetHeader": False,
    "pdp": False,
    "authorizer": "",
    "jwtOptional": True,
    "agents": {"issuer": "", "jwks": "", "audience": ""},
    "users": {"issuer": "", "audience": "", "jwksUri": ""},
    "strict": False,
    "networkPolicy": {"disabled": False, "egress": False},
    "gatewayNamespace": "",
    "operatorNamespace": "",
}


def settings_of(settings):
    """Returns the group `security` of the settings."""
    own = settings["security"] or {}
    return {name: {**off, **own.get(name, {})} if isinstance(off, dict) else own.get(name, off) for name, off in _OFF.items()}


def protection(request, has_route):
    """Returns the objects that protect a server. Refuses the object if the cluster does not serve their types."""
    own = settings_of(request.settings)
    is_on = own["pdp"] or own["authorizer"] != ""
    manifests = []
    if has_route and is_on:
        _require(request, GATEWAY_POLICY)
        manifests.append(_gateway_policy(request, own))
    if is_on and not own["networkPolicy"]["disabled"] or own["strict"]:
        _require(request, NETWORK_POLICY)
        manifests.append(_network_policy(request, own, is_on))
    return manifests


def _require(request, type):
    if not request.serves(type):
        api_version, kind = type
        raise kaos.unsupported(
            f"the operator cannot create a {kind} of {api_version}, so this object would be open to every caller: install "
            "this type and remove it from the operator's flag --without, or turn off the setting `security`"
        )


def _authorizer(request, own):
    """Returns the address of the decision point."""
    return own["authorizer"] or f"kaos-pdp.{request.subject.cluster.operator_namespace}.svc:9191"


def _manifest(request, type, spec):
    api_version, kind = type
    metadata = request.workload.metadata(request.workload.route_name, request.settings)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _gateway_policy(request, own):
    """Builds the SecurityPolicy of Envoy Gateway. Refuses incomplete settings."""
    agents, users = own["agents"], own["users"]
    backend = service(_authorizer(request, own))
    unset = (
        "is not set, so the Gateway cannot check the tokens of Agents: in the settings for the cluster, set it to the output "
        "of "
    )
    wrong = kaos.Violations()
    for holds, setting, message in [
        (backend, "authorizer", "is not the address of a Service: write name.namespace.svc:port"),
        (
            agents["issuer"],
            "agents.issuer",
            unset + "`kubectl get --raw /.well-known/openid-configuration`, field issuer",
        ),
        (agents["jwks"], "agents.jwks", unset + "`kubectl get --raw /openid/v1/jwks`"),
        (
            agents["audience"],
            "agents.audience",
            "is not set, so the Gateway would accept every token of the cluster: in the settings for the cluster, set it to "
            "the audience of the Agents' tokens, for example kaos-gateway",
        ),
    ]:
        wrong.require(holds, f"settings.security.{setting}", message)
    wrong.refuse()
    providers = [{
        "name": "agent",
        "issuer": agents["issuer"],
        "audiences": [agents["audience"]],
        "localJWKS": {"type": "Inline", "inline": agents["jwks"]},
        "extractFrom": {"headers": [{"name": AGENT_HEADER, "valuePrefix": "Bearer "}]},
        "claimToHeaders": [{"claim": "sub", "header": "x-agent-claim-sub"}],
    }]
    if users["issuer"]:
        keys = users["jwksUri"] or users["issuer"].rstrip("/") + "/protocol/openid-connect/certs"
        user = {
            "name": "user",
            "issuer": users["issuer"],
            "remoteJWKS": {"uri": keys},
            "claimToHeaders": [
                {"claim": "sub", "header": "x-user-claim-sub"},
                {"claim": "preferred_username", "header": "x-user-claim-username"},
            ],
        }
        if users["audience"]:
            user["audiences"] = [users["audience"]]
        providers.append(user)
    tokens = {"providers": providers, "optional": True} if own["jwtOptional"] else {"providers": providers}
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": request.workload.route_name}
    decision = {
        "failOpen": False,
        "headersToExtAuth": ["authorization", AGENT_HEADER],
        "grpc": {"backendRefs": [backend]},
    }
    return _manifest(request, GATEWAY_POLICY, {"targetRefs": [target], "jwt": tokens, "extAuth": decision})


def _network_policy(request, own, is_on):
    """Builds the NetworkPolicy around the pods."""
    operator = own["operatorNamespace"] or request.subject.cluster.operator_namespace
    # The dict removes a repeated namespace, and keeps the order.
    trusted = dict.fromkeys([own["gatewayNamespace"] or "envoy-gateway-system", operator])
    spec = {
        "podSelector": {"matchLabels": request.workload.selector()},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": _peers(trusted)}],
    }
    if own["networkPolicy"]["egress"]:
        others = [namespace(own["users"]["issuer"]), namespace(own["users"]["jwksUri"])]
        others += [namespace_of_service(_authorizer(request, own))] if is_on else []
        trusted.update(dict.fromkeys(filter(None, others)))
        ports = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
        spec["policyTypes"] = ["Ingress", "Egress"]
        spec["egress"] = [{"to": _peers(["kube-system"]), "ports": ports}, {"to": _peers(trusted)}]
    return _manifest(request, NETWORK_POLICY, spec)


def _peers(names):
    """Returns the peers that match all pods of these namespaces."""
    return [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}} for name in names]


def _host(url):
    """Returns the DNS labels of the host, and the port of a URL. The scheme and the port are optional."""
    rest = url.partition("://")[2] if "://" in url else url
    authority = _END_OF_HOST.split(rest, maxsplit=1)[0].rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    return (host if colon else authority).split("."), port if colon else ""


def service(url):
    """Reads name.namespace.svc:port. The text can also have a scheme and the rest of the domain. Returns the reference
    to the Service for the Gateway, or None if the text is no such address."""
    labels, port = _host(url)
    if len(labels) < 2 or not labels[0] or not labels[1] or labels[2:3] not in ([], ["svc"]):
        return None
    if not _NUMBER.fullmatch(port) or int(port) > 65535:
        return None
    return {"name": labels[0], "namespace": labels[1], "port": int(port)}


def namespace(url):
    """Returns the namespace in the URL of a Service, or None for a host outside of the cluster."""
    labels, _ = _host(url)
    return labels[1] if labels[2:3] == ["svc"] and labels[1] else None


def namespace_of_service(address):
    """Returns the namespace in the address of a Service. The address can lack .svc or the port. Returns None for a host
    outside of the cluster."""
    backend = service(address)
    return backend["namespace"] if backend else namespace(address)
