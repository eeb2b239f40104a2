//! Checks one manifest: its type, namespace and name.

use serde_json::Value;

use super::{Rule, breaches::Breaches, metadata, rules::Rules};
use crate::{
    contract::ResourceType,
    cut::{VALUE, cut},
    describe::{is_cluster_power, opens_a_namespace},
    names::{is_label, is_subdomain},
};

/// The maximum number of characters of a name in a message.
const NAME: usize = 253;

/// Returns a path for messages that names a manifest by its index, kind and name.
pub(super) fn path(index: usize, manifest: &Value) -> String {
    let short = |text: &str| text.chars().take(NAME).collect::<String>();
    match (manifest["kind"].as_str(), manifest["metadata"]["name"].as_str()) {
        (Some(kind), Some(name)) => format!("manifests[{index}] ({} {})", short(kind), short(name)),
        _ => format!("manifests[{index}]"),
    }
}

/// Checks one manifest. Does not check the type if `is_below` is true: then the plan of the layer below has the same
/// manifest.
pub(super) fn check(path: &str, manifest: &Value, is_below: bool, rules: &Rules<'_>, breaches: &mut Breaches) {
    let mut breach = |rule, at: &str, message: String| breaches.add(rule, format_args!("{path}{at}"), message);
    let Some(fields) = manifest.as_object() else {
        return breach(Rule::WellFormed, "", "is not an object".to_owned());
    };
    let of = ResourceType::of_object(manifest);
    if !is_below && !rules.claim.emits.contains(&of) {
        breach(Rule::EmitsClaimed, "", format!("{of} is not a type that the claim emits"));
    }
    if is_cluster_power(&of) || opens_a_namespace(&of) {
        let message = format!("{of} is cluster-scoped, grants rights or redirects traffic: no policy may emit it");
        breach(Rule::NoClusterPower, "", message);
    }
    if fields.contains_key("status") {
        breach(Rule::HostMetadata, " status", "may be written by the cluster only".to_owned());
    }
    let Some(metadata) = manifest["metadata"].as_object() else {
        return breach(Rule::WellFormed, " metadata", "is not an object".to_owned());
    };
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    let valid = if of.is_service() { is_label(name) } else { is_subdomain(name) };
    if !valid {
        let message = format!("`{}` is not a valid name for an object of this kind", cut(name, VALUE));
        breach(Rule::ValidNames, " metadata.name", message);
    }
    match metadata.get("namespace") {
        None => {}
        Some(Value::String(namespace)) if *namespace == rules.owner.namespace => {}
        Some(other) => {
            let other = cut(&other.to_string(), VALUE).into_owned();
            let message = format!("{other} is not the object's namespace {}", rules.owner.namespace);
            breach(Rule::OwnNamespace, " metadata.namespace", message);
        }
    }
    if of.group() == rules.owner.of_type().group() && of.kind == rules.owner.kind && name == rules.owner.name {
        breach(Rule::NotItself, "", "is the object for which the policy answers: no policy may emit it".to_owned());
    }
    metadata::check(path, manifest, breaches);
}
