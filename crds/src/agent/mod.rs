//! Agent: a model, its instructions, its tools and its peers, served by one workload.

mod config;
mod harness;
mod memory;

use alloc::{string::String, vec::Vec};
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use config::{AgenticLoop, Autonomous, Config, TaskConfig, ToolCallMode};
pub use harness::{Harness, Workspace};
pub use memory::{FailureMode, Memory, MemoryClientParams, MemoryTools, MemoryType, ReadScope};

use crate::{Container, EnvVar, GatewayRoute, defaults};

/// The desired state of the Agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(CustomResource, KubeSchema))]
#[cfg_attr(
    feature = "schema",
    kube(
        group = "kaos.tools",
        version = "v1alpha1",
        kind = "Agent",
        plural = "agents",
        singular = "agent",
        shortname = "agent",
        shortname = "agents",
        category = "kaos",
        namespaced,
        status = "crate::Status",
        doc = "Agent runs a language model with instructions, tools and peers as an HTTP service.",
        scale(
            spec_replicas_path = ".spec.replicas",
            status_replicas_path = ".status.replicas",
            label_selector_path = ".status.selector"
        ),
        printcolumn(name = "ModelAPI", type_ = "string", json_path = ".spec.modelAPI"),
        printcolumn(name = "Model", type_ = "string", json_path = ".spec.model"),
        printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint", priority = 1),
        printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy.version", priority = 1),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
    )
)]
#[cfg_attr(feature = "schema", x_kube(validation = crate::schema::rules::agent_model()))]
#[serde(rename_all = "camelCase")]
pub struct AgentSpec {
    /// The ModelAPI in the same namespace that serves the model.
    #[serde(rename = "modelAPI")]
    pub model_api: String,
    /// The model. The ModelAPI must offer this model. Required, unless the older config.env has MODEL_NAME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The MCPServers in the same namespace whose tools the Agent may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
    /// How the Agent and other Agents reach each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_network: Option<AgentNetwork>,
    /// Instructions and behaviour of the Agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// Whether the first creation waits until the ModelAPI and the MCPServers are ready. Later, unready dependencies
    /// neither delay nor stop the Agent.
    #[serde(
        default = "defaults::flag::<{ defaults::WAIT_FOR_DEPENDENCIES }>",
        deserialize_with = "defaults::flag_or::<_, { defaults::WAIT_FOR_DEPENDENCIES }>"
    )]
    pub wait_for_dependencies: bool,
    /// The route through the cluster's Gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_route: Option<GatewayRoute>,
    /// Runs the Agent in a coding harness instead of the default runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<Harness>,
    /// Changes to the container named agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Changes to the generated pod spec, as a strategic merge patch. The generated container is named agent. Fields
    /// that are not listed here also work. null removes a generated field, and $patch works as in kubectl patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::pod_spec"))]
    pub pod_spec: Option<Value>,
    /// The number of pods. kubectl scale and autoscalers also set this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0), extend("default" = crate::defaults::REPLICAS)))]
    pub replicas: Option<i32>,
    /// Deprecated: use container.resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::resources"))]
    pub resources: Option<Value>,
}

impl AgentSpec {
    /// Whether the Agent has a Service and an endpoint.
    pub fn exposed(&self) -> bool {
        self.agent_network.as_ref().map_or(defaults::EXPOSE, |network| network.expose)
    }

    /// Returns the model from the field `model`, or from its older alias: the literal value of `MODEL_NAME` in
    /// `config.env`. `None` if both are missing.
    pub fn model(&self) -> Option<&str> {
        self.own_model().or_else(|| filled(self.older_model()?.value.as_deref()))
    }

    /// Returns the model from the field `model`, or `None` if this field is missing or empty.
    pub fn own_model(&self) -> Option<&str> {
        filled(self.model.as_deref())
    }

    /// Returns the variable `MODEL_NAME` in `config.env`, or `None` if this variable is missing. The value of this
    /// variable can come from another object, for example from a Secret.
    pub fn older_model(&self) -> Option<&EnvVar> {
        self.config.as_ref()?.env.iter().find(|variable| variable.name == "MODEL_NAME")
    }
}

/// Treats an empty text as unset.
fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// How the Agent and other Agents reach each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentNetwork {
    /// Whether the Agent has a Service, and a route if the Gateway API is enabled, so that other workloads can call the
    /// Agent.
    #[serde(
        default = "defaults::flag::<{ defaults::EXPOSE }>",
        deserialize_with = "defaults::flag_or::<_, { defaults::EXPOSE }>"
    )]
    pub expose: bool,
    /// The Agents in the same namespace that this Agent may delegate to. The operator adds an Agent of this list as
    /// soon as the Agent exists and is exposed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<String>,
}
