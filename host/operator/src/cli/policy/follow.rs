//! Waits until an installed package serves and the children of its objects match the plan. The wait ends early if the
//! package cannot serve any more.

use std::{process::ExitCode, time::Duration};

use clap::ValueEnum;
use kaos_crds::{PolicyRevisionStatus, PolicyRollout, RevisionState};
use kaos_policy::rollout::Wait;
use kube::Client;
use tokio::time::{Instant, sleep};

use super::{
    HELD_BACK,
    concerned::{Concerned, Unplanned},
    named_objects::named_objects,
    output::{Output, complain},
    revisions::{LOOK, Revision, Revisions, name, status},
};
use crate::{
    catalogue::installed::{NOT_LOADED, RETRY, retry_command},
    package::Package,
};

/// If the same content was refused before, the operator gets this time to replace the old refusal. After this time, the
/// follower treats the old refusal as the answer to the newly installed package.
const GRACE: Duration = Duration::from_secs(5);

/// The condition to wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Until {
    /// The package serves
    Active,
    /// The package serves, and the children of the package's objects match the plan
    #[default]
    Applied,
}

/// Follows the revision of one package.
pub(super) struct Follower<'a> {
    revisions: &'a Revisions,
    package: &'a Package,
    digest: String,
    /// The objects to check; `None` if the follower only waits for the revision.
    concerned: Option<Concerned>,
    /// The status of the revision before the package was installed.
    before: Option<PolicyRevisionStatus>,
}

/// The meaning of a revision's status for the newly installed package.
#[derive(Debug, PartialEq, Eq)]
enum Says {
    /// The status is not final.
    Nothing,
    /// The revision serves.
    Serves,
    /// The revision does not serve.
    No,
    /// The revision does not serve. The status of the revision is the same as before the installation, and the operator
    /// will not change this status on its own.
    NoAsBefore,
}

impl<'a> Follower<'a> {
    /// Creates a follower. Call this before the package is installed, so that the follower does not mistake an old
    /// status for an answer.
    pub(super) async fn new(revisions: &'a Revisions, package: &'a Package) -> anyhow::Result<Self> {
        let mut follower =
            Self { revisions, package, digest: package.digest().to_string(), concerned: None, before: None };
        follower.before = follower.look().await?.as_ref().map(status);
        Ok(follower)
    }

    /// If `until` is `Applied`, the follower also checks the objects.
    pub(super) async fn until(self, until: Until, client: Client) -> anyhow::Result<Self> {
        let concerned = match until {
            Until::Active => None,
            Until::Applied => {
                let (home, all) = (self.revisions.namespace(), self.revisions.all().await?);
                Some(Concerned::of(client, self.package, home, &all).await?)
            }
        };
        Ok(Self { concerned, ..self })
    }

    /// Follows the revision until the revision serves or fails, or until `patience` has passed. Returns a description
    /// of the outcome, as `Err` if the revision does not serve. Calls `news` for each new state.
    pub(super) async fn follow(
        &self,
        patience: Duration,
        mut news: impl FnMut(String),
    ) -> anyhow::Result<Result<String, String>> {
        let (mut begun, mut told, mut open, mut moved) = (Instant::now(), None, None, None);
        let mut patience = patience;
        loop {
            let found = self.look().await?;
            let waited = begun.elapsed();
            if let Some(revision) = &found {
                let text = describe(revision);
                if let Some(rollout) = self.rollout(revision) {
                    // After each change of a rollout, the time limit starts again.
                    if moved.as_ref() != Some(&rollout.summary) {
                        begun = Instant::now();
                        patience = patience.max(longest_step(&rollout));
                        moved = Some(rollout.summary);
                        told = Some(RevisionState::Active);
                        news(text.clone());
                    }
                    if begun.elapsed() >= patience {
                        let seconds = patience.as_secs();
                        return Ok(Err(format!(
                            "{text}; nothing changed for {seconds} seconds, and the rollout goes on without this \
                             command: to steer it, run `policy pause`, `resume`, `promote` or `return`"
                        )));
                    }
                    sleep(LOOK).await;
                    continue;
                }
                match says(self.before.as_ref(), revision, waited >= GRACE.min(patience)) {
                    // The revision served, and another revision replaced it.
                    Says::Nothing if open.is_some() && status(revision).state.is_replaced() => {
                        return Ok(Err(text));
                    }
                    Says::Nothing => {}
                    Says::Serves => match self.open(revision).await? {
                        None => return Ok(Ok(self.with_held(text).await?)),
                        Some(why) => open = Some(format!("{text}, but {why}")),
                    },
                    Says::No => return Ok(Err(text)),
                    Says::NoAsBefore => return Ok(Err(text + &remedy(revision))),
                }
                let state = status(revision).state;
                if told.replace(state) != Some(state) {
                    news(text);
                }
            }
            if waited >= patience {
                return Ok(Err(match (told, open) {
                    (Some(RevisionState::Active), Some(open)) => open,
                    (Some(_), _) => {
                        "the revision does not serve yet, but may serve later: see `policy list`".to_owned()
                    }
                    (None, _) => self.unnoticed(),
                }));
            }
            sleep(LOOK).await;
        }
    }

