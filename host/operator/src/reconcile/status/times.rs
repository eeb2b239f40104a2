//! Sets the transition times of conditions, and finds the transitions that get an Event.

use serde_json::{Value, json};

use crate::{
    reconcile::event_text::EventText,
    status::conditions::{ACCEPTED, APPLIED, POLICY_FALLBACK, READY, RESOLVED, reason},
};

/// The conditions whose transitions the operator reports in Events.
const TOLD: [&str; 5] = [ACCEPTED, RESOLVED, APPLIED, READY, POLICY_FALLBACK];
/// The reasons of false conditions that also occur without any problem.
const ORDINARY: [&str; 4] = [reason::GATED, reason::PROGRESSING, reason::WAITING, reason::NOT_FOUND];

/// Sets the transition time of every condition: the old time if the condition's status did not change, otherwise `now`.
pub(crate) fn stamp(status: &mut Value, before: &Value, now: &str) {
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let old = find(before, condition["type"].as_str().unwrap_or_default());
        let since = old.filter(|old| old["status"] == condition["status"]).map(|old| &old["lastTransitionTime"]);
        condition["lastTransitionTime"] =
            since.filter(|since| since.is_string()).cloned().unwrap_or_else(|| json!(now));
    }
}

/// Returns an Event for each transition between two statuses that users should see. The normal first steps of a new
/// object get no Event, but its first problems do.
pub(crate) fn transitions(status: &Value, before: &Value) -> Vec<EventText> {
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let changed = |of: &&str| {
        let new = find(status, of)?;
        let (is, why) = (text(new, "status"), text(new, "reason"));
        let (was, old_why) = find(before, of).map(|old| (text(old, "status"), text(old, "reason"))).unzip();
        // Among these conditions, only `PolicyFallback` reports a problem if it is true.
        let bad = *of == POLICY_FALLBACK && is == "True";
        let ordinary = (is == "True" && !bad) || ORDINARY.contains(&why.as_str());
        let told = match was.as_deref() {
            None if *of == READY && is == "True" => true,
            None => !ordinary && why != reason::REFUSED && why != reason::UNAVAILABLE,
            Some(was) => was != is || (old_why.as_ref() != Some(&why) && is != "True"),
        };
        // Up to three conditions show the same refusal, and only the first of them gets an Event.
        let echo =
            matches!(&*why, reason::REFUSED | reason::UNAVAILABLE) || (*of == RESOLVED && why == reason::WAITING);
        (told && !echo).then(|| EventText { reason: why, message: text(new, "message"), warning: !ordinary })
    };
    TOLD.iter().filter_map(changed).collect()
}

/// Returns the condition whose type is `of`, or `None` if the status has no such condition.
pub(crate) fn find<'a>(status: &'a Value, of: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(conditions: &[(&str, &str, &str)]) -> Value {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(of, status, reason)| json!({"type": of, "status": status, "reason": reason, "message": "m"}))
            .collect();
        json!({"conditions": conditions})
    }

    fn reasons(new: &Value, old: &Value) -> Vec<String> {
        transitions(new, old).into_iter().map(|transition| transition.reason).collect()
    }

    #[test]
    fn a_time_moves_only_when_the_status_flips() {
        let mut before = status(&[("Ready", "False", "Progressing"), ("Applied", "True", "Applied")]);
        stamp(&mut before, &Value::Null, "t1");
        let mut after =
            status(&[("Ready", "False", "Gated"), ("Applied", "False", "ApplyFailed"), ("New", "True", "New")]);
        stamp(&mut after, &before, "t2");
        let times: Vec<_> = after["conditions"].as_array().unwrap().iter().map(|c| &c["lastTransitionTime"]).collect();
        assert_eq!(times, ["t1", "t2", "t2"]);
    }

    #[test]
    fn the_first_steps_of_a_new_object_get_no_event_and_later_transitions_do() {
        let first = status(&[
            ("Accepted", "True", "Accepted"),
            ("Applied", "True", "Applied"),
            ("Ready", "False", "Progressing"),
        ]);
        assert_eq!(reasons(&first, &Value::Null), [""; 0]);
        let ready =
            status(&[("Accepted", "True", "Accepted"), ("Applied", "True", "Applied"), ("Ready", "True", "Ready")]);
        assert_eq!(reasons(&ready, &first), ["Ready"]);
        assert_eq!(reasons(&ready, &ready), [""; 0]);
        assert_eq!(reasons(&first, &ready), ["Progressing"]);
    }

    #[test]
    fn a_refusal_gets_one_event() {
        let refused = status(&[
            ("Accepted", "False", "InvalidSpec"),
            ("Applied", "False", "Refused"),
            ("Ready", "False", "Refused"),
        ]);
        assert_eq!(reasons(&refused, &Value::Null), ["InvalidSpec"]);
        assert!(transitions(&refused, &Value::Null)[0].warning);
    }

    #[test]
    fn a_conflict_of_a_new_object_gets_an_event_at_once() {
        let new = status(&[("Accepted", "True", "Accepted"), ("Applied", "False", "OwnershipConflict")]);
        assert_eq!(reasons(&new, &Value::Null), ["OwnershipConflict"]);
    }
}
