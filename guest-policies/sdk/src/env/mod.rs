//! The env-var mapping: typed sources, an origin for every value, no name twice.
//!
//! Building it is [`Env`]; the way to and from a container's `env` array is [`to_json`], [`from_json`] and
//! [`of_pod_spec`]; [`check_patch`] comes before a user's pod spec is merged, and [`each_once`] after that.

mod convert;
mod mapping;
mod order;

use alloc::{borrow::ToOwned, string::String};
pub use convert::{check_patch, from_json, of_pod_spec, to_json};
pub use mapping::{ContainerEnv, Env};
pub use order::each_once;

use crate::json;
use crate::types::{EnvSource, KeySelector};
use serde_json::Value;

/// The value, as Kubernetes spells it: `$(NAME)` stands for a variable defined before. [`ContainerEnv::set`] is for a text
/// that means itself.
pub fn literal(value: impl Into<String>) -> EnvSource {
    EnvSource::Literal(value.into())
}

/// A key of a Secret.
pub fn secret_key(name: &str, key: &str) -> EnvSource {
    EnvSource::SecretKey(KeySelector { name: name.to_owned(), key: key.to_owned(), optional: false })
}

/// A field of the pod, for example `metadata.name`.
pub fn field(path: &str) -> EnvSource {
    EnvSource::FieldPath(path.to_owned())
}

/// Any other `valueFrom`, as Kubernetes spells it.
pub fn other(value_from: &Value) -> EnvSource {
    EnvSource::Other(json::text(value_from))
}
