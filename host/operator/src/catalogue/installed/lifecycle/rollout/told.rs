//! The texts about a rollout in the status of its revision.

use kaos_crds::{PolicyApproval, PolicyRollout};

/// Returns the current step, such as `step 2 of 4 (5%)`.
pub(super) fn step(rollout: &PolicyRollout) -> String {
    let share = rollout.current().map(|step| format!(" ({})", step.share)).unwrap_or_default();
    format!("step {} of {}{share}", rollout.begun(), rollout.steps.len())
}

/// Returns the state of a rollout in one line.
pub(super) fn summary(rollout: &PolicyRollout) -> String {
    let PolicyRollout { moved, objects, .. } = rollout;
    let paused = rollout.paused.as_ref().map(|paused| format!(", paused: {}", paused.reason)).unwrap_or_default();
    match (rollout.is_open(), rollout.begun()) {
        // The number of objects is unknown if a person promoted the package before the operator saw the objects.
        (false, _) if *objects == 0 => "all objects moved".to_owned(),
        (false, _) => format!("{objects} of {objects} objects moved"),
        (true, 0) => format!("no object moved yet{paused}"),
        (true, _) => format!("{}: {moved} of {objects} objects moved{paused}", step(rollout)),
    }
}

/// Returns the message of a revision that is rolled out. `by` is the person who requested the last change.
pub(super) fn message(rollout: &PolicyRollout, approved: Option<&PolicyApproval>, by: Option<&str>) -> String {
    let mut parts = vec![summary(rollout)];
    if rollout.is_open() && rollout.current().is_some_and(|step| step.goal.is_some()) {
        let max = &rollout.max_unavailable;
        parts.push(format!("the step moves further objects as pods become ready (maxUnavailable {max})"));
    }
    parts.extend(rollout.paused.as_ref().filter(|it| !it.message.is_empty()).map(|paused| paused.message.clone()));
    let requested = by.filter(|_| rollout.paused.is_none());
    parts.extend(requested.map(|by| format!("{} by {by}", if rollout.is_open() { "resumed" } else { "promoted" })));
    parts.extend(approved.map(|approved| format!("approved by {}", approved.by)));
    parts.join("; ")
}

/// Returns the message of a revision whose rollout returned all objects.
pub(super) fn returned(rollout: &PolicyRollout, why: &str) -> String {
    format!("at {} of the rollout: {why}; all objects returned to the policies that served before", step(rollout))
}

#[cfg(test)]
mod tests {
    use kaos_crds::{PolicyRolloutPause, PolicyRolloutStep};

    use super::*;

    #[test]
    fn the_texts_name_the_step_the_objects_and_the_persons() {
        let step = |share: &str, since: Option<&str>| PolicyRolloutStep {
            share: share.to_owned(),
            since: since.map(str::to_owned),
            ..PolicyRolloutStep::default()
        };
        let mut rollout =
            PolicyRollout { steps: vec![step("1", None), step("100%", None)], objects: 40, ..PolicyRollout::default() };
        assert_eq!(summary(&rollout), "no object moved yet");
        rollout.steps[0].since = Some("t".to_owned());
        rollout.moved = 1;
        assert_eq!(summary(&rollout), "step 1 of 2 (1): 1 of 40 objects moved");
        let pause = PolicyRolloutPause {
            reason: "SlowToStart".to_owned(),
            message: "1 of 1 is not ready yet".to_owned(),
            ..PolicyRolloutPause::default()
        };
        let paused = PolicyRollout { paused: Some(pause), ..rollout.clone() };
        let told = "step 1 of 2 (1): 1 of 40 objects moved, paused: SlowToStart; 1 of 1 is not ready yet";
        assert_eq!(message(&paused, None, None), told);
        let mut waiting = PolicyRollout { max_unavailable: "25%".to_owned(), ..rollout.clone() };
        waiting.steps[0].goal = Some("ff".to_owned());
        let told = "step 1 of 2 (1): 1 of 40 objects moved; the step moves further objects as pods become ready \
                    (maxUnavailable 25%)";
        assert_eq!(message(&waiting, None, None), told);
        let approved = PolicyApproval { by: "bob".to_owned(), at: None };
        let resumed = message(&rollout, Some(&approved), Some("alice"));
        assert_eq!(resumed, "step 1 of 2 (1): 1 of 40 objects moved; resumed by alice; approved by bob");
        rollout.ended = Some("t2".to_owned());
        assert_eq!(message(&rollout, None, Some("alice")), "40 of 40 objects moved; promoted by alice");
        rollout.objects = 0;
        assert_eq!(summary(&rollout), "all objects moved", "nobody has counted them");
    }
}
