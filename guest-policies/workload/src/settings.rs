//! The settings that all policies for kinds with a Deployment share.
//!
//! A policy's settings type contains these types and further fields. The `Default` of the settings type is the single
//! source of defaults. The host passes complete settings, so a field is optional only if its absence has a meaning.

use alloc::string::String;
use kaos_policy_sdk::{Decode, object};
use serde_json::{Map, Value};
#[cfg(feature = "schema")]
use {schemars::JsonSchema, serde::Serialize};

/// A JSON object in Kubernetes' own format, for example a `SecurityContext`.
pub type Raw = Map<String, Value>;

/// The kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Handler {
    /// GET on `path`.
    HttpGet,
    /// A connection to the port.
    TcpSocket,
    /// No probe.
    None,
}

/// The scheme of an HTTP probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
pub enum Scheme {
    /// HTTP without TLS.
    #[serde(rename = "HTTP")]
    Http,
    /// TLS, without checking the certificate.
    #[serde(rename = "HTTPS")]
    Https,
}

/// One probe of the main container.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Probe {
    /// Kind of the probe.
    pub handler: Handler,
    /// Path of an HTTP probe.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^/")))]
    pub path: String,
    /// Port of the probe; null selects the container port.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub port: Option<u16>,
    /// Scheme of an HTTP probe.
    pub scheme: Scheme,
    /// Seconds before the first probe.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = i32::MAX)))]
    pub initial_delay_seconds: u32,
    /// Seconds between probes.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = i32::MAX)))]
    pub period_seconds: u32,
    /// Seconds until a probe counts as failed.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = i32::MAX)))]
    pub timeout_seconds: u32,
    /// Failures in a row that make the container unhealthy.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = i32::MAX)))]
    pub failure_threshold: u32,
    /// Successes in a row that make the container healthy again; 1 for liveness.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = i32::MAX)))]
    pub success_threshold: u32,
}

impl Probe {
    /// Returns an HTTP probe that starts after `delay` seconds and runs every `period` seconds. The other fields have
    /// Kubernetes' defaults.
    pub fn http(path: &str, delay: u32, period: u32) -> Self {
        Self {
            handler: Handler::HttpGet,
            path: path.into(),
            port: None,
            scheme: Scheme::Http,
            initial_delay_seconds: delay,
            period_seconds: period,
            timeout_seconds: 1,
            failure_threshold: 3,
            success_threshold: 1,
        }
    }

    /// Like [`Probe::http`], but the probe opens a TCP connection.
    pub fn tcp(delay: u32, period: u32) -> Self {
        Self { handler: Handler::TcpSocket, ..Self::http("/", delay, period) }
    }

    /// Returns the probe in Kubernetes' format, for a container that listens on `port`. `None` if the settings turn the
    /// probe off.
    pub(crate) fn manifest(&self, port: u16) -> Option<Value> {
        let port = self.port.unwrap_or(port);
        let scheme = if self.scheme == Scheme::Https { "HTTPS" } else { "HTTP" };
        let (name, handler) = match self.handler {
            Handler::None => return None,
            Handler::HttpGet => ("httpGet", object! { "path": self.path.as_str(), "port": port, "scheme": scheme }),
            Handler::TcpSocket => ("tcpSocket", object! { "port": port }),
        };
        let mut probe = object! {
            "initialDelaySeconds": self.initial_delay_seconds,
            "periodSeconds": self.period_seconds,
            "timeoutSeconds": self.timeout_seconds,
            "failureThreshold": self.failure_threshold,
            "successThreshold": self.success_threshold,
        };
        probe[name] = handler;
        Some(probe)
    }
}

/// The pull policy of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
pub enum PullPolicy {
    /// Pulls at each start of a pod.
    Always,
    /// Pulls if the node lacks the image.
    IfNotPresent,
    /// Never pulls.
    Never,
}

impl PullPolicy {
    /// Returns the policy in Kubernetes' spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// The type of Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
pub enum ServiceType {
    /// Inside the cluster.
    ClusterIP,
    /// On a port of every node.
    NodePort,
    /// Through a load balancer.
    LoadBalancer,
}

impl ServiceType {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterIP => "ClusterIP",
            Self::NodePort => "NodePort",
            Self::LoadBalancer => "LoadBalancer",
        }
    }
}

/// The Gateway that routes to the workloads.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gateway {
    /// Whether exposed objects get an HTTPRoute, if the cluster serves that type.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "GATEWAY_API_ENABLED")))]
    pub enabled: bool,
    /// Name of the Gateway.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::shape::any_object_name", extend("x-env" = "GATEWAY_NAME")))]
    pub name: String,
    /// Namespace of the Gateway; empty selects the object's namespace.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::shape::any_namespace", extend("x-env" = "GATEWAY_NAMESPACE")))]
    pub namespace: String,
    /// Request timeout of objects that set no timeout, such as `1h30m`; `0s` sets no limit.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^([0-9]+(h|m|s|ms)){1,4}$")))]
    pub timeout: String,
}

impl Gateway {
    /// Returns settings that disable routes. `timeout` is the default timeout of routes that a user enables.
    pub fn off(timeout: &str) -> Self {
        Self { enabled: false, name: String::new(), namespace: String::new(), timeout: timeout.into() }
    }
}

/// OpenTelemetry for objects that do not configure it themselves.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Whether telemetry is enabled.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "DEFAULT_TELEMETRY_ENABLED")))]
    pub enabled: bool,
    /// OTLP gRPC endpoint.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "DEFAULT_TELEMETRY_ENDPOINT")))]
    pub endpoint: String,
    /// Paths that are not traced, joined by commas.
    pub excluded_urls: String,
}

impl TelemetrySettings {
    /// Returns settings that disable telemetry. `excluded_urls` is the default after a user enables telemetry.
    pub fn off(excluded_urls: &str) -> Self {
        Self { enabled: false, endpoint: String::new(), excluded_urls: excluded_urls.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_probe_asks_the_container_port_unless_it_has_its_own() {
        let mut probe = Probe::http("/health", 30, 10);
        assert_eq!(probe.manifest(8000).unwrap()["httpGet"]["port"], 8000);
        probe.port = Some(9);
        assert_eq!(probe.manifest(8000).unwrap()["httpGet"]["port"], 9);
    }

    #[test]
    fn a_tcp_probe_has_no_http_handler_and_type_none_removes_the_probe() {
        let mut probe = Probe::tcp(20, 10);
        let manifest = probe.manifest(8000).unwrap();
        assert_eq!(manifest["tcpSocket"], json!({"port": 8000}));
        assert!(manifest.get("httpGet").is_none());
        probe.handler = Handler::None;
        assert!(probe.manifest(8000).is_none());
    }
}
