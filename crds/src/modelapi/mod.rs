//! ModelAPI: an endpoint that serves models, either a proxy to providers or models hosted in the cluster.

use alloc::{string::String, vec::Vec};
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use kube::{CustomResource, KubeSchema};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod config_yaml;
mod offered;

pub use config_yaml::{ConfigSource, ConfigYaml};
pub use offered::offered;

use crate::{Container, EnvVar, GatewayRoute, KeySelector, Telemetry};

/// The desired state of the ModelAPI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(CustomResource, KubeSchema))]
#[cfg_attr(
    feature = "schema",
    kube(
        group = "kaos.tools",
        version = "v1alpha1",
        kind = "ModelAPI",
        plural = "modelapis",
        singular = "modelapi",
        shortname = "api",
        shortname = "apis",
        category = "kaos",
        namespaced,
        status = "crate::Status",
        doc = "ModelAPI serves language models to Agents: through a proxy to providers, or hosted in the cluster.",
        scale(
            spec_replicas_path = ".spec.replicas",
            status_replicas_path = ".status.replicas",
            label_selector_path = ".status.selector"
        ),
        printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
        printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint", priority = 1),
        printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy.version", priority = 1),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
    )
)]
#[cfg_attr(feature = "schema", x_kube(validation = crate::schema::rules::hosted_model()))]
#[serde(rename_all = "camelCase")]
pub struct ModelAPISpec {
    /// Proxy forwards requests to model providers and needs the field proxyConfig. Hosted runs a model in the cluster
    /// and needs the field hostedConfig.
    pub mode: Mode,
    /// The proxy, if mode is Proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_config: Option<ProxyConfig>,
    /// The hosted model, if mode is Hosted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted_config: Option<HostedConfig>,
    /// The route through the cluster's Gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_route: Option<GatewayRoute>,
    /// OpenTelemetry export, in mode Proxy. Not set: the cluster's settings apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// Changes to the container named model-api.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Changes to the generated pod spec, as a strategic merge patch. The generated container is named model-api.
    /// Fields that are not listed here also work. null removes a generated field, and $patch works as in kubectl patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::pod_spec"))]
    pub pod_spec: Option<Value>,
    /// The number of pods. kubectl scale and autoscalers also set this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0), extend("default" = crate::defaults::REPLICAS)))]
    pub replicas: Option<i32>,
    /// Deprecated: use the fields hostedConfig.model and container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_config: Option<ServerConfig>,
}

/// Proxy forwards requests to model providers and needs the field proxyConfig. Hosted runs a model in the cluster and
/// needs the field hostedConfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum Mode {
    /// Forwards requests to model providers.
    Proxy,
    /// Runs a model in the cluster.
    Hosted,
}

/// A proxy to model providers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProxyConfig {
    /// The models to offer: a name, all models of a provider ("openai/*"), or all models ("*"). Not set: the older
    /// field model applies. If neither field is set, the proxy offers all models.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub models: Option<Vec<String>>,
    /// The provider of all models. The proxy puts the provider before each model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The base URL of the provider's API. Not set: the provider's own URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_base: Option<String>,
    /// The API key of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<ApiKey>,
    /// A complete LiteLLM configuration instead of the generated configuration, in the field fromString or
    /// fromSecretKeyRef. Each model in this configuration must match an entry of the field models. Deprecated: a text
    /// instead of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_yaml: Option<ConfigYaml>,
    /// Deprecated: use the field models, which takes a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Deprecated: use container.env.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
}

/// The API key of a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// The key as plain text. Every user who may read the ModelAPI can read the key, so prefer a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The source of the key, instead of the field value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ApiKeySource>,
}

/// The source of a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApiKeySource {
    /// A key of a Secret in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeySelector>,
    /// A key of a ConfigMap in the same namespace. Used if the field secretKeyRef is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeySelector>,
}

/// A model hosted in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostedConfig {
    /// The Ollama model to pull and serve, for example "smollm2:135m". Required, unless the older field
    /// serverConfig.model is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Deprecated: use container.env.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
}

/// The older form of a hosted model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerConfig {
    /// Deprecated: use the field hostedConfig.model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Deprecated: use container.env.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Deprecated: use container.resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::resources"))]
    pub resources: Option<Value>,
}