    /// Follows the revision, and prints its states and the outcome.
    pub(super) async fn follow_and_tell(&self, patience: Duration, out: &mut Output) -> anyhow::Result<ExitCode> {
        match self.follow(patience, |news| complain("waiting", news)).await? {
            Ok(serves) => {
                out.text(&format!("{serves}\n"))?;
                Ok(ExitCode::SUCCESS)
            }
            Err(why) => {
                out.flush()?;
                complain("error", why);
                Ok(ExitCode::from(HELD_BACK))
            }
        }
    }

    /// Returns the rollout that the follower waits for. Returns `None` if the follower only waits until the revision
    /// serves: a revision already serves some objects in its first step.
    fn rollout(&self, revision: &Revision) -> Option<PolicyRollout> {
        let status = status(revision);
        status.open_rollout().filter(|_| self.concerned.is_some()).cloned()
    }

    /// Returns why the children do not match the plan yet, or why the follower cannot check the children. Returns
    /// `None` if the children match the plan.
    async fn open(&self, revision: &Revision) -> anyhow::Result<Option<String>> {
        let Some(concerned) = &self.concerned else { return Ok(None) };
        match status(revision).outstanding {
            None => return Ok(Some("the operator has not counted the revision's objects yet".to_owned())),
            Some(1..) => {
                let outstanding = status(revision).outstanding.unwrap_or_default();
                let objects_wait = if outstanding == 1 { "object waits" } else { "objects wait" };
                return Ok(Some(format!("{outstanding} {objects_wait} for a pass with the revision")));
            }
            Some(_) => {}
        }
        let left = concerned.left(revision, &self.revisions.all().await?).await?;
        Ok((!left.is_empty()).then(|| unplanned(&left)))
    }

    /// Adds a line about the objects whose plans the plan gates hold back, because the follower does not wait for their
    /// children.
    async fn with_held(&self, text: String) -> anyhow::Result<String> {
        let Some(concerned) = &self.concerned else { return Ok(text) };
        let held = concerned.held(&self.revisions.all().await?).await?;
        Ok(if held.is_empty() { text } else { format!("{text}\n{}", held_back(&held)) })
    }

    /// Returns a message with possible reasons why no operator has recorded the package.
    fn unnoticed(&self) -> String {
        let (home, from) = (self.revisions.namespace(), &self.package.namespace);
        let what = "no operator has recorded the package: is the operator running";
        if from == home {
            return format!("{what}, and is its namespace {home}?");
        }
        format!(
            "{what}, is its namespace {home}, and was it started with --namespace-policies? Packages in \
             {from} need this flag"
        )
    }

    /// Returns the revision that an operator recorded for the package; `None` if there is none yet. Also finds the
    /// revision of a package that the operator does not read because the namespace has too many packages.
    async fn look(&self) -> anyhow::Result<Option<Revision>> {
        let is_it = |revision: &Revision| {
            let spec = &revision.spec;
            (spec.package_digest == self.digest || is_one_too_many(revision))
                && spec.source.config_map == self.package.name
                && spec.source.namespace == self.package.namespace
        };
        Ok(self.revisions.all().await?.into_iter().find(is_it))
    }
}

/// Returns whether the revision waits because its namespace has too many packages.
fn is_one_too_many(revision: &Revision) -> bool {
    status(revision).reason.as_deref() == Some("TooManyPolicies")
}

/// Returns the meaning of a revision's status for the newly installed package. `before` is the revision's status before
/// the installation. `late` is true if the operator had enough time to change the status.
fn says(before: Option<&PolicyRevisionStatus>, revision: &Revision, late: bool) -> Says {
    let status = status(revision);
    match status.state {
        RevisionState::Pending if is_one_too_many(revision) => Says::No,
        // If a user installs an earlier package again, the state of its revision stays `Superseded` until the operator
        // sees the package.
        RevisionState::Pending
        | RevisionState::Checking
        | RevisionState::Previewing
        | RevisionState::Yielding
        | RevisionState::Superseded => Says::Nothing,
        // The revision is active, but its component is still being loaded.
        RevisionState::Active if status.reason.as_deref() == Some(NOT_LOADED) => Says::Nothing,
        RevisionState::Active => Says::Serves,
        RevisionState::Held
        | RevisionState::Refused
        | RevisionState::NotPermitted
        | RevisionState::Conflict
        | RevisionState::Quarantined => {
            let asked = revision.metadata.annotations.as_ref().and_then(|all| all.get(RETRY));
            let is_tried_again = asked.is_some() && asked != status.retried.as_ref();
            match (before == Some(&status), late && !is_tried_again) {
                (false, _) => Says::No,
                (true, true) => Says::NoAsBefore,
                (true, false) => Says::Nothing,
            }
        }
    }
}

