//! The changes that a user may make to the generated container.

use alloc::{string::String, vec::Vec};
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Changes to the generated container. These fields win over the generated fields. Use podSpec to change other parts of
/// the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// The image, instead of the default image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Replaces the generated command. An empty list selects the image's own entrypoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Replaces the generated arguments. An empty list selects no arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Requests and limits for CPU, memory and other resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::resources"))]
    pub resources: Option<Value>,
    /// Environment variables. These variables win over variables of the same name that the operator sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Security options of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::security_context"))]
    pub security_context: Option<Value>,
    /// The working directory of the container. Not set: the image's own directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Mounts of volumes. Define the volumes in the field podSpec.volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::volume_mounts"))]
    pub volume_mounts: Vec<Value>,
}

/// One environment variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// The name of the variable.
    pub name: String,
    /// The value. $(NAME) stands for a variable that the list defines earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The source of the value, instead of the field value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::env_source"))]
    pub value_from: Option<Value>,
}
