//! The mapping of environment variables. Each variable has a typed source and an origin. A container has at most one
//! variable of each name.
//!
//! [`Env`] builds the mapping. [`to_json`], [`from_json`] and [`of_pod_spec`] convert between the mapping and a
//! container's `env` array. Call [`check_patch`] before you merge a user's pod spec, and [`each_once`] after the merge.

mod convert;
mod mapping;
mod order;

use alloc::{borrow::ToOwned, string::String};
pub use convert::{check_patch, from_json, of_pod_spec, to_json};
pub use mapping::{ContainerEnv, Env};
pub use order::each_once;

use crate::types::{EnvSource, KeySelector};
use crate::{json, object};
use serde_json::Value;

/// Returns a literal value. Kubernetes expands `$(NAME)` in the value if the variable NAME is defined earlier. For text
/// that Kubernetes must not expand, use [`ContainerEnv::set`].
pub fn literal(value: impl Into<String>) -> EnvSource {
    EnvSource::Literal(value.into())
}

/// Returns a reference to a key of a Secret.
pub fn secret_key(name: &str, key: &str) -> EnvSource {
    EnvSource::SecretKey(KeySelector { name: name.to_owned(), key: key.to_owned(), optional: false })
}

/// Returns a reference to a key of a ConfigMap.
pub fn config_map_key(name: &str, key: &str) -> EnvSource {
    EnvSource::ConfigMapKey(KeySelector { name: name.to_owned(), key: key.to_owned(), optional: false })
}

/// Returns `source` as an optional reference: if the object or the key is missing, the pod starts without the variable.
/// Changes only references to keys of Secrets and ConfigMaps.
pub fn optional(mut source: EnvSource) -> EnvSource {
    if let EnvSource::SecretKey(selector) | EnvSource::ConfigMapKey(selector) = &mut source {
        selector.optional = true;
    }
    source
}

/// Returns `source` with the field `optional` as the user wrote it. Changes only references to keys of Secrets and
/// ConfigMaps. Kubernetes reads false like an absent field. But if the manifest lost the user's false, it would differ
/// from the manifest of an earlier operator, and the pods would restart.
pub fn with_optional(source: EnvSource, written: Option<bool>) -> EnvSource {
    match (written, source) {
        (Some(true), source) => optional(source),
        // The typed source cannot distinguish false from an absent field.
        (Some(false), EnvSource::SecretKey(selector)) => other(&object! { "secretKeyRef": required(&selector) }),
        (Some(false), EnvSource::ConfigMapKey(selector)) => other(&object! { "configMapKeyRef": required(&selector) }),
        (_, source) => source,
    }
}

fn required(selector: &KeySelector) -> Value {
    object! { "name": selector.name.as_str(), "key": selector.key.as_str(), "optional": false }
}

/// Returns a reference to a field of the pod, for example `metadata.name`.
pub fn field(path: &str) -> EnvSource {
    EnvSource::FieldPath(path.to_owned())
}

/// Returns any other source. `value_from` is the content of Kubernetes' field `valueFrom`.
pub fn other(value_from: &Value) -> EnvSource {
    EnvSource::Other(json::text(value_from))
}
