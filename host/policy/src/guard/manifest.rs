//! One manifest: its type, its place, its metadata.

use serde_json::{Map, Value};

use super::{
    Breach, Rule,
    plan::{Rules, type_of},
};
use crate::{
    describe::is_cluster_power,
    names::{is_key, is_label, is_label_value, is_subdomain},
    stamp::{APPLIED_DIGEST, HASH_STANDS_FOR, POD_SPEC_HASH},
};

/// The only metadata that a policy has a say in.
const METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];
/// Labels and annotations with a meaning for the host; a policy that sets one would speak in its name.
const RESERVED: [&str; 5] =
    [APPLIED_DIGEST, POD_SPEC_HASH, HASH_STANDS_FOR, "kaos.tools/policy", "kaos.tools/policy-revision"];
/// Bytes of all annotations of one object, as Kubernetes has it.
const ANNOTATIONS: usize = 256 << 10;

/// How messages call a manifest.
pub(super) fn path(index: usize, manifest: &Value) -> String {
    match (manifest["kind"].as_str(), manifest["metadata"]["name"].as_str()) {
        (Some(kind), Some(name)) => format!("manifests[{index}] ({kind} {name})"),
        _ => format!("manifests[{index}]"),
    }
}

pub(super) fn check(path: &str, manifest: &Value, rules: &Rules<'_>, breaches: &mut Vec<Breach>) {
    let mut breach =
        |rule, at: &str, message: String| breaches.push(Breach { rule, path: format!("{path}{at}"), message });
    let Some(fields) = manifest.as_object() else {
        return breach(Rule::WellFormed, "", "is not an object".to_owned());
    };
    let of = type_of(manifest);
    if !rules.claim.emits.contains(&of) {
        breach(Rule::EmitsClaimed, "", format!("{of} is not a type that the claim emits"));
    }
    if is_cluster_power(&of) {
        breach(Rule::NoClusterPower, "", format!("{of} is cluster-scoped or grants rights"));
    }
    if fields.contains_key("status") {
        breach(Rule::HostMetadata, " status", "is the cluster's to write".to_owned());
    }
    let Some(metadata) = manifest["metadata"].as_object() else {
        return breach(Rule::WellFormed, " metadata", "is not an object".to_owned());
    };
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    let valid = if of.group().is_empty() && of.kind == "Service" { is_label(name) } else { is_subdomain(name) };
    if !valid {
        breach(Rule::ValidNames, " metadata.name", format!("`{name}` is not a name for this kind"));
    }
    match metadata.get("namespace") {
        None => {}
        Some(Value::String(namespace)) if *namespace == rules.owner.namespace => {}
        Some(other) => {
            let message = format!("{other} is not the object's namespace {}", rules.owner.namespace);
            breach(Rule::OwnNamespace, " metadata.namespace", message);
        }
    }
    if of.group() == rules.owner.of_type().group() && of.kind == rules.owner.kind && name == rules.owner.name {
        breach(Rule::NotItself, "", "is the object itself".to_owned());
    }
    for field in metadata.keys().filter(|field| !METADATA.contains(&field.as_str())) {
        breach(Rule::HostMetadata, &format!(" metadata.{field}"), "is not a policy's to write".to_owned());
    }
    labels(metadata.get("labels"), &mut breach);
    annotations(metadata.get("annotations"), &mut breach);
}

fn labels(labels: Option<&Value>, breach: &mut impl FnMut(Rule, &str, String)) {
    for (key, value) in entries(labels, " metadata.labels", breach) {
        let at = format!(" metadata.labels[\"{key}\"]");
        if RESERVED.contains(&key.as_str()) {
            breach(Rule::HostMetadata, &at, "is the host's to write".to_owned());
        }
        if !is_key(key) || !value.as_str().is_some_and(is_label_value) {
            breach(Rule::ValidNames, &at, format!("{value} is not a label"));
        }
    }
}

fn annotations(annotations: Option<&Value>, breach: &mut impl FnMut(Rule, &str, String)) {
    let mut bytes = 0;
    for (key, value) in entries(annotations, " metadata.annotations", breach) {
        let at = format!(" metadata.annotations[\"{key}\"]");
        if RESERVED.contains(&key.as_str()) {
            breach(Rule::HostMetadata, &at, "is the host's to write".to_owned());
        }
        if !is_key(&key.to_lowercase()) || !value.is_string() {
            breach(Rule::ValidNames, &at, "is not an annotation".to_owned());
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS {
        breach(Rule::Bounded, " metadata.annotations", format!("{bytes} bytes, at most {ANNOTATIONS}"));
    }
}

fn entries<'a, B: FnMut(Rule, &str, String)>(
    map: Option<&'a Value>,
    at: &str,
    breach: &mut B,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a, B> {
    if map.is_some_and(|map| !map.is_object() && !map.is_null()) {
        breach(Rule::WellFormed, at, "is not an object".to_owned());
    }
    map.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}
