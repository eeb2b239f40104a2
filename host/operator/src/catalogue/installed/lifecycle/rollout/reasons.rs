//! The reasons why a rollout pauses or returns, with their messages. This code is pure.

use kaos_crds::PolicyRollout;

use super::evidence::{Evidence, Group, Harmed, Verdict};
use crate::{
    catalogue::installed::observed::{FEW_HARMED, NOTHING_TO_COMPARE, PREDECESSOR_MISSING},
    watch::ObjectKey,
};

/// The maximum number of objects that a message names.
const NAMED: usize = 3;

const CLUSTER_TROUBLE: &str = "ClusterTrouble";

/// The reason why a rollout cannot take its next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lack {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// All objects for which this reason holds. The message names some of them.
    pub(super) objects: Vec<ObjectKey>,
}

impl Lack {
    pub(super) fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message, objects: Vec::new() }
    }

    fn of<'a>(reason: &'static str, message: String, objects: impl IntoIterator<Item = &'a ObjectKey>) -> Self {
        Self { reason, message, objects: objects.into_iter().cloned().collect() }
    }
}

/// Returns whether a pause with this reason means that moved objects are harmed.
pub(super) fn is_about_harm(reason: &str) -> bool {
    [CLUSTER_TROUBLE, NOTHING_TO_COMPARE, FEW_HARMED].contains(&reason)
}

/// Returns the reason to pause while the objects that are not moved have no policy.
pub(super) fn predecessor_missing() -> Lack {
    let message = "the operator cannot load the revision that served before. So the objects that are not moved wait \
                   and keep their children, and no object can return: install the package of this revision again, or \
                   run `policy promote`";
    Lack::new(PREDECESSOR_MISSING, message.to_owned())
}

/// Returns the message for a rollout that returns all objects because of harm.
pub(super) fn harm(rollout: &PolicyRollout, evidence: &Evidence) -> String {
    let Group { all, harmed } = evidence.others;
    let stayed =
        if evidence.harmed.iter().any(|it| it.is_unsteady) { "did not stay ready" } else { "stayed not ready" };
    format!(
        "{} of {} moved objects became not ready after the move, and {stayed} for {} ({}); of the {all} other objects, \
         {harmed} became not ready",
        evidence.harmed.len(),
        evidence.moved,
        rollout.patience,
        names(keys(&evidence.harmed)),
    )
}

/// Returns why the rollout only pauses although objects are harmed. Returns `None` if all objects return.
pub(super) fn doubt(rollout: &PolicyRollout, evidence: &Evidence, verdict: Verdict) -> Option<Lack> {
    let (many, moved) = (evidence.harmed.len(), evidence.moved);
    let harmed = names(keys(&evidence.harmed));
    let (reason, message) = match verdict {
        Verdict::Harm => return None,
        Verdict::TroubleOfAll => {
            let Group { all, harmed: others } = evidence.others;
            let message = format!(
                "{many} of {moved} moved objects are not ready ({harmed}), but also {others} of {all} other objects \
                 became not ready: the package is probably not the cause, so the rollout goes on when the moved objects \
                 are ready"
            );
            (CLUSTER_TROUBLE, message)
        }
        Verdict::NothingToCompare => {
            let message = format!(
                "{many} of {moved} moved objects are not ready for {} ({harmed}), and there are no other objects to \
                 compare them with: look at these objects, and run `policy return` or `policy resume`",
                rollout.patience
            );
            (NOTHING_TO_COMPARE, message)
        }
        Verdict::FewHarmed => {
            let message = format!(
                "only {many} of {moved} moved objects are not ready for {} ({harmed}), so their users can be the cause: \
                 look at these objects, and run `policy return` or `policy resume`",
                rollout.patience
            );
            (FEW_HARMED, message)
        }
    };
    Some(Lack::of(reason, message, keys(&evidence.harmed)))
}

/// Returns the reason to pause while moved objects still have no pass with the revision.
pub(super) fn passes_missing(evidence: &Evidence) -> Lack {
    let (many, names) = (evidence.waiting.len(), names(evidence.waiting.iter()));
    let objects = if many == 1 { "object has" } else { "objects have" };
    let message = format!(
        "{many} moved {objects} no pass with the revision yet ({names}): look at the status and the Events of these \
         objects, and at the operator's log"
    );
    Lack::of("PassesMissing", message, &evidence.waiting)
}

/// Returns the reason to pause while too many pods of moved objects are unavailable, although these objects are ready.
pub(super) fn pods_missing(missing: u64, max: u64) -> Lack {
    let message = format!(
        "{missing} pods of moved objects are not available with their new template, and maxUnavailable allows {max}: look \
         at the pods of the moved objects"
    );
    Lack::new("PodsMissing", message)
}

/// Returns why the evidence does not suffice for the next step. Returns `None` if the evidence suffices, or if no
/// object is moved.
pub(super) fn lack(evidence: &Evidence) -> Option<Lack> {
    let Evidence { moved, ready, lost, .. } = evidence;
    let moved_objects = format!("{moved} moved object{}", if *moved == 1 { "" } else { "s" });
    if let Some(first) = lost.first() {
        let message = format!("not ready since the move: {} of {moved_objects}, for example {}", lost.len(), first.key);
        return Some(Lack::of("SlowToStart", message, keys(lost)));
    }
    if *moved > 0 && *ready == 0 {
        let message = format!("none of {moved_objects} is ready, and none can show whether the package works");
        return Some(Lack::new("NothingWasReady", message));
    }
    (ready * 2 < evidence.countable()).then(|| {
        let message =
            format!("ready: only {ready} of {moved_objects}; the others were not ready before the move either");
        Lack::new("TooFewReady", message)
    })
}

fn keys(harmed: &[Harmed]) -> impl Iterator<Item = &ObjectKey> {
    harmed.iter().map(|it| &it.key)
}

fn names<'a>(objects: impl Iterator<Item = &'a ObjectKey>) -> String {
    let mut names: Vec<String> = objects.take(NAMED + 1).map(ToString::to_string).collect();
    if names.len() > NAMED {
        "…".clone_into(&mut names[NAMED]);
    }
    names.join(", ")
}
