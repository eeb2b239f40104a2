//! Answers needs from a list of objects, by the rules of the host.

use super::allowed;
use crate::types::{Answer, Claim, Found, Need, Reference, ResourceType, SecretFacts, Subject, Target};
use crate::{Object, contract, json, need};
use kaos_fields::{Fields, Scopes};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The maximum number of rounds in which the host asks for needs.
const ROUNDS: usize = 5;

/// The objects of a test's cluster.
pub(super) struct World<'a> {
    objects: Vec<Object>,
    scopes: Scopes,
    /// The reason why the operator does not look at Secrets. `None` if the operator looks at Secrets.
    no_secrets: Option<&'a str>,
}

impl<'a> World<'a> {
    pub(super) fn new(objects: &[Value], no_secrets: Option<&'a str>) -> Self {
        let mut objects: Vec<Object> = objects.iter().cloned().map(Object::new).collect();
        // The host gives a policy the objects in the order of their names.
        objects.sort_by(|one, other| one.name().cmp(other.name()));
        let scopes = Scopes::of(objects.iter().map(Object::value));
        Self { objects, scopes, no_secrets }
    }

    /// Calls `needs` in rounds, and adds the answers to `subject`. Keeps the answers that the test gave.
    #[allow(clippy::panic, reason = "a test with an invalid need has failed")]
    pub(super) fn answer(
        mut self,
        subject: &mut contract::Subject,
        claims: &[Claim],
        needs: impl Fn(&Subject) -> Vec<Need>,
    ) {
        let object = Object::parse(&subject.object);
        let claim = claims.iter().find(|claim| claim.primary == of(&object));
        for Claim { primary, .. } in claims {
            // The primary type is namespaced, because a policy can claim only namespaced types.
            let group = primary.api_version.split_once('/').map_or("", |(group, _)| group);
            self.scopes.define(group, &primary.kind, false);
        }
        let mut asked: BTreeMap<String, Need> = BTreeMap::new();
        for _ in 0..ROUNDS {
            let mut new: BTreeMap<String, Need> = BTreeMap::new();
            for need in needs(&subject.clone().into()) {
                check(&need, asked.get(&need.id), claim);
                if let Some(wrong) = allowed::wrong(&need) {
                    panic!("need {}: {wrong}", need.id);
                }
                if let Some(Need { id, .. }) = new.insert(need.id.clone(), need) {
                    panic!("need {id}: two needs have this id");
                }
            }
            new.retain(|id, _| !asked.contains_key(id));
            let count = asked.len() + new.len();
            assert!(
                count <= allowed::NEEDS,
                "the policy has {count} needs, but the host answers at most {}",
                allowed::NEEDS
            );
            if new.is_empty() {
                return;
            }
            let given: Vec<String> = subject.found.iter().map(|found| found.id.clone()).collect();
            for (id, need) in new.iter().filter(|(id, _)| !given.contains(id)) {
                let answer = self.look_up(need, object.namespace());
                subject.found.push(Found { id: id.clone(), answer });
            }
            subject.found.sort_by(|one, other| one.id.cmp(&other.id));
            asked.append(&mut new);
        }
        panic!("the policy still has new needs in round {ROUNDS}");
    }

    #[allow(clippy::panic, reason = "a test with an invalid need has failed")]
    fn look_up(&self, Need { id, target, fields, .. }: &Need, namespace: &str) -> Answer {
        let fields = Fields::parse(fields).unwrap_or_else(|error| panic!("need {id}: {error}"));
        let matches = |object: &&Object| match target {
            Target::Named(Reference { name, namespace: asked, .. }) => {
                of(object) == type_of(target)
                    && object.name() == name
                    && self.lives_in(object, asked.as_deref(), namespace)
            }
            Target::Labelled(selector) => {
                of(object) == selector.of
                    && selector.labels.iter().all(|(key, value)| object.label(key) == Some(value))
                    && self.lives_in(object, selector.namespace.as_deref(), namespace)
            }
        };
        let mut found = self.objects.iter().filter(matches);
        if is_secret(target) {
            return match (target, self.no_secrets) {
                (Target::Labelled(_), _) => Answer::Forbidden("Secrets are read by name, never by label".to_owned()),
                (_, Some(reason)) => Answer::Forbidden(reason.to_owned()),
                _ => Answer::Secret(facts(found.next())),
            };
        }
        let shown = |object: &Object| {
            let mut object = object.value().clone();
            if !self.is_cluster_scoped(&object) {
                // Add the namespace, as the API server does.
                object["metadata"]["namespace"] = target_namespace(target).unwrap_or(namespace).into();
            }
            json::text(&fields.of(&object))
        };
        Answer::Objects(found.map(shown).collect())
    }

    fn is_cluster_scoped(&self, object: &Value) -> bool {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        self.scopes.is_cluster_scoped(text("apiVersion"), text("kind"))
    }

    /// Returns whether a need can find an object, judged by namespaces. The object must be in the namespace `asked`, or
    /// in `primary` if the need names no namespace. `primary` is the namespace of the object for which the policy
    /// answers. If an object of a namespaced type has no namespace, it is in `primary`, as after `kubectl apply`. Every
    /// need finds a cluster-scoped object.
    fn lives_in(&self, object: &Object, asked: Option<&str>, primary: &str) -> bool {
        let own = if object.namespace().is_empty() { primary } else { object.namespace() };
        self.is_cluster_scoped(object.value()) || own == asked.unwrap_or(primary)
    }
}

fn target_namespace(target: &Target) -> Option<&str> {
    match target {
        Target::Named(reference) => reference.namespace.as_deref(),
        Target::Labelled(selector) => selector.namespace.as_deref(),
    }
}

/// Fails the test if the host would refuse the need.
fn check(need: &Need, before: Option<&Need>, claim: Option<&Claim>) {
    let Need { id, target, fields, .. } = need;
    assert!(
        before.is_none_or(|before| before.target == *target && before.fields == *fields),
        "need {id}: the need had another target or other fields in an earlier round"
    );
    let of = type_of(target);
    assert!(
        claim.is_none_or(|claim| claim.reads.contains(&of)),
        "need {id}: {} {} is not a type that the claim reads: add it to `reads`",
        of.api_version,
        of.kind
    );
    assert!(!is_secret(target) || fields.is_empty(), "need {id}: a need for a Secret must not list fields");
}

/// Returns the facts of a Secret. The digest differs from the host's digest, which depends on a secret key.
fn facts(secret: Option<&Object>) -> SecretFacts {
    let Some(secret) = secret else {
        return SecretFacts { present: false, keys: Vec::new(), digest: String::new() };
    };
    let mut data: Map<String, Value> = Map::new();
    for field in ["data", "stringData"] {
        data.extend(secret.at(&[field]).and_then(Value::as_object).cloned().into_iter().flatten());
    }
    let keys = data.keys().cloned().collect();
    SecretFacts { present: true, keys, digest: digest(&json::text(&Value::Object(data))) }
}

/// Returns a digest that is the same on every machine (FNV-1a).
fn digest(text: &str) -> String {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, add))
}

fn is_secret(target: &Target) -> bool {
    type_of(target) == need::resource_type("v1", "Secret")
}

fn type_of(target: &Target) -> ResourceType {
    match target {
        Target::Named(Reference { api_version, kind, .. }) => need::resource_type(api_version, kind),
        Target::Labelled(selector) => selector.of.clone(),
    }
}

fn of(object: &Object) -> ResourceType {
    need::resource_type(object.api_version(), object.kind())
}
