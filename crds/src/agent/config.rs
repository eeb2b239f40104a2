//! The configuration of an Agent: its instructions, limits, memory and telemetry.

use alloc::{string::String, vec::Vec};
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Memory;
use crate::{EnvVar, Telemetry, defaults};

/// Instructions and behaviour of the Agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The purpose of the Agent, in one sentence. Other Agents see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The instructions that the model gets with every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// A system prompt that, unlike instructions, is retained in the conversation's history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The maximum number of steps of reasoning and tool use in a request, 1 to 20. Not set: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 20)))]
    pub reasoning_loop_max_steps: Option<i32>,
    /// How the model receives its tools. Not set: auto.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_mode: Option<ToolCallMode>,
    /// Memory of the Agent. Not set: the runtime's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// OpenTelemetry export. Not set: the cluster's settings apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// Makes the Agent work on a goal repeatedly, without requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autonomous: Option<Autonomous>,
    /// Limits of tasks that run in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_config: Option<TaskConfig>,
    /// Deprecated: use the field reasoningLoopMaxSteps instead of maxSteps. The fields enableTools and enableDelegation
    /// have no successor. The Agent still gets the values of all these fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agentic_loop: Option<AgenticLoop>,
    /// Deprecated: use container.env. Instead of the variable MODEL_NAME, set the field model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
}

impl Config {
    /// Returns the maximum number of steps: the value of `reasoningLoopMaxSteps`, the value of its older alias, or the
    /// default.
    pub fn max_steps(&self) -> i32 {
        self.reasoning_loop_max_steps
            .or_else(|| self.agentic_loop.as_ref()?.max_steps)
            .unwrap_or(defaults::REASONING_LOOP_MAX_STEPS)
    }
}

/// How the model receives its tools. Not set: auto.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ToolCallMode {
    /// The runtime chooses the best way for the model.
    Auto,
    /// The model's native tool calls.
    Native,
    /// The tools as text in the prompt.
    String,
}

impl ToolCallMode {
    /// Returns this value as a spec spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::String => "string",
        }
    }
}

/// Work on a goal without requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Autonomous {
    /// The goal. The Agent is autonomous if the goal is not blank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The pause between two iterations in seconds, 0 to 3600. Not set: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 3600)))]
    pub interval_seconds: Option<i32>,
    /// The maximum duration of an iteration in seconds, 0 to 86400. Not set: 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 86400)))]
    pub max_iter_runtime_seconds: Option<i32>,
}

/// Limits of tasks that run in the background.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaskConfig {
    /// The maximum number of iterations of a task, 0 to 1000. 0 is no limit. Not set: 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1000)))]
    pub max_iterations: Option<i32>,
    /// The maximum duration of a task in seconds, 0 to 86400. Not set: 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 86400)))]
    pub max_runtime_seconds: Option<i32>,
    /// The maximum number of tool calls of a task, 0 to 10000. Not set: 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 10000)))]
    pub max_tool_calls: Option<i32>,
}

/// The older form of the limits on reasoning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgenticLoop {
    /// Deprecated: use the field config.reasoningLoopMaxSteps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 20)))]
    pub max_steps: Option<i32>,
    /// Deprecated, without a successor: whether the Agent may call tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_tools: Option<bool>,
    /// Deprecated, without a successor: whether the Agent may delegate to its peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_delegation: Option<bool>,
}
