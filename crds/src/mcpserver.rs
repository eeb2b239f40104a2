//! MCPServer: tools for Agents, served over the Model Context Protocol.

use alloc::{string::String, vec::Vec};
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use kube::{CustomResource, KubeSchema};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Container, EnvVar, GatewayRoute, KeySelector, Telemetry};

/// The desired state of the MCPServer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(CustomResource, KubeSchema))]
#[cfg_attr(
    feature = "schema",
    kube(
        group = "kaos.tools",
        version = "v1alpha1",
        kind = "MCPServer",
        plural = "mcpservers",
        singular = "mcpserver",
        shortname = "mcp",
        shortname = "mcps",
        category = "kaos",
        namespaced,
        status = "crate::Status",
        doc = "MCPServer offers tools to Agents over the Model Context Protocol.",
        scale(
            spec_replicas_path = ".spec.replicas",
            status_replicas_path = ".status.replicas",
            label_selector_path = ".status.selector"
        ),
        printcolumn(name = "Runtime", type_ = "string", json_path = ".spec.runtime"),
        printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint", priority = 1),
        printcolumn(name = "Tools", type_ = "string", json_path = ".status.availableTools", priority = 1),
        printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy.version", priority = 1),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
    )
)]
#[cfg_attr(feature = "schema", x_kube(validation = crate::schema::rules::runtime()))]
#[serde(rename_all = "camelCase")]
pub struct MCPServerSpec {
    /// The runtime of the tools: a key of the ConfigMap kaos-mcp-runtimes in the operator's namespace, for example
    /// python-string, or custom for the image in container. Required, unless an older form is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The input of the runtime: for python-string, the Python source of the tools. The container gets the input in the
    /// environment variable that the runtime names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The ServiceAccount of the pods, in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// OpenTelemetry export. Not set: the cluster's settings apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// The route through the cluster's Gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_route: Option<GatewayRoute>,
    /// Changes to the container named mcp-server. If the field runtime is custom, set the field image here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Changes to the generated pod spec, as a strategic merge patch. The generated container is named mcp-server.
    /// Fields that are not listed here also work. null removes a generated field, and $patch works as in kubectl patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::pod_spec"))]
    pub pod_spec: Option<Value>,
    /// The number of pods. kubectl scale and autoscalers also set this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0), extend("default" = crate::defaults::REPLICAS)))]
    pub replicas: Option<i32>,
    /// Deprecated: use the field runtime. The types are python-runtime and node-runtime.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Deprecated: use the field runtime with the field params or container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<McpConfig>,
    /// Deprecated: use container.resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::resources"))]
    pub resources: Option<Value>,
}

/// The older form of the tools of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpConfig {
    /// Deprecated: set the field runtime to custom, or to a runtime of the ConfigMap kaos-mcp-runtimes. A Python
    /// package that the pod installs and runs at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<String>,
    /// Deprecated: set the field runtime to python-string, and use the field params.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_string: Option<String>,
    /// Deprecated: use the fields runtime and params.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<McpTools>,
    /// Deprecated: use container.env.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Deprecated: use spec.telemetry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
}

/// The older form of the source of a server's tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpTools {
    /// Deprecated: set the field runtime to custom, or to a runtime of the ConfigMap kaos-mcp-runtimes. A Python
    /// package that the pod installs and runs at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_package: Option<String>,
    /// Deprecated: set the field runtime to python-string, and use the field params.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_string: Option<String>,
    /// Deprecated: set the field runtime to python-string, and use the variable MCP_TOOLS_STRING in container.env. A
    /// key of a Secret that holds the Python source of the tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_secret_key_ref: Option<KeySelector>,
}
