"""The effective telemetry of one object. Each field that the object does not set comes from the settings."""

from dataclasses import dataclass

import kaos
from names import CONTAINER


@dataclass
class Telemetry:
    """The telemetry, and the origins of its values."""

    path: str
    enabled: bool
    enabled_origin: str
    endpoint: str
    endpoint_origin: str

    @staticmethod
    def of(request):
        """Returns the telemetry of a request."""
        settings, own, path = request.settings["telemetry"], request.wanted.telemetry or {}, request.wanted.telemetry_path
        telemetry = Telemetry(
            path,
            settings["enabled"],
            "settings.telemetry.enabled",
            settings["endpoint"],
            "settings.telemetry.endpoint",
        )
        if own.get("enabled") is not None:
            telemetry.enabled, telemetry.enabled_origin = own["enabled"], f"{path}.enabled"
        if own.get("endpoint"):
            telemetry.endpoint, telemetry.endpoint_origin = own["endpoint"], f"{path}.endpoint"
        return telemetry

    def set_env(self, env, request):
        """Sets the variables of Python's OpenTelemetry SDK."""
        if not self.enabled:
            return
        workload = request.workload
        env.set(CONTAINER, "OTEL_SDK_DISABLED", "false", self.enabled_origin)
        env.set(CONTAINER, "OTEL_SERVICE_NAME", workload.name, self.enabled_origin)
        if self.endpoint:
            # Kubernetes expands variables in the endpoint, such as http://$(HOST_IP):4317.
            endpoint = kaos.EnvSource_Literal(self.endpoint)
            env.bind(CONTAINER, "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, self.endpoint_origin)
        attributes = f"service.namespace={workload.namespace},kaos.resource.name={workload.name}"
        env.set(CONTAINER, "OTEL_RESOURCE_ATTRIBUTES", attributes, self.enabled_origin)
        excluded = request.settings["telemetry"]["excludedUrls"]
        if excluded:
            env.set(CONTAINER, "OTEL_PYTHON_FASTAPI_EXCLUDED_URLS", excluded, "settings.telemetry.excludedUrls")

    def notes(self):
        """Returns a warning if telemetry has no endpoint."""
        if not self.enabled or self.endpoint:
            return []
        message = (
            "telemetry is enabled without an endpoint: the pods export nothing; set the endpoint, or "
            "DEFAULT_TELEMETRY_ENDPOINT for the operator"
        )
        return [kaos.note("TelemetryWithoutEndpoint", message, f"{self.path}.endpoint")]

    def conditions(self):
        """Returns the condition on the endpoint if telemetry is enabled."""
        of = "TelemetryConfigured"
        if not self.enabled:
            return []
        if self.endpoint:
            return [kaos.condition(of, True, "Configured", f"exported to {self.endpoint}")]
        return [kaos.condition(of, False, "NoEndpoint", "telemetry is enabled without an endpoint")]