/// Formats the objects with children that differ from the plan, and the reasons.
fn unplanned(left: &Unplanned) -> String {
    let count = left.len();
    let objects_differ = if count == 1 { "object differs" } else { "objects differ" };
    format!("{count} {objects_differ} from the plan: {}", named(left))
}

/// Formats the objects whose plans the plan gates hold back, and the reasons.
fn held_back(held: &Unplanned) -> String {
    let count = held.len();
    let objects_are = if count == 1 { "object is" } else { "objects are" };
    format!("{count} {objects_are} held until their plan gates open: {}", named(held))
}

fn named(objects: &Unplanned) -> String {
    let told: Vec<String> = objects.iter().map(|(object, why)| format!("{object}: {why}")).collect();
    named_objects(&told)
}

/// Returns a note with the command that requests another check of a package that was refused or quarantined before.
fn remedy(revision: &Revision) -> String {
    let PolicyRevisionStatus { state, retried, .. } = status(revision);
    if !matches!(state, RevisionState::Refused | RevisionState::Quarantined) {
        // The operator checks revisions in most other states again without a request. The message of a held revision
        // contains the command that approves it.
        return String::new();
    }
    let namespace = revision.metadata.namespace.as_deref().unwrap_or_default();
    let command = retry_command(name(revision), namespace, retried.as_deref());
    format!(" (the operator refused or quarantined this package before; request another check with {command})")
}

/// Returns the longest time until a step of a rollout ends, or until the rollout pauses or returns. Includes some time
/// for passes. Objects may become ready only at the end of the rollout's `patience`, and must then stay ready for up to
/// five minutes.
fn longest_step(rollout: &PolicyRollout) -> Duration {
    let wait = |text: &str| text.parse().map_or(Duration::ZERO, |Wait(wait)| wait);
    let (pause, patience) = (wait(&rollout.pause), wait(&rollout.patience));
    pause + patience + pause.min(Duration::from_mins(5)) + Duration::from_mins(2)
}

/// Describes a revision in one line.
fn describe(revision: &Revision) -> String {
    let PolicyRevisionStatus { state, reason, message, policy, version, kinds, .. } = status(revision);
    let mut text = format!("PolicyRevision {} is {}", name(revision), state.name());
    let is_moving = status(revision).open_rollout().is_some();
    let answers = state == RevisionState::Active && reason.as_deref() != Some(NOT_LOADED) && !is_moving;
    if let Some(policy) = policy.filter(|_| answers) {
        text += &format!(": {policy} {}", version.as_deref().unwrap_or("(settings)"));
        if !kinds.is_empty() {
            text += &format!(" answers for {}", kinds.join(", "));
        }
        return text;
    }
    if let Some(reason) = reason.filter(|reason| reason != state.name()) {
        text += &format!(" ({reason})");
    }
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        text += &format!(": {message}");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn revision(annotations: &Value, status: &Value) -> Revision {
        serde_json::from_value(json!({
            "apiVersion": "kaos.tools/v1alpha1", "kind": "PolicyRevision",
            "metadata": {"name": "agent-1", "namespace": "kaos-system", "annotations": annotations},
            "spec": {"source": {"namespace": "kaos-system", "configMap": "agent"}, "packageDigest": "sha256:1"},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn an_old_status_counts_only_if_the_operator_does_not_change_it() {
        let old = revision(&json!({}), &json!({"state": "Quarantined", "since": "2026-01-01T00:00:00Z"}));
        let before = status(&old);
        assert_eq!(says(Some(&before), &old, false), Says::Nothing);
        assert_eq!(says(Some(&before), &old, true), Says::NoAsBefore);
        assert_eq!(says(None, &old, false), Says::No, "the status belongs to the new package");
        let again = json!({"state": "Quarantined", "since": "2026-01-01T00:00:09Z", "retried": "1"});
        assert_eq!(says(Some(&before), &revision(&json!({}), &again), false), Says::No);
        assert_eq!(says(Some(&before), &revision(&json!({}), &json!({"state": "Checking"})), true), Says::Nothing);
        assert_eq!(says(Some(&before), &revision(&json!({}), &json!({"state": "Active"})), false), Says::Serves);
        let withheld = revision(&json!({}), &json!({"state": "Active", "reason": "NotLoaded", "policy": "agent"}));
        assert_eq!(says(Some(&before), &withheld, true), Says::Nothing, "the operator still loads the component");
        assert!(describe(&withheld).contains("(NotLoaded)"), "{}", describe(&withheld));
    }

    #[test]
    fn a_revision_with_a_requested_retry_is_waited_for() {
        let asked = json!({"kaos.tools/retry": "2"});
        let old = revision(&asked, &json!({"state": "Refused", "retried": "1"}));
        assert_eq!(says(Some(&status(&old)), &old, true), Says::Nothing);
        let tried = revision(&asked, &json!({"state": "Refused", "retried": "2"}));
        assert_eq!(says(Some(&status(&tried)), &tried, true), Says::NoAsBefore);
        assert!(remedy(&tried).contains("-n kaos-system --overwrite kaos.tools/retry=3"), "{}", remedy(&tried));
    }
}
