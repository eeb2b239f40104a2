//! Checks manifests against Kubernetes' types. Each check parses a manifest as the Rust type of its kind, and writes
//! the result as JSON again.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment, core::v1, networking::v1::NetworkPolicy, policy::v1::PodDisruptionBudget,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Checks that the manifest can be parsed as the Rust type of its kind.
pub fn readable(manifest: &Value) -> Result<()> {
    read_and_written(manifest).map(drop)
}

/// Checks that the Rust type of the manifest's kind has every field of the manifest: parsing and writing must lose no
/// field.
pub fn lossless(manifest: &Value) -> Result<()> {
    let written = read_and_written(manifest)?;
    nothing_lost(manifest, &written, "")
}

fn read_and_written(manifest: &Value) -> Result<Value> {
    let (version, kind) = (&manifest["apiVersion"], &manifest["kind"]);
    match (version.as_str().unwrap_or_default(), kind.as_str().unwrap_or_default()) {
        ("apps/v1", "Deployment") => through::<Deployment>(manifest),
        ("v1", "ConfigMap") => through::<v1::ConfigMap>(manifest),
        ("v1", "Secret") => through::<v1::Secret>(manifest),
        ("v1", "Service") => through::<v1::Service>(manifest),
        ("v1", "PersistentVolumeClaim") => through::<v1::PersistentVolumeClaim>(manifest),
        ("policy/v1", "PodDisruptionBudget") => through::<PodDisruptionBudget>(manifest),
        ("v1", "ServiceAccount") => through::<v1::ServiceAccount>(manifest),
        ("networking.k8s.io/v1", "NetworkPolicy") => through::<NetworkPolicy>(manifest),
        // Return the manifest unchanged, because the tests have no Rust type for this kind.
        ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy") => Ok(manifest.clone()),
        ("gateway.networking.k8s.io/v1", "HTTPRoute") => route(manifest).map(|()| manifest.clone()),
        _ => bail!("the default policies may not emit the kind {version} {kind}"),
    }
}

fn through<T: DeserializeOwned + Serialize>(manifest: &Value) -> Result<Value> {
    let typed: T = serde_json::from_value(manifest.clone()).with_context(|| manifest["kind"].to_string())?;
    Ok(serde_json::to_value(typed)?)
}

/// Checks that `after` contains every field of `before`. In `after`, quantities may be strings, and fields with the
/// value null may be missing.
fn nothing_lost(before: &Value, after: &Value, path: &str) -> Result<()> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().filter(|(_, value)| !value.is_null()).try_for_each(|(name, value)| {
                let path = format!("{path}.{name}");
                nothing_lost(value, after.get(name).with_context(|| format!("{path} is lost"))?, &path)
            })
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let mut pairs = before.iter().zip(after).enumerate();
            pairs.try_for_each(|(i, (before, after))| nothing_lost(before, after, &format!("{path}[{i}]")))
        }
        (Value::Number(before), Value::String(after)) if before.to_string() == *after => Ok(()),
        _ if before == after => Ok(()),
        _ => bail!("{path}: {before} became {after}"),
    }
}

/// Checks the required fields of a route and their types. The tests have no Rust types for the Gateway API.
fn route(manifest: &Value) -> Result<()> {
    let spec = &manifest["spec"];
    let list = |value: &Value, what: &str| {
        value.as_array().filter(|items| !items.is_empty()).cloned().with_context(|| format!("{what} is empty"))
    };
    for parent in list(&spec["parentRefs"], "parentRefs")? {
        ensure!(parent["name"].is_string(), "a parentRef without a name");
    }
    for rule in list(&spec["rules"], "rules")? {
        for found in list(&rule["matches"], "matches")? {
            let path = &found["path"];
            ensure!(path["type"].is_string() && path["value"].as_str().is_some_and(|it| it.starts_with('/')), "{path}");
        }
        for backend in list(&rule["backendRefs"], "backendRefs")? {
            ensure!(backend["name"].is_string() && backend["port"].is_u64(), "{backend}");
        }
        for limit in rule["timeouts"].as_object().into_iter().flat_map(|timeouts| timeouts.values()) {
            ensure!(limit.as_str().is_some_and(|it| it.starts_with(|first: char| first.is_ascii_digit())), "{limit}");
        }
    }
    Ok(())
}
