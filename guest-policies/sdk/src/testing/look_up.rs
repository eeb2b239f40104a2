//! Answers needs from a list of objects, by the rules of the host.

use crate::types::{Answer, Claim, Found, Need, Reference, ResourceType, SecretFacts, Subject, Target};
use crate::{Object, contract, json, need};
use kaos_fields::Fields;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The number of rounds in which the host asks for needs.
const ROUNDS: usize = 5;

/// The objects of a test's cluster.
pub(super) struct World<'a> {
    objects: Vec<Object>,
    /// The reason why the operator does not look at Secrets. `None` if the operator looks at Secrets.
    no_secrets: Option<&'a str>,
}

impl<'a> World<'a> {
    pub(super) fn new(objects: &[Value], no_secrets: Option<&'a str>) -> Self {
        Self { objects: objects.iter().cloned().map(Object::new).collect(), no_secrets }
    }

    /// Calls `needs` in rounds, and adds the answers to `subject`. Keeps the answers that the test gave.
    #[allow(clippy::panic, reason = "a test with an invalid need has failed")]
    pub(super) fn answer(
        &self,
        subject: &mut contract::Subject,
        claims: &[Claim],
        needs: impl Fn(&Subject) -> Vec<Need>,
    ) {
        let object = Object::parse(&subject.object);
        let claim = claims.iter().find(|claim| claim.primary == of(&object));
        let mut asked: BTreeMap<String, Need> = BTreeMap::new();
        for _ in 0..ROUNDS {
            let mut new: BTreeMap<String, Need> = BTreeMap::new();
            for need in needs(&subject.clone().into()) {
                check(&need, asked.get(&need.id), claim);
                if let Some(Need { id, .. }) = new.insert(need.id.clone(), need) {
                    panic!("need {id}: two needs have this id");
                }
            }
            new.retain(|id, _| !asked.contains_key(id));
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
                of(object) == type_of(target) && object.name() == name && lives_in(object, asked.as_deref(), namespace)
            }
            Target::Labelled(selector) => {
                of(object) == selector.of
                    && selector.labels.iter().all(|(key, value)| object.label(key) == Some(value))
                    && lives_in(object, selector.namespace.as_deref(), namespace)
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
        Answer::Objects(found.map(|object| json::text(&fields.of(object.value()))).collect())
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

/// Returns whether an object is in the namespace `asked`, or in `primary` if the need names no namespace. `primary` is
/// the namespace of the object for which the policy answers. An object without a namespace matches every namespace,
/// because `kubectl apply` would put the object into the current namespace.
fn lives_in(object: &Object, asked: Option<&str>, primary: &str) -> bool {
    let wanted = asked.unwrap_or(primary);
    wanted.is_empty() || object.namespace().is_empty() || object.namespace() == wanted
}
