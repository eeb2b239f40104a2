//! What the server did not take. It is not asked to take the same again, until something of it is different: the manifest,
//! the child that is there, or what the user says in the object. The reason may lie elsewhere, as in a rule of admission
//! that somebody mends, and nothing tells of that: so it is tried again all the same, after minutes at first, and after an
//! hour at the longest.

use std::time::Duration;

use kaos_policy::stamp::LAST_APPLIED;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    error::{CallError, Class},
    mark::Mark,
    wanted::Wanted,
};
use crate::hashing::hash;

/// When it is tried again for the first time; each further time takes twice as long.
const FIRST: Duration = Duration::from_mins(2);
/// How long that may become.
const LONGEST: Duration = Duration::from_hours(1);

/// A manifest that the server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejected {
    tried: Mark,
    /// How often in a row.
    times: u32,
    pub(crate) what: String,
    pub(crate) message: String,
    /// When it is tried again.
    pub(super) until: Instant,
}

impl Rejected {
    /// What is remembered of a refusal, and of those before it of the same. `longest` is how long any object waits.
    pub(super) fn new(tried: Mark, error: &CallError, before: Option<&Self>, longest: Duration, now: Instant) -> Self {
        let times = before.filter(|before| before.tried == tried).map_or(1, |before| before.times.saturating_add(1));
        let wait = FIRST.saturating_mul(2_u32.saturating_pow(times - 1));
        Self {
            tried,
            times,
            what: error.what.clone(),
            message: error.message.clone(),
            until: now + wait.min(LONGEST).min(longest),
        }
    }

    /// The server's refusal, if it is of exactly this and not old.
    pub(super) fn stands(&self, tried: Mark, now: Instant) -> Option<CallError> {
        let stands = self.tried == tried && now < self.until;
        stands.then(|| CallError { what: self.what.clone(), class: Class::Permanent, message: self.message.clone() })
    }
}

/// The mark of what is tried: a manifest, beside the child with this UID or none, for an object as its user left it.
pub(super) fn tried(wanted: &Wanted, there: Option<&str>, object: &Value) -> Mark {
    let metadata = &object["metadata"];
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    // The watch leaves it out, and what writes are answered with has it.
    let annotations: Vec<Mark> = annotations.filter(|(name, _)| *name != LAST_APPLIED).map(hash).collect();
    hash((wanted.digest(), there, hash(&object["spec"]), hash(&metadata["labels"]), annotations))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn error() -> CallError {
        CallError { what: "apply Service t/a".to_owned(), class: Class::Permanent, message: "no".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_again_and_again_is_tried_ever_more_rarely_and_never_given_up() {
        let start = Instant::now();
        let mut rejected = Rejected::new(7, &error(), None, DAY, start);
        let mut waits = Vec::new();
        for _ in 0..40 {
            let now = rejected.until;
            assert_eq!(rejected.stands(7, now), None);
            let next = Rejected::new(7, &error(), Some(&rejected), DAY, now);
            waits.push((next.until - now).as_secs() / 60);
            rejected = next;
        }
        assert_eq!(waits[..6], [4, 8, 16, 32, 60, 60]);
        assert_eq!(waits.last(), Some(&60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_stands_for_what_was_tried_and_for_nothing_else() {
        let now = Instant::now();
        let rejected = Rejected::new(7, &error(), None, DAY, now);
        assert_eq!(rejected.stands(7, now), Some(error()));
        assert_eq!(rejected.stands(8, now), None);
        let other = Rejected::new(8, &error(), Some(&rejected), DAY, now);
        assert_eq!(other.until, rejected.until, "the first of its own");
        let soon = Rejected::new(7, &error(), Some(&rejected), Duration::from_mins(1), now);
        assert_eq!(soon.until - now, Duration::from_mins(1), "nobody waits for longer than that");
    }

    #[test]
    fn what_is_tried_is_the_manifest_the_child_and_what_the_user_says() {
        let object = |version: &str, annotations: Value, spec: u32| {
            json!({"metadata": {"resourceVersion": version, "annotations": annotations}, "spec": {"x": spec},
                "status": {"version": version}})
        };
        let wanted = |data: &str| {
            let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "t", "name": "a"},
                "data": {"k": data}});
            Wanted::new(&manifest, &json!({}), None, &|_| false, &[])
        };
        let plain = object("1", json!({}), 1);
        let mark = tried(&wanted("v"), Some("u"), &plain);
        for same in [object("2", json!({}), 1), object("1", json!({LAST_APPLIED: "{}"}), 1)] {
            assert_eq!(tried(&wanted("v"), Some("u"), &same), mark, "{same}");
        }
        for other in [object("1", json!({"touch": "1"}), 1), object("1", json!({}), 2)] {
            assert_ne!(tried(&wanted("v"), Some("u"), &other), mark, "{other}");
        }
        assert_ne!(tried(&wanted("w"), Some("u"), &plain), mark);
        assert_ne!(tried(&wanted("v"), Some("other"), &plain), mark);
        assert_ne!(tried(&wanted("v"), None, &plain), mark);
    }
}
