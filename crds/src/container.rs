//! The changes that a user may make to the generated container.

use alloc::{string::String, vec::Vec};
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Changes to the generated container. What is set here wins over what the operator generates; to change
/// anything else of the pod, use podSpec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// The image to run instead of the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Replaces the generated command. An empty list means the image's own entrypoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Replaces the generated arguments. An empty list means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// CPU, memory and other resources that the container asks for and is limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::resources"))]
    pub resources: Option<Value>,
    /// Environment variables. A variable that the operator sets too has the value given here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Security options of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::security_context"))]
    pub security_context: Option<Value>,
    /// The directory that the container starts in. Not set: the image's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Where volumes are mounted; the volumes themselves go into podSpec.volumes.
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
    /// Its value. $(NAME) stands for a variable defined before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where the value comes from, instead of value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::kubernetes::env_source"))]
    pub value_from: Option<Value>,
}
