//! Converts values between the types of the contract and the types of the SDK.

use kaos_policy_sdk::types as sdk;
use serde_json::{Value, json};

use crate::bindings::types::{EnvSource, EnvVar, KeySelector};

/// Converts a refusal of the SDK to a value of the script. The functions for the mapping refuse only invalid objects.
pub(crate) fn refused(refusal: &sdk::Refusal) -> Value {
    match refusal {
        sdk::Refusal::Invalid(list) => {
            let list: Vec<_> = list.iter().map(|it| json!({"path": it.path, "message": it.message})).collect();
            json!({"tag": "invalid", "val": list})
        }
        sdk::Refusal::Waiting(_) => json!({"tag": "unsupported", "val": "the variables wait for another object"}),
        sdk::Refusal::Unsupported(message) => json!({"tag": "unsupported", "val": message}),
    }
}

pub(crate) fn to_sdk(EnvVar { container, name, source, origin }: EnvVar) -> sdk::EnvVar {
    sdk::EnvVar { container, name, source: source_to_sdk(source), origin }
}

pub(crate) fn of_sdk(sdk::EnvVar { container, name, source, origin }: sdk::EnvVar) -> EnvVar {
    let key = |sdk::KeySelector { name, key, optional }| KeySelector { name, key, optional };
    let source = match source {
        sdk::EnvSource::Literal(text) => EnvSource::Literal(text),
        sdk::EnvSource::SecretKey(selector) => EnvSource::SecretKey(key(selector)),
        sdk::EnvSource::ConfigMapKey(selector) => EnvSource::ConfigMapKey(key(selector)),
        sdk::EnvSource::FieldPath(path) => EnvSource::FieldPath(path),
        sdk::EnvSource::Other(json) => EnvSource::Other(json),
    };
    EnvVar { container, name, source, origin }
}

pub(crate) fn source_to_sdk(source: EnvSource) -> sdk::EnvSource {
    let key = |KeySelector { name, key, optional }| sdk::KeySelector { name, key, optional };
    match source {
        EnvSource::Literal(text) => sdk::EnvSource::Literal(text),
        EnvSource::SecretKey(selector) => sdk::EnvSource::SecretKey(key(selector)),
        EnvSource::ConfigMapKey(selector) => sdk::EnvSource::ConfigMapKey(key(selector)),
        EnvSource::FieldPath(path) => sdk::EnvSource::FieldPath(path),
        EnvSource::Other(json) => sdk::EnvSource::Other(json),
    }
}
