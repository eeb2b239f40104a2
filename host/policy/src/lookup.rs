//! A view of the cluster that consists of a fixed set of objects.

use std::sync::Arc;

pub use kaos_objects::lookup::{Lookup, MAX_FOUND_BYTES, MAX_READ, Sighting};
use serde_json::Value;

use crate::contract::{Reference, ResourceType, SecretFacts, Target};

/// The answer to a need for Secrets by labels.
pub const SECRETS_BY_NAME: &str = "Secrets are read by name, never by label";

/// A fixed set of objects: files on a laptop, or the samples of a claim.
#[derive(Debug, Default, Clone)]
pub struct Fixed {
    objects: Vec<Arc<Value>>,
}

impl Fixed {
    /// Creates a view of exactly these objects.
    pub fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        Self { objects: objects.into_iter().map(Arc::new).collect() }
    }
}

impl Lookup for Fixed {
    fn look_up(&self, target: &Target) -> Sighting {
        if target.of().is_secret() && matches!(target, Target::Labelled(_)) {
            return Sighting::Forbidden(SECRETS_BY_NAME.to_owned());
        }
        let matches = |object: &&Arc<Value>| matches(object, target);
        let mut objects: Vec<_> = self.objects.iter().filter(matches).cloned().collect();
        objects.sort_by_key(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        if target.of().is_secret() {
            return Sighting::Secret(secret_facts(objects.first()));
        }
        Sighting::Objects(objects)
    }

    /// Treats every type as namespaced.
    fn is_cluster_scoped(&self, _: &ResourceType) -> bool {
        false
    }
}

fn matches(object: &Value, target: &Target) -> bool {
    let of = target.of();
    let metadata = &object["metadata"];
    object["apiVersion"] == *of.api_version
        && object["kind"] == *of.kind
        && metadata["namespace"].as_str() == target.namespace()
        && match target {
            Target::Named(Reference { name, .. }) => metadata["name"] == **name,
            Target::Labelled(selector) => {
                selector.labels.iter().all(|(key, value)| metadata["labels"][key.as_str()] == **value)
            }
        }
}

/// Returns the facts of a Secret without a digest. Policies use the digest only to notice changes of a Secret, and the
/// objects of a fixed set never change.
fn secret_facts(secret: Option<&Arc<Value>>) -> SecretFacts {
    let keys_of = |field: &str| {
        secret.and_then(|secret| secret[field].as_object()).into_iter().flat_map(|data| data.keys().cloned())
    };
    let mut keys: Vec<String> = keys_of("data").chain(keys_of("stringData")).collect();
    keys.sort_unstable();
    keys.dedup();
    SecretFacts { present: secret.is_some(), keys, digest: String::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::Selector;

    #[test]
    fn a_secret_is_looked_up_by_name_and_never_by_label() {
        let metadata = json!({"name": "s", "namespace": "n", "labels": {"a": "b"}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"k": "c2VjcmV0"}});
        let fixed = Fixed::new([secret]);
        let (api_version, kind, namespace) = ("v1".to_owned(), "Secret".to_owned(), Some("n".to_owned()));
        let named = Reference { api_version, kind, namespace: namespace.clone(), name: "s".to_owned() };
        let facts = SecretFacts { present: true, keys: vec!["k".to_owned()], digest: String::new() };
        assert_eq!(fixed.look_up(&Target::Named(named)), Sighting::Secret(facts));
        let labels = vec![("a".to_owned(), "b".to_owned())];
        let labelled = Target::Labelled(Selector { of: ResourceType::new("v1", "Secret"), namespace, labels });
        assert_eq!(fixed.look_up(&labelled), Sighting::Forbidden(SECRETS_BY_NAME.to_owned()));
    }
}
