"""Builds the status: phase, endpoint, tools and conditions."""

import json
from dataclasses import dataclass

import functions
import kaos
from expose import ROUTE
from names import CONTAINER
from reasons import COMMAND_IS_FLAGS, PARAMS_UNUSED, REQUIRED_ENV_MISSING
from request import Request, at, workload_of
from telemetry import Telemetry
from wanted import DEPRECATED, Wanted

# Notes that also become conditions, with the type and the reason of the condition.
WARNED = {
    PARAMS_UNUSED: ("ParamsApplied", "NoVariable"),
    REQUIRED_ENV_MISSING: ("EnvironmentComplete", "Missing"),
    COMMAND_IS_FLAGS: ("CommandUsable", "BeginsWithFlag"),
}
COUNTS = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")


def assess(subject, seen):
    """Returns the report for the object's status."""
    settings, spec = json.loads(subject.settings), json.loads(subject.object).get("spec") or {}
    workload = workload_of(subject)
    rollout = Rollout.of(_live(seen, ("apps/v1", "Deployment"), workload.child_name), spec.get("replicas"))
    phase, message = _verdict(seen, rollout)
    selector = ",".join(f"{key}={value}" for key, value in workload.selector().items())
    fields = {"replicas": rollout.replicas, "selector": selector}
    port = _port(seen, workload, settings)
    if port:
        fields["endpoint"] = workload.endpoint(port)
    if rollout.status is not None:
        fields["deployment"] = rollout.status
    conditions = _routed(seen, _live(seen, ROUTE, workload.route_name))
    try:
        request = Request.of(subject)
        wanted = request.wanted
    except kaos.Refused:
        # An object that waits also gets the condition about its older fields.
        request, wanted = None, _wanted(spec)
    if request:
        tools = _available_tools(request, seen.env)
        if tools:
            fields["availableTools"] = tools
        conditions += Telemetry.of(request).conditions()
    conditions += _runtime_resolved(seen.outcome, request is not None)
    for of, (type, reason) in WARNED.items():
        note = next((note for note in seen.notes if note.reason == of), None)
        if note:
            conditions.append(kaos.condition(type, False, reason, note.message))
    older = [note.message for note in (wanted.notes if wanted else []) if note.reason == DEPRECATED]
    if older:
        conditions.append(kaos.condition(DEPRECATED, True, "OlderFields", "; ".join(older)))
    return kaos.report(phase == "Ready", phase, message, fields, conditions)


def _wanted(spec):
    try:
        return Wanted.of(spec)
    except kaos.Refused:
        return None


def _live(seen, type, name):
    for child in seen.children:
        identity = child.identity
        if (identity.api_version, identity.kind) == type and identity.name == name:
            return None if child.live is None else json.loads(child.live)
    return None


def _port(seen, workload, settings):
    """Returns the port of the endpoint. Other objects can use the endpoint, so it stays while the Service exists, even
    if the policy refuses the object."""
    if isinstance(seen.outcome, (kaos.Outcome_Applied, kaos.Outcome_Gated)):
        return settings["servicePort"]
    service = _live(seen, ("v1", "Service"), workload.child_name)
    ports = at(service, "spec.ports") or []
    return ports[0].get("port") if ports else None


def _verdict(seen, rollout):
    """Returns the phase and the message. If an object has serving pods but waits for another object, only its pods decide
    the phase."""
    outcome = seen.outcome
    refusal = outcome.value if isinstance(outcome, kaos.Outcome_Refused) else None
    if isinstance(outcome, kaos.Outcome_Failed):
        return "Failed", outcome.value
    if isinstance(refusal, kaos.Refusal_Invalid):
        return "Failed", "; ".join(f"{violation.path}: {violation.message}" for violation in refusal.value)
    if isinstance(refusal, kaos.Refusal_Unsupported):
        return "Failed", refusal.value
    if not isinstance(outcome, kaos.Outcome_Applied) and not rollout.serves:
        blockers = refusal.value if refusal else seen.gates
        return "Waiting", blockers[0].message if blockers else "waiting"
    return "Ready" if rollout.serves else "Pending", rollout.message


