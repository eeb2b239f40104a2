//! Merges the object's OpenTelemetry fields with the settings, and sets the variables.

use crate::kind::Workload;
use crate::settings::TelemetrySettings;
use alloc::string::String;
use kaos_policy_sdk::env::{ContainerEnv, literal};
use kaos_policy_sdk::types::{Condition, Note};
use kaos_policy_sdk::{condition, note};

/// The effective telemetry of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry<'a> {
    /// Whether telemetry is enabled.
    pub enabled: bool,
    /// The OTLP endpoint.
    pub endpoint: Option<&'a str>,
    /// The origin of `enabled`.
    pub enabled_origin: String,
    /// The origin of `endpoint`.
    pub endpoint_origin: String,
    /// The path of the telemetry fields in the object, for notes.
    path: &'a str,
}

impl<'a> Telemetry<'a> {
    /// Merges the object's fields at `path` with the settings. If the object does not set a field, the settings apply.
    /// So an object that sets only an endpoint does not disable telemetry.
    pub fn merge(
        enabled: Option<bool>,
        endpoint: Option<&'a str>,
        settings: &'a TelemetrySettings,
        path: &'a str,
    ) -> Self {
        let own = endpoint.filter(|text| !text.is_empty());
        let global = Some(settings.endpoint.as_str()).filter(|text| !text.is_empty());
        let origin = |is_own: bool, field: &str| {
            if is_own { format!("{path}.{field}") } else { format!("settings.telemetry.{field}") }
        };
        Self {
            enabled: enabled.unwrap_or(settings.enabled),
            endpoint: own.or(global),
            enabled_origin: origin(enabled.is_some(), "enabled"),
            endpoint_origin: origin(own.is_some(), "endpoint"),
            path,
        }
    }

    /// Sets the variables of Python's OpenTelemetry SDK, if telemetry is enabled.
    pub fn set_env(&self, env: &mut ContainerEnv<'_>, workload: &Workload<'_>, excluded_urls: &str) {
        if !self.enabled {
            return;
        }
        let on = &self.enabled_origin;
        let attributes = format!("service.namespace={},kaos.resource.name={}", workload.namespace, workload.name);
        env.set("OTEL_SDK_DISABLED", "false", on).set("OTEL_SERVICE_NAME", workload.name, on);
        self.set_endpoint(env);
        env.set("OTEL_RESOURCE_ATTRIBUTES", attributes, on).set_some(
            "OTEL_PYTHON_FASTAPI_EXCLUDED_URLS",
            Some(excluded_urls),
            "settings.telemetry.excludedUrls",
        );
    }

    /// Sets the variable with the address of the endpoint. Kubernetes expands variables in the endpoint, such as
    /// `http://$(HOST_IP):4317` for a collector on each node. An address contains `$(` only if the user wants this
    /// expansion.
    pub fn set_endpoint(&self, env: &mut ContainerEnv<'_>) {
        if let Some(endpoint) = self.endpoint {
            env.bind("OTEL_EXPORTER_OTLP_ENDPOINT", literal(endpoint), &self.endpoint_origin);
        }
    }

    /// Returns a warning if telemetry is enabled without an endpoint, and `None` otherwise.
    pub fn note(&self) -> Option<Note> {
        let message = "telemetry is enabled without an endpoint: the pods export nothing; set the endpoint, or \
            DEFAULT_TELEMETRY_ENDPOINT for the operator";
        (self.enabled && self.endpoint.is_none())
            .then(|| note::at(format!("{}.endpoint", self.path), note::warning("TelemetryWithoutEndpoint", message)))
    }

    /// Builds the condition `TelemetryConfigured`, if telemetry is enabled.
    pub fn condition(&self) -> Option<Condition> {
        match (self.enabled, self.endpoint) {
            (false, _) => None,
            (true, Some(endpoint)) => {
                Some(condition::yes("TelemetryConfigured", "Configured", format!("exported to {endpoint}")))
            }
            (true, None) => {
                Some(condition::no("TelemetryConfigured", "NoEndpoint", "telemetry is enabled without an endpoint"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(enabled: bool, endpoint: &str) -> TelemetrySettings {
        TelemetrySettings { enabled, endpoint: endpoint.into(), excluded_urls: String::new() }
    }

    #[test]
    fn an_object_that_sets_only_an_endpoint_stays_on() {
        let settings = global(true, "http://global");
        let merged = Telemetry::merge(None, Some("http://own"), &settings, "spec.telemetry");
        assert!(merged.enabled);
        assert_eq!(merged.endpoint, Some("http://own"));
        assert_eq!(merged.endpoint_origin, "spec.telemetry.endpoint");
        assert_eq!(merged.enabled_origin, "settings.telemetry.enabled");
    }

    #[test]
    fn an_object_can_turn_it_off_and_on() {
        assert!(!Telemetry::merge(Some(false), None, &global(true, "e"), "p").enabled);
        let on = global(false, "e");
        let merged = Telemetry::merge(Some(true), Some(""), &on, "p");
        assert!(merged.enabled);
        assert_eq!(merged.endpoint, Some("e"));
    }

    #[test]
    fn telemetry_without_an_endpoint_is_reported() {
        let settings = global(true, "");
        let merged = Telemetry::merge(None, None, &settings, "spec.telemetry");
        assert_eq!(merged.note().unwrap().path.as_deref(), Some("spec.telemetry.endpoint"));
        assert_eq!(merged.condition().unwrap().reason, "NoEndpoint");
        let off = global(false, "");
        let quiet = Telemetry::merge(None, None, &off, "p");
        assert!(quiet.note().is_none() && quiet.condition().is_none());
    }
}
