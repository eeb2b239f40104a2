//! Remembers manifests that the server rejected. The operator sends the same manifest again at once only if the
//! manifest, the live child, or the object's spec, labels or annotations change. The reason for the rejection may also
//! be elsewhere, for example in an admission rule. No event tells the operator that an administrator corrected such a
//! rule. So the operator still retries, first after two minutes. It then doubles the wait up to one hour.

use std::time::Duration;

use kaos_policy::stamp::LAST_APPLIED;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    backoff::Backoff,
    hashing::hash,
    reconcile::{
        children::final_manifest::Wanted,
        error::{CallError, Class},
        mark::Mark,
    },
};

/// The delays between the retries of one manifest.
const BACKOFF: Backoff = Backoff { first: Duration::from_mins(2), max: Duration::from_hours(1) };

/// A manifest that the server rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejected {
    tried: Mark,
    /// The number of consecutive rejections.
    times: u32,
    pub(crate) what: String,
    pub(crate) message: String,
    /// The time of the next retry.
    pub(crate) until: Instant,
}

impl Rejected {
    /// Records a rejection. `before` is the previous rejection, if any. `longest` is the upper limit for the delay.
    pub(crate) fn new(tried: Mark, error: &CallError, before: Option<&Self>, longest: Duration, now: Instant) -> Self {
        let times = before.filter(|before| before.tried == tried).map_or(1, |before| before.times.saturating_add(1));
        Self {
            tried,
            times,
            what: error.what.clone(),
            message: error.message.clone(),
            until: now + BACKOFF.full(times).min(longest),
        }
    }

    /// Returns the server's rejection if the hash `tried` is the same, and the time of the retry is still in the
    /// future.
    pub(crate) fn stands(&self, tried: Mark, now: Instant) -> Option<CallError> {
        let stands = self.tried == tried && now < self.until;
        stands.then(|| CallError { what: self.what.clone(), class: Class::Permanent, message: self.message.clone() })
    }
}

/// Returns a hash of the values on which a rejection depends: the manifest, the UID of the live child, and the object's
/// spec, labels and annotations.
pub(crate) fn tried(wanted: &Wanted, there: Option<&str>, object: &Value) -> Mark {
    let metadata = &object["metadata"];
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    // Ignore this annotation: the watch removes it, but the server's answers to writes contain it. Both must have the
    // same hash.
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
    async fn a_manifest_that_is_rejected_repeatedly_is_retried_ever_more_rarely() {
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
    async fn a_refusal_applies_only_to_the_manifest_that_was_tried() {
        let now = Instant::now();
        let rejected = Rejected::new(7, &error(), None, DAY, now);
        assert_eq!(rejected.stands(7, now), Some(error()));
        assert_eq!(rejected.stands(8, now), None);
        let other = Rejected::new(8, &error(), Some(&rejected), DAY, now);
        assert_eq!(other.until, rejected.until, "the first rejection of another manifest");
        let soon = Rejected::new(7, &error(), Some(&rejected), Duration::from_mins(1), now);
        assert_eq!(soon.until - now, Duration::from_mins(1), "`longest` limits the delay");
    }

    #[test]
    fn a_rejection_covers_the_manifest_the_child_and_the_users_part() {
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
