"""The default policy of the kind MCPServer, in Python. The operator ships the same policy in Rust, and a test compares
the answers of both to every recorded case. So this policy shows how a policy of a real size looks in Python.

    the fields of the object, older forms included   wanted.py
    the registry of runtimes                         registry.py
    the start of the container                       launch.py
    everything about one subject                     request.py
    manifests                                        pod.py, checks.py, expose.py, security.py
    status                                           status.py, with the tools that functions.py finds
"""

import json
from pathlib import Path

import expose
import kaos
import reasons
import registry
import security
import status
from names import API_VERSION, CONTAINER
from pod import deployment
from request import Request, spec_of, workload_of
from telemetry import Telemetry
from wanted import Wanted


def _read(path):
    return json.loads((Path(__file__).parent / path).read_text())


# These lines run at build time, and the component contains the results. So the component reads no files.
SCHEMA = _read("settings.schema.json")
REGISTRY_SAMPLE = _read("samples/registry.json")
PYTHON_SAMPLE = _read("samples/python-string.json")
CUSTOM_SAMPLE = _read("samples/custom.json")


def describe():
    """Returns the claim on the kind MCPServer."""
    wishes = [expose.ROUTE, security.GATEWAY_POLICY, security.NETWORK_POLICY]
    claim = kaos.claim(
        API_VERSION,
        "MCPServer",
        emits=[("apps/v1", "Deployment"), ("v1", "Service"), *wishes],
        samples={"python-string": (PYTHON_SAMPLE, [REGISTRY_SAMPLE]), "custom": CUSTOM_SAMPLE},
        reads=[("v1", "ConfigMap")],
        wishes=wishes,
    )
    return kaos.descriptor("mcpserver", "0.1.0", [claim], SCHEMA)


def needs(subject):
    """Returns the need for the registry, if the object names a runtime. The need is optional if the settings contain the
    runtime."""
    settings = json.loads(subject.settings)
    try:
        runtime = Wanted.of(spec_of(subject)).source.runtime
    except kaos.Refused:
        # `translate` decodes the object again, and returns the same refusal.
        return []
    if runtime is None:
        return []
    field = kaos.key("data", settings["registry"]["key"])
    on = registry.reference(settings, subject)
    return [kaos.named(registry.ID, on, [field], optional=runtime in settings["runtimes"])]


def map_env(subject, base):
    """Maps the variables: parameters, the user's variables, telemetry, log level."""
    request = Request.of(subject)
    env = kaos.Env(base)
    variable, params = request.launch.params_env_var, request.wanted.params
    if variable and params:
        # The registry chose this variable for the parameters, so they win over the policy's later values for it.
        env.hold(CONTAINER, variable, params.source(), params.path)
    for field, of in [("config", request.spec.get("config")), ("container", request.spec.get("container"))]:
        env.user(CONTAINER, (of or {}).get("env"), f"spec.{field}.env")
    Telemetry.of(request).set_env(env, request)
    return env.set(CONTAINER, "LOG_LEVEL", request.settings["logLevel"], "settings.logLevel").vars()


def translate(subject, env):
    """Returns the plan: a Deployment, its Service, and, if enabled, an HTTPRoute and the server's protection."""
    wrong = workload_of(subject).check_name()
    plan = wrong.collect(lambda: _plan(Request.of(subject), env))
    wrong.refuse()
    return plan


def _plan(request, env):
    notes = request.wanted.notes + request.launch.notes
    wrong = kaos.Violations()
    pods = wrong.collect(deployment, request, env, notes)
    entrance = wrong.collect(expose.entrance, request, notes)
    wrong.refuse()
    child, mapping = pods
    notes += _missing_env(request, child[0]) + Telemetry.of(request).notes() + _unused_params(request)
    finalizer = request.settings["finalizer"] or None
    return kaos.plan(mapping, child, expose.service(request), *entrance, notes=notes, finalizer=finalizer)


def _unused_params(request):
    """Returns a note on parameters if the runtime has no variable for them."""
    if request.wanted.params is None or request.launch.params_env_var:
        return []
    message = (
        "this runtime names no variable for parameters, so the container does not get the parameters: set the container's "
        "variables in container.env, or set paramsEnvVar in the registry"
    )
    return [kaos.note(reasons.PARAMS_UNUSED, message, request.wanted.params.path)]


def _missing_env(request, manifest):
    """Returns a note on variables that the runtime requires and the container lacks."""
    containers = manifest["spec"]["template"]["spec"]["containers"]
    main = next(container for container in containers if container.get("name") == CONTAINER)
    # The ConfigMaps and Secrets in `envFrom` can contain the missing variables.
    if main.get("envFrom"):
        return []
    names = {variable.get("name") for variable in main.get("env", [])}
    missing = [required for required in request.launch.required_env if required not in names]
    if not missing:
        return []
    message = f"in container.env, the variables are missing that this runtime needs: {', '.join(missing)}"
    return [kaos.note(reasons.REQUIRED_ENV_MISSING, message, "spec.container.env")]


def assess(subject, seen):
    """Returns the status: phase, endpoint, tools and conditions."""
    return status.assess(subject, seen)
