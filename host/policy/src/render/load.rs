//! Limits the size of the found objects. The object for which the policy answers is called the primary object here.
//!
//! The policy uses fuel to read the found objects, which other users may have written. With very large objects, the
//! policy would run out of fuel in the middle of the pass, and this would look like a failure of the policy. So the
//! host stops the pass before the policy reads very large objects, and the primary object waits until the found objects
//! are smaller. Even for the largest allowed objects, the default policies use only two thirds of their fuel.

use serde_json::Value;

use super::size;
use crate::{
    contract::{Blocker, Reference, Refusal, SecretFacts, Target, Violation},
    cut::{NOTE, cut},
    digest::canonical,
    lookup::{MAX_FOUND_BYTES, MAX_READ},
    units::{bytes, count},
};

/// The reason in the refusal if an object is too large for a policy.
pub const TOO_LARGE: &str = "TooLarge";
/// The maximum size of one object as JSON, in bytes. An API server accepts only smaller objects.
const BYTES: usize = 2 << 20;
/// The maximum number of values in all found objects together. [`MAX_FOUND_BYTES`] is the maximum number of bytes. The
/// limits of the primary object also apply to each found object.
const ALL_VALUES: usize = 50_000;

/// The total size of the objects that one layer has seen so far.
#[derive(Debug)]
pub(super) struct Load {
    /// The number of bytes of objects that lookups can still read to find the selected fields.
    room: usize,
    bytes: Total,
    values: Total,
    too_large: Vec<Blocker>,
    /// The bytes of all objects examined so far, including objects that are too large for the policy.
    looked_at: usize,
}

/// A sum over several objects, and the object that adds most to the sum.
#[derive(Debug, Default)]
struct Total {
    sum: usize,
    most: usize,
    largest: Option<Reference>,
}

impl Default for Load {
    fn default() -> Self {
        Self { room: MAX_READ, bytes: Total::default(), values: Total::default(), too_large: Vec::new(), looked_at: 0 }
    }
}

impl Load {
    /// Returns the number of bytes of objects that lookups can still read to find the selected fields. If a lookup
    /// needs more bytes, the lookup sets the number to 0.
    pub(super) fn room(&mut self) -> &mut usize {
        &mut self.room
    }

    /// Called at the end of a lookup. If the lookup used up all bytes, adds a blocker for the target, so that the
    /// primary object waits.
    pub(super) fn is_read(&mut self, target: &Target) {
        if self.room > 0 || !self.too_large.is_empty() {
            return;
        }
        let (of, at) = (target.of(), target.namespace().unwrap_or_default());
        let namespace = Reference {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            namespace: None,
            name: at.to_owned(),
        };
        let message = format!(
            "the policies read fields of {of} objects, and these objects are larger than {} in total: make the objects \
             smaller, or reference fewer objects",
            bytes(MAX_READ)
        );
        self.too_large.push(Blocker { on: namespace, reason: TOO_LARGE.to_owned(), message });
    }

    /// Returns the object's text for the policy: the whole object, or only its name if the object is too large.
    pub(super) fn object(&mut self, object: &Value) -> String {
        let (on, text) = (Reference::of_object(object), canonical(object));
        self.looked_at += text.len();
        let too_large = match size::check(object) {
            Ok(()) if text.len() <= BYTES => None,
            Ok(()) => {
                let (size, limit) = (bytes(text.len()), bytes(BYTES));
                Some(format!("the object has {size}, but the limit is {limit}: split the object"))
            }
            Err(Violation { path, message }) => Some(format!("{path}: {message}")),
        };
        let has_room = match too_large {
            None => self.add(&on, text.len(), size::values(object)),
            Some(told) => {
                self.too_large.push(blocker(on, &told));
                false
            }
        };
        if has_room { text } else { canonical(&size::name_alone(object)) }
    }

    /// Returns the facts of a Secret. Leaves out the Secret's keys if the keys are too large.
    pub(super) fn secret(&mut self, target: &Target, facts: SecretFacts) -> SecretFacts {
        let Target::Named(on) = target else { return facts };
        let bytes = facts.keys.iter().map(String::len).sum();
        if self.add(on, bytes, facts.keys.len()) { facts } else { SecretFacts { keys: Vec::new(), ..facts } }
    }

    /// Returns whether the objects so far already cause a refusal, so that the caller can stop.
    pub(super) fn is_full(&self) -> bool {
        self.looked_at > MAX_FOUND_BYTES || self.room == 0
    }

