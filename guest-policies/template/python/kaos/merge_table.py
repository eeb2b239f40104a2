"""The merge rules of pod specs and containers, from the tags patchMergeKey and patchStrategy of k8s.io/api v0.36."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Type:
    """The fields with a merge rule, and the members that exclude each other."""

    fields: dict = field(default_factory=dict)
    # A patch can set at most one of these members.
    among: tuple = ()
    # If not None, a patch can set the member of this name and at most one other member.
    all_but: str | None = None
    # If the patch gives the member of this name a new value, the merge removes all members of the base.
    by: str | None = None

    def is_rival(self, key):
        """Returns whether a member is one of the members that exclude each other."""
        return key in self.among if self.all_but is None else key != self.all_but and not is_directive(key)


@dataclass(frozen=True)
class Rule:
    """The merge rule of a field: an object with its own rules, a list that merges by a key, or a set."""

    of: Type | None = None
    key: str = ""
    is_set: bool = False


def is_directive(key):
    """Returns whether a member of this name is a directive and not content."""
    return key in ("$patch", "$retainKeys") or key.startswith(("$setElementOrder/", "$deleteFromPrimitiveList/"))


def _list(key, of):
    return Rule(of, key)


PLAIN = Type()
NO_RULE = Rule()
_BY_TYPE = Type(by="type")
METADATA = Type({"finalizers": Rule(is_set=True), "ownerReferences": _list("uid", PLAIN)})
_SECURITY_CONTEXT = Type({"appArmorProfile": Rule(_BY_TYPE), "seccompProfile": Rule(_BY_TYPE)})
_HANDLER = Type(among=("exec", "grpc", "httpGet", "sleep", "tcpSocket"))
_VARIABLE = Type({"valueFrom": Rule(Type(all_but=""))}, among=("value", "valueFrom"))
_CLAIM_TEMPLATE = Type({"volumeClaimTemplate": Rule(Type({"metadata": Rule(METADATA)}))})
_VOLUME = Type({"ephemeral": Rule(_CLAIM_TEMPLATE)}, all_but="name")

CONTAINER = Type({
    "env": _list("name", _VARIABLE),
    "lifecycle": Rule(Type({"postStart": Rule(_HANDLER), "preStop": Rule(_HANDLER)})),
    "livenessProbe": Rule(_HANDLER),
    "ports": _list("containerPort", PLAIN),
    "readinessProbe": Rule(_HANDLER),
    "securityContext": Rule(_SECURITY_CONTEXT),
    "startupProbe": Rule(_HANDLER),
    "volumeDevices": _list("devicePath", PLAIN),
    "volumeMounts": _list("mountPath", PLAIN),
})

POD_SPEC = Type({
    "containers": _list("name", CONTAINER),
    "ephemeralContainers": _list("name", CONTAINER),
    "hostAliases": _list("ip", PLAIN),
    "imagePullSecrets": _list("name", PLAIN),
    "initContainers": _list("name", CONTAINER),
    "resourceClaims": _list("name", Type(all_but="name")),
    "schedulingGates": _list("name", PLAIN),
    "securityContext": Rule(_SECURITY_CONTEXT),
    "topologySpreadConstraints": _list("topologyKey", PLAIN),
    "volumes": _list("name", _VOLUME),
})