@dataclass
class Rollout:
    """The counts of a live Deployment. If the Deployment does not exist yet, `status` is None."""

    replicas: int
    serves: bool
    message: str
    status: dict | None

    @staticmethod
    def of(live, wanted):
        """Reads a live Deployment. `wanted` is the number of wanted pods while the Deployment does not exist."""
        if live is None:
            return Rollout(0, False, f"Deployment ready replicas: 0/{1 if wanted is None else wanted}", None)
        status = live.get("status") or {}
        wanted = at(live, "spec.replicas")
        wanted = 1 if wanted is None else wanted
        count = lambda field: status.get(field) or 0  # noqa: E731
        updated = count("updatedReplicas")
        # The number of available pods must be larger than the number of old pods, so at least one available pod is new.
        serves = (
            count("observedGeneration") >= live["metadata"].get("generation", 0)
            and wanted > 0
            and updated > 0
            and count("availableReplicas") > max(count("replicas") - updated, 0)
        )
        message = f"Deployment ready replicas: {count('readyReplicas')}/{wanted}"
        if wanted == 0:
            message += " (scaled to zero)"
        trouble = _trouble(status)
        if trouble and not serves:
            message += f"; {trouble}"
        return Rollout(count("replicas"), serves, message, _block(status))


def _trouble(status):
    """Returns the message of the condition that explains why pods are missing, or None."""
    for type, holds in [("ReplicaFailure", "True"), ("Progressing", "False")]:
        found = next((of for of in status.get("conditions") or [] if of.get("type") == type), {})
        if found.get("status") == holds:
            return found.get("message")
    return None


def _block(status):
    """Returns the content of `status.deployment`: the counts that are not zero, and the conditions."""
    block = {field: status[field] for field in COUNTS if status.get(field)}
    conditions = []
    for of in status.get("conditions") or []:
        if of.get("type") and of.get("status"):
            own = {field: of.get(field) or "" for field in ("type", "status", "reason", "message")}
            own["reason"] = own["reason"] or "Unknown"
            if "lastTransitionTime" in of:
                own["lastTransitionTime"] = of["lastTransitionTime"]
            conditions.append(own)
    if conditions:
        block["conditions"] = conditions
    return block


def _routed(seen, route):
    """Returns the Gateway controller's verdict on the route, or why there is no route although routes are enabled."""
    of = "Routed"
    note = next((note for note in seen.notes if note.reason.startswith("Gateway")), None)
    if note:
        return [kaos.condition(of, False, note.reason, note.message)]
    if route is None:
        return []
    parents = at(route, "status.parents") or []
    conditions = [condition for parent in parents for condition in parent.get("conditions") or []]
    for condition in conditions:
        if condition.get("status") == "False":
            return [kaos.condition(of, False, condition.get("reason", ""), condition.get("message", ""))]
    if any((condition.get("type"), condition.get("status")) == ("Accepted", "True") for condition in conditions):
        return [kaos.condition(of, True, "Accepted", "the Gateway accepted the route")]
    return [kaos.condition(of, None, "Pending", "no Gateway has accepted the route yet")]


def _runtime_resolved(outcome, is_resolved):
    """Returns the condition that shows whether the registry has a valid entry for the runtime."""
    of = "RuntimeResolved"
    if is_resolved:
        return [kaos.condition(of, True, "Resolved", "the runtime is known")]
    refusal = outcome.value if isinstance(outcome, kaos.Outcome_Refused) else None
    if isinstance(refusal, kaos.Refusal_Invalid):
        wrong = [of for of in refusal.value if of.path in ("spec.runtime", "spec.container.image")]
        return [kaos.condition(of, False, "Unknown", wrong[0].message)] if wrong else []
    if isinstance(refusal, kaos.Refusal_Waiting) and refusal.value:
        return [kaos.condition(of, False, refusal.value[0].reason, refusal.value[0].message)]
    return []


def _available_tools(request, env):
    """Returns the functions in the container's Python parameters, or else the registry's list of tools."""
    launch, params = request.launch, request.wanted.params
    if not launch.params_are_python or not launch.params_env_var:
        return launch.tools
    for variable in env:
        if (variable.container, variable.name) == (CONTAINER, launch.params_env_var):
            is_text = isinstance(variable.source, kaos.EnvSource_Literal)
            return functions.top_level(variable.source.value) if is_text else launch.tools
    return functions.top_level(params.text) if params and params.secret is None else launch.tools
