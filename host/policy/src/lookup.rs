//! How a pass sees the cluster: through whoever has it, one target at a time.

use std::sync::Arc;

use serde_json::Value;

use crate::contract::{Reference, ResourceType, SecretFacts, Target};

/// Bytes of all objects, as JSON, that one policy is shown in a pass. Where there is more, the pass waits until it is less.
pub const MOST: usize = 4 << 20;

/// The answer to a policy that asks for Secrets by their labels.
pub const SECRETS_BY_NAME: &str = "Secrets are looked at by name, never by label";

/// The cluster as it is now, or as files say it is.
pub trait Lookup {
    /// What there is. The target's namespace is always filled in; for a cluster-scoped type it means
    /// nothing. A Secret is answered with [`Sighting::Secret`] and nothing else. Of objects that come to more than [`MOST`]
    /// bytes there need not be more than do: nobody is shown the rest.
    fn look_up(&self, target: &Target) -> Sighting;

    /// Whether nothing is there that may be looked at, for whoever does not want to know what is.
    fn is_absent(&self, target: &Target) -> bool {
        match self.look_up(target) {
            Sighting::Objects(objects) => objects.is_empty(),
            Sighting::Secret(facts) => !facts.present,
            Sighting::Unserved | Sighting::Forbidden(_) => false,
        }
    }

    /// Whether objects of this type live outside namespaces. A policy reads these by grant only.
    fn is_cluster_scoped(&self, of: &ResourceType) -> bool;
}

/// What there is.
#[derive(Debug, Clone, PartialEq)]
pub enum Sighting {
    /// The objects, unstripped; nothing there is an empty list.
    Objects(Vec<Arc<Value>>),
    /// A Secret's facts.
    Secret(SecretFacts),
    /// The cluster does not serve this type now.
    Unserved,
    /// The operator may not read it; the text says why.
    Forbidden(String),
}

/// A fixed set of objects: files on a laptop, the samples of a claim.
#[derive(Debug, Default, Clone)]
pub struct Fixed {
    objects: Vec<Arc<Value>>,
}

impl Fixed {
    /// These objects and nothing else.
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

    /// None of them does.
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

/// Facts without a key to digest with: on a laptop nothing is watched, so nothing needs to change.
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
    fn a_secret_is_looked_at_by_name_and_never_by_label() {
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
