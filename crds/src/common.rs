//! Types that several kinds share: routes, telemetry, key selectors.

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The HTTPRoute through the cluster's Gateway. The operator creates the route only if its settings enable the Gateway
/// API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GatewayRoute {
    /// Timeout of a request through the Gateway, for example "30s", "5m" or "1h30m". "0s" sets no limit on the route.
    /// Not set: the cluster's default for this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^([0-9]+(h|m|s|ms)){1,4}$")))]
    pub timeout: Option<String>,
}

/// OpenTelemetry export of traces, metrics and logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Telemetry {
    /// Whether this workload exports telemetry. Not set: the cluster's setting applies, even if endpoint is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The OTLP gRPC endpoint, for example "http://otel-collector.observability:4317". Not set: the cluster's endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// One key of a Secret or ConfigMap in the object's namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KeySelector {
    /// The name of the Secret or ConfigMap.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The key in the Secret or ConfigMap.
    pub key: String,
    /// Whether the pod may start without the key. Not set: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}
