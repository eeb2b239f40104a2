//! How much the objects may say that a policy is shown beside the primary one.
//!
//! Whoever wrote them has no part in the pass, and no policy reads them for nothing: too much of it would end the pass
//! half-way, as if the policy were broken. Here the pass ends before, and waits for the object that says too much. With
//! as much as this, the default policies take two thirds of the fuel that they have.

use serde_json::Value;

use super::size;
use crate::{
    contract::{Blocker, Reference, Refusal, SecretFacts, Target, Violation},
    cut::{NOTE, cut},
    digest::canonical,
    lookup::MOST,
    units::{bytes, count},
};

/// Why an object is waited for that says more than a policy can be shown.
pub const TOO_LARGE: &str = "TooLarge";
/// Bytes of one object as JSON; an API server keeps less.
const BYTES: usize = 2 << 20;
/// Values of all of them together, whose bytes are bounded by [`MOST`]. Those of one are bounded as the primary object's.
const ALL_VALUES: usize = 50_000;

/// What one layer was shown so far.
#[derive(Debug, Default)]
pub(super) struct Load {
    bytes: Total,
    values: Total,
    too_large: Vec<Blocker>,
    /// Bytes that were looked at, also of what is too large to be shown.
    looked_at: usize,
}

/// A sum, and the object that has the largest part of it.
#[derive(Debug, Default)]
struct Total {
    sum: usize,
    most: usize,
    largest: Option<Reference>,
}

impl Load {
    /// An object as a policy is shown it: whole, or its name alone where that is too much.
    pub(super) fn object(&mut self, object: &Value) -> String {
        let (on, text) = (Reference::of_object(object), canonical(object));
        self.looked_at += text.len();
        let too_large = match size::check(object) {
            Ok(()) if text.len() <= BYTES => None,
            Ok(()) => Some(format!("it has {}, at most {}: divide it", bytes(text.len()), bytes(BYTES))),
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

    /// What is told of a Secret: its keys, too, where that is not too much.
    pub(super) fn secret(&mut self, target: &Target, facts: SecretFacts) -> SecretFacts {
        let Target::Named(on) = target else { return facts };
        let bytes = facts.keys.iter().map(String::len).sum();
        if self.add(on, bytes, facts.keys.len()) { facts } else { SecretFacts { keys: Vec::new(), ..facts } }
    }

    /// Whether nothing more is looked at: whatever it is, the pass waits for what is here already.
    pub(super) fn is_full(&self) -> bool {
        self.looked_at > MOST
    }

    /// What the pass has to wait for; nothing where everything is shown whole.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let mut too_large = self.too_large.clone();
        let values = |number: usize| format!("{} values", count(number));
        for (Total { sum, most, largest }, shown, limit) in
            [(&self.bytes, &bytes as &dyn Fn(usize) -> String, MOST), (&self.values, &values, ALL_VALUES)]
        {
            if let Some(on) = largest
                && *sum > limit
            {
                let told = format!(
                    "it has {} of the first {} of all that is referred to, which may have {}: make it smaller, or refer to \
                     less",
                    shown(*most),
                    shown(*sum),
                    shown(limit)
                );
                too_large.push(blocker(on.clone(), &told));
            }
        }
        (!too_large.is_empty()).then_some(Refusal::Waiting(too_large))
    }

    /// Counts an object; whether there is room for it.
    fn add(&mut self, on: &Reference, bytes: usize, values: usize) -> bool {
        self.bytes.add(on, bytes);
        self.values.add(on, values);
        self.bytes.sum <= MOST && self.values.sum <= ALL_VALUES
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

    /// What is shown of these objects, and what has to be waited for: names and messages.
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
    fn what_is_not_too_much_is_shown_whole() {
        let objects: Vec<_> = (0..160).map(|n| object(&format!("a{n}"), &json!({"env": fields(250)}))).collect();
        let (texts, blockers) = shown(&objects);
        assert!(blockers.is_empty(), "{blockers:?}");
        assert!(texts.iter().zip(&objects).all(|(text, object)| *text == canonical(object)));
    }

    #[test]
    fn one_object_that_says_too_much_is_waited_for_and_hides_no_other() {
        let large = object("large", &json!({"podSpec": {"nodeSelector": fields(10_001)}}));
        let (texts, blockers) = shown(&[large, object("small", &json!({"a": 1}))]);
        assert!(texts[0].len() < 200 && texts[0].contains("\"large\"") && texts[1].contains("\"a\":1"), "{texts:?}");
        let [(name, message)] = &blockers[..] else { panic!("{blockers:?}") };
        assert_eq!(name, "large");
        let told = "Kite n/large is too large to be read: spec.podSpec.nodeSelector: 10,001 fields are too many, at most \
                    10,000: ";
        assert!(message.starts_with(told), "{message}");
        let (_, blockers) = shown(&[object("long", &json!("x".repeat(BYTES)))]);
        assert!(blockers[0].1.contains("it has 2.1 MiB, at most 2 MiB: divide it"), "{blockers:?}");
    }

    #[test]
    fn of_objects_that_say_too_much_together_the_largest_is_waited_for() {
        let text = |name: &str, length: usize| object(name, &json!("x".repeat(length)));
        let (texts, blockers) = shown(&[text("a", 1_500_000), text("b", 1_600_000), text("c", 1_400_000)]);
        assert!(texts[1].len() > 1_600_000 && texts[2].len() < 200, "what there is no room for is not shown");
        let [(name, message)] = &blockers[..] else { panic!("{blockers:?}") };
        assert!(
            name == "b"
                && message
                    .contains("it has 1.6 MiB of the first 4.3 MiB of all that is referred to, which may have 4 MiB: "),
            "{message}"
        );
        let many: Vec<_> = (0..6).map(|n| object(&format!("a{n}"), &fields(9_000))).collect();
        let (_, blockers) = shown(&many);
        assert!(blockers.len() == 1 && blockers[0].1.contains(" values of the "), "{blockers:?}");
    }

    #[test]
    fn keys_of_secrets_count() {
        let on = Reference { api_version: "v1".into(), kind: "Secret".into(), namespace: None, name: "s".into() };
        let facts = SecretFacts { present: true, keys: vec!["k".repeat(MOST + 1)], digest: "d".into() };
        let mut load = Load::default();
        let told = load.secret(&Target::Named(on), facts);
        assert!(told.present && told.keys.is_empty());
        assert!(load.refusal().is_some());
    }
}