    /// Returns the refusal that names the objects to wait for; `None` if the policy sees all objects completely.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let mut too_large = self.too_large.clone();
        let values = |number: usize| format!("{} values", count(number));
        for (Total { sum, most, largest }, shown, limit) in
            [(&self.bytes, &bytes as &dyn Fn(usize) -> String, MAX_FOUND_BYTES), (&self.values, &values, ALL_VALUES)]
        {
            if let Some(on) = largest
                && *sum > limit
            {
                let told = format!(
                    "all referenced objects together have more than {}, and this object alone has {}: make this object \
                     smaller, or reference fewer objects",
                    shown(limit),
                    shown(*most)
                );
                too_large.push(blocker(on.clone(), &told));
            }
        }
        (!too_large.is_empty()).then_some(Refusal::Waiting(too_large))
    }

    /// Adds the size of an object to the sums. Returns whether the sums are within the limits.
    fn add(&mut self, on: &Reference, bytes: usize, values: usize) -> bool {
        self.bytes.add(on, bytes);
        self.values.add(on, values);
        self.bytes.sum <= MAX_FOUND_BYTES && self.values.sum <= ALL_VALUES
    }
}

fn blocker(on: Reference, told: &str) -> Blocker {
    let message = cut(&format!("{on} is too large to be read: {told}"), NOTE).into_owned();
    Blocker { on, reason: TOO_LARGE.to_owned(), message }
}

impl Total {
    fn add(&mut self, on: &Reference, count: usize) {
        self.sum += count;
        if count > self.most {
            self.most = count;
            self.largest = Some(on.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, spec: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Kite", "metadata": {"name": name, "namespace": "n"}, "spec": spec})
    }

    fn fields(count: usize) -> Value {
        (0..count).map(|n| (format!("f{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into()
    }

    /// Returns the texts that a policy sees for these objects. Also returns the object's name and the message of each
    /// blocker.
    fn shown(objects: &[Value]) -> (Vec<String>, Vec<(String, String)>) {
        let mut load = Load::default();
        let texts = objects.iter().map(|object| load.object(object)).collect();
        let blockers = match load.refusal() {
            None => Vec::new(),
            Some(Refusal::Waiting(blockers)) => blockers,
            Some(other) => panic!("{other:?}"),
        };
        (texts, blockers.into_iter().map(|blocker| (blocker.on.name, blocker.message)).collect())
    }

    #[test]
    fn objects_within_the_limits_are_shown_whole() {
        let objects: Vec<_> = (0..160).map(|n| object(&format!("a{n}"), &json!({"env": fields(250)}))).collect();
        let (texts, blockers) = shown(&objects);
        assert!(blockers.is_empty(), "{blockers:?}");
        assert!(texts.iter().zip(&objects).all(|(text, object)| *text == canonical(object)));
    }

    #[test]
    fn an_object_that_is_too_large_is_waited_for_and_hides_no_other() {
        let large = object("large", &json!({"podSpec": {"nodeSelector": fields(10_001)}}));
        let (texts, blockers) = shown(&[large, object("small", &json!({"a": 1}))]);
        assert!(texts[0].len() < 200 && texts[0].contains("\"large\"") && texts[1].contains("\"a\":1"), "{texts:?}");
        let [(name, message)] = &blockers[..] else { panic!("{blockers:?}") };
        assert_eq!(name, "large");
        let told = "Kite n/large is too large to be read: spec.podSpec.nodeSelector: has 10,001 fields, but the limit \
            is 10,000: ";
        assert!(message.starts_with(told), "{message}");
        let (_, blockers) = shown(&[object("long", &json!("x".repeat(BYTES)))]);
        assert!(
            blockers[0].1.contains("the object has 2.1 MiB, but the limit is 2 MiB: split the object"),
            "{blockers:?}"
        );
    }

    #[test]
    fn the_largest_object_is_waited_for_if_all_together_are_too_large() {
        let text = |name: &str, length: usize| object(name, &json!("x".repeat(length)));
        let (texts, blockers) = shown(&[text("a", 1_500_000), text("b", 1_600_000), text("c", 1_400_000)]);
        assert!(
            texts[1].len() > 1_600_000 && texts[2].len() < 200,
            "the policy must see only the name of the last object"
        );
        let [(name, message)] = &blockers[..] else { panic!("{blockers:?}") };
        assert!(
            name == "b"
                && message.contains(
                    "all referenced objects together have more than 4 MiB, and this object alone has 1.6 MiB: "
                ),
            "{message}"
        );
        let many: Vec<_> = (0..6).map(|n| object(&format!("a{n}"), &fields(9_000))).collect();
        let (_, blockers) = shown(&many);
        assert!(blockers.len() == 1 && blockers[0].1.contains(" values, and this object alone has "), "{blockers:?}");
    }

    #[test]
    fn keys_of_secrets_count_toward_the_limits() {
        let on = Reference { api_version: "v1".into(), kind: "Secret".into(), namespace: None, name: "s".into() };
        let facts = SecretFacts { present: true, keys: vec!["k".repeat(MAX_FOUND_BYTES + 1)], digest: "d".into() };
        let mut load = Load::default();
        let told = load.secret(&Target::Named(on), facts);
        assert!(told.present && told.keys.is_empty());
        assert!(load.refusal().is_some());
    }
}
