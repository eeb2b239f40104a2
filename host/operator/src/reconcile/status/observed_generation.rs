//! Delays the object's status while the controller of a child has not observed the child's latest generation. Until
//! then, the status of the child describes the previous generation. For example, a Deployment seems to be broken after
//! a scale-up, until its controller has counted the new pods.
//!
//! After a change of a child, the object keeps its old status for a short time, in which a controller normally reports
//! the new generation. Only children that report an observed generation can cause this delay.

use std::time::Duration;

use kaos_policy::contract::Outcome;
use serde_json::Value;
use tokio::time::Instant;

use crate::reconcile::memory::Memory;

/// The maximum delay.
///
/// After this time, the object's status uses the child's status even if it describes the previous generation.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Returns whether a child's status describes an earlier generation.
pub(crate) fn is_unobserved(live: &Value) -> bool {
    let (seen, written) = (&live["status"]["observedGeneration"], &live["metadata"]["generation"]);
    matches!((seen.as_i64(), written.as_i64()), (Some(seen), Some(written)) if seen < written)
}

/// Returns how long to delay an object's status, or `None` to write it now. Delays the status only if `unseen` is true
/// (a controller has not observed a child) and all children are applied. The operator reports any other outcome
/// immediately.
pub(crate) fn wait(
    object: &Value,
    outcome: &Outcome,
    unseen: bool,
    memory: &mut Memory,
    now: Instant,
) -> Option<Duration> {
    if !unseen {
        memory.status.unobserved_since = None;
        return None;
    }
    let since = *memory.status.unobserved_since.get_or_insert(now);
    let told = object["status"]["conditions"].as_array().is_some_and(|told| !told.is_empty());
    let waits = told && *outcome == Outcome::Applied;
    LONGEST_WAIT.checked_sub(now.duration_since(since)).filter(|left| waits && !left.is_zero())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_child_that_reports_an_older_generation_is_unobserved() {
        let live = |generation, seen| json!({"metadata": {"generation": generation}, "status": seen});
        assert!(is_unobserved(&live(2, json!({"observedGeneration": 1}))));
        assert!(!is_unobserved(&live(2, json!({"observedGeneration": 2}))));
        assert!(!is_unobserved(&live(1, json!({}))), "the child never reported an observed generation");
        assert!(!is_unobserved(&json!({"metadata": {}, "status": {"observedGeneration": 1}})));
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_status_stays_for_a_limited_time() {
        let mut memory = Memory::default();
        let told = json!({"status": {"conditions": [{"type": "Ready"}]}});
        let mut ask = |object: &Value, outcome, unseen| wait(object, &outcome, unseen, &mut memory, Instant::now());
        assert_eq!(ask(&told, Outcome::Applied, true), Some(LONGEST_WAIT));
        tokio::time::advance(LONGEST_WAIT / 2).await;
        assert_eq!(ask(&json!({}), Outcome::Applied, true), None, "the object has no status yet");
        assert_eq!(
            ask(&told, Outcome::Failed("why".to_owned()), true),
            None,
            "any other outcome is reported immediately"
        );
        assert_eq!(ask(&told, Outcome::Applied, true), Some(LONGEST_WAIT / 2));
        tokio::time::advance(LONGEST_WAIT / 2).await;
        assert_eq!(ask(&told, Outcome::Applied, true), None);
        assert_eq!(ask(&told, Outcome::Applied, false), None);
        assert_eq!(ask(&told, Outcome::Applied, true), Some(LONGEST_WAIT), "a later delay starts again");
    }
}
