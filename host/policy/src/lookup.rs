//! A view of the cluster that consists of a fixed set of objects.

use std::sync::Arc;

pub use kaos_objects::lookup::{Lookup, MAX_FOUND_BYTES, MAX_READ, Sighting};
use serde_json::{Value, json};

use crate::contract::{Claim, Reference, ResourceType, Scopes, SecretFacts, Target};
use crate::digest::Digest;

/// The answer to a need that selects Secrets by labels.
pub const SECRETS_BY_NAME: &str = "Secrets are read by name, never by label";

/// A fixed set of objects: files on a laptop, or the samples of a claim.
#[derive(Debug, Default, Clone)]
pub struct Fixed {
    objects: Vec<Arc<Value>>,
    scopes: Scopes,
}

impl Fixed {
    /// Creates a view of exactly these objects.
    pub fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        let objects: Vec<_> = objects.into_iter().map(Arc::new).collect();
        let scopes = Scopes::of(objects.iter().map(|object| &**object));
        Self { objects, scopes }
    }

    /// Creates a view of objects that may leave out their namespace. Sets the namespace `namespace` in an object of a
    /// namespaced type without a namespace, as `kubectl apply` does. `known` contains the scopes of further types: the
    /// objects themselves do not show whether these types are namespaced.
    pub fn placed(objects: impl IntoIterator<Item = Value>, known: &Scopes, namespace: &str) -> Self {
        let mut objects: Vec<Value> = objects.into_iter().collect();
        let mut scopes = Scopes::of(&objects);
        scopes.add(known);
        for object in &mut objects {
            let of = ResourceType::of_object(object);
            let has_none = object["metadata"]["namespace"].as_str().unwrap_or_default().is_empty();
            if has_none && object["metadata"].is_object() && !scopes.is_cluster_scoped(&of.api_version, &of.kind) {
                object["metadata"]["namespace"] = namespace.into();
            }
        }
        Self { objects: objects.into_iter().map(Arc::new).collect(), scopes }
    }
}

/// Returns the scopes of the claimed types. All claimed types are namespaced, because a policy can claim only
/// namespaced types.
pub fn claimed<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Scopes {
    let mut scopes = Scopes::default();
    for Claim { primary, .. } in claims {
        scopes.define(primary.group(), &primary.kind, false);
    }
    scopes
}

impl Lookup for Fixed {
    fn look_up(&self, target: &Target) -> Sighting {
        if target.of().is_secret() && matches!(target, Target::Labelled(_)) {
            return Sighting::Forbidden(SECRETS_BY_NAME.to_owned());
        }
        let is_cluster_scoped = self.is_cluster_scoped(&target.of());
        let matches = |object: &&Arc<Value>| matches(object, target, is_cluster_scoped);
        let mut objects: Vec<_> = self.objects.iter().filter(matches).cloned().collect();
        objects.sort_by_key(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        if target.of().is_secret() {
            return Sighting::Secret(secret_facts(objects.first()));
        }
        Sighting::Objects(objects)
    }

    fn is_cluster_scoped(&self, of: &ResourceType) -> bool {
        self.scopes.is_cluster_scoped(&of.api_version, &of.kind)
    }
}

fn matches(object: &Value, target: &Target, is_cluster_scoped: bool) -> bool {
    let of = target.of();
    let metadata = &object["metadata"];
    object["apiVersion"] == *of.api_version
        && object["kind"] == *of.kind
        && (is_cluster_scoped || metadata["namespace"].as_str() == target.namespace())
        && match target {
            Target::Named(Reference { name, .. }) => metadata["name"] == **name,
            Target::Labelled(selector) => {
                selector.labels.iter().all(|(key, value)| metadata["labels"][key.as_str()] == **value)
            }
        }
}

/// Returns the facts of a Secret. The facts contain a digest without a key, so anyone can compute the digest of a
/// guessed content. For this reason, the digest is short: it can show that two Secrets differ, but it cannot confirm a
/// guess. The digest in a cluster depends on a secret key.
fn secret_facts(secret: Option<&Arc<Value>>) -> SecretFacts {
    let keys_of = |field: &str| {
        secret.and_then(|secret| secret[field].as_object()).into_iter().flat_map(|data| data.keys().cloned())
    };
    let mut keys: Vec<String> = keys_of("data").chain(keys_of("stringData")).collect();
    keys.sort_unstable();
    keys.dedup();
    let digest = secret.map_or_else(String::new, |secret| {
        let content = Digest::of_json(&json!([secret["data"], secret["stringData"]]));
        format!("offline-{}", content.hex().get(..4).unwrap_or_default())
    });
    SecretFacts { present: secret.is_some(), keys, digest }
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
        let Sighting::Secret(facts) = fixed.look_up(&Target::Named(named)) else { unreachable!("a Secret has facts") };
        assert_eq!((facts.present, facts.keys), (true, vec!["k".to_owned()]));
        let labels = vec![("a".to_owned(), "b".to_owned())];
        let labelled = Target::Labelled(Selector { of: ResourceType::new("v1", "Secret"), namespace, labels });
        assert_eq!(fixed.look_up(&labelled), Sighting::Forbidden(SECRETS_BY_NAME.to_owned()));
    }

    #[test]
    fn the_digest_of_a_secret_shows_a_change_and_is_too_short_to_confirm_a_guess() {
        let digest = |password: &str| {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": password}});
            secret_facts(Some(&Arc::new(secret))).digest
        };
        assert_eq!(digest("one"), digest("one"));
        assert_ne!(digest("one"), digest("two"));
        assert!(digest("one").starts_with("offline-") && digest("one").len() == "offline-".len() + 4);
        assert_eq!(secret_facts(None).digest, "");
    }

    #[test]
    fn a_cluster_scoped_object_is_found_from_every_namespace() {
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}});
        let sky = json!({"apiVersion": "example.org/v1", "kind": "Sky", "metadata": {"name": "fast"}});
        let fixed = Fixed::placed([class.clone(), sky.clone()], &Scopes::default(), "n");
        for object in [class, sky] {
            let of = Reference { namespace: Some("m".to_owned()), ..Reference::of_object(&object) };
            assert!(fixed.is_cluster_scoped(&of.of()));
            assert_eq!(fixed.look_up(&Target::Named(of)), Sighting::Objects(vec![Arc::new(object)]));
        }
    }

    #[test]
    fn a_namespaced_object_without_a_namespace_is_in_the_default_one() {
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        let fixed = Fixed::placed([config.clone()], &Scopes::default(), "n");
        let found = |namespace: &str| {
            let of = Reference { namespace: Some(namespace.to_owned()), ..Reference::of_object(&config) };
            let Sighting::Objects(objects) = fixed.look_up(&Target::Named(of)) else { return 0 };
            objects.len()
        };
        assert_eq!((found("n"), found("m")), (1, 0));
    }
}
