//! Follows a package that was shipped: until it serves and the objects that it is there for are as it plans, or will not.

use std::{process::ExitCode, time::Duration};

use clap::ValueEnum;
use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kube::Client;
use tokio::time::{Instant, sleep};

use super::{
    HELD_BACK,
    concerned::{Concerned, Unplanned},
    output::{Output, complain},
    revisions::{Revision, Revisions, name, status},
};
use crate::{
    catalogue::installed::{NOT_LOADED, RETRY, retry_command},
    package::Package,
};

/// Between two looks at what became of it.
const LOOK: Duration = Duration::from_millis(500);

/// How long an operator may take to change its mind about what it turned down before. What it says after that, it says
/// of what was shipped now.
const GRACE: Duration = Duration::from_secs(5);

/// Objects that are named of those that are not as planned.
const NAMED: usize = 3;

/// What is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Until {
    /// It serves
    Active,
    /// It serves, and the objects that it answers for are as it plans
    #[default]
    Applied,
}

/// Follows the revision of one package.
pub(super) struct Follower<'a> {
    revisions: &'a Revisions,
    package: &'a Package,
    digest: String,
    /// The objects to look at, too.
    concerned: Option<Concerned>,
    /// What was said of the same content before it was shipped now.
    before: Option<PolicyRevisionStatus>,
}

/// What an operator says of a package.
#[derive(Debug, PartialEq, Eq)]
enum Says {
    /// Nothing that would be its last word.
    Nothing,
    /// That it serves.
    Serves,
    /// That it does not.
    No,
    /// That it does not, as before, and by itself will not say anything else.
    NoAsBefore,
}

impl<'a> Follower<'a> {
    /// To be made before the package is shipped: what is said of it then is no answer.
    pub(super) async fn new(revisions: &'a Revisions, package: &'a Package) -> anyhow::Result<Self> {
        let mut follower =
            Self { revisions, package, digest: package.digest().to_string(), concerned: None, before: None };
        follower.before = follower.look().await?.as_ref().map(status);
        Ok(follower)
    }

    /// The same, with a look at the objects if these are waited for.
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

    /// Follows it until it serves, or will not; gives what there is to say of it then. On the way there, `news` is told
    /// each of its states.
    pub(super) async fn follow(
        &self,
        patience: Duration,
        mut news: impl FnMut(String),
    ) -> anyhow::Result<Result<String, String>> {
        let (begun, mut told, mut open) = (Instant::now(), None, None);
        loop {
            let found = self.look().await?;
            let waited = begun.elapsed();
            if let Some(revision) = &found {
                let text = describe(revision);
                match says(self.before.as_ref(), revision, waited >= GRACE.min(patience)) {
                    // It served, and something else does.
                    Says::Nothing if open.is_some() && status(revision).state == RevisionState::Superseded => {
                        return Ok(Err(text));
                    }
                    Says::Nothing => {}
                    Says::Serves => match self.open(revision).await? {
                        None => return Ok(Ok(text)),
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
                    (Some(_), _) => "it does not serve yet, and may still come to: see `policy list`".to_owned(),
                    (None, _) => self.unnoticed(),
                }));
            }
            sleep(LOOK).await;
        }
    }

    /// The same, for who types.
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

    /// Why it is not known yet that the objects are as planned, or that they are not, if they are waited for.
    async fn open(&self, revision: &Revision) -> anyhow::Result<Option<String>> {
        let Some(concerned) = &self.concerned else { return Ok(None) };
        match status(revision).outstanding {
            None => return Ok(Some("how many objects it answers for was not counted yet".to_owned())),
            Some(1..) => {
                let outstanding = status(revision).outstanding.unwrap_or_default();
                let objects = if outstanding == 1 { "object was" } else { "objects were" };
                return Ok(Some(format!("{outstanding} {objects} not looked at with it yet")));
            }
            Some(_) => {}
        }
        let left = concerned.left(revision, &self.revisions.all().await?).await?;
        Ok((!left.is_empty()).then(|| unplanned(&left)))
    }

    /// What may be the reason that no operator says anything.
    fn unnoticed(&self) -> String {
        let (home, from) = (self.revisions.namespace(), &self.package.namespace);
        let what = "no operator took notice of it: is it running";
        if from == home {
            return format!("{what}, and does it live in namespace {home}?");
        }
        let takes = format!("was it started with --namespace-policies, since the policy lies in {from}");
        format!("{what}, does it live in namespace {home}, and {takes}?")
    }

    /// The revision of the package, if an operator made one; also of one that it does not look into.
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

/// Whether its namespace has too many, so that it waits for others to go.
fn is_one_too_many(revision: &Revision) -> bool {
    status(revision).reason.as_deref() == Some("TooManyPolicies")
}

/// What a revision says of what was shipped now. `before` is what it said before that, and `late` says whether an
/// operator would have said something else by now.
fn says(before: Option<&PolicyRevisionStatus>, revision: &Revision, late: bool) -> Says {
    let status = status(revision);
    match status.state {
        RevisionState::Pending if is_one_too_many(revision) => Says::No,
        // What served before and is shipped again is superseded until the operator notices.
        RevisionState::Pending | RevisionState::Checking | RevisionState::Superseded => Says::Nothing,
        // It was let in before, and is loaded again now that it was shipped again.
        RevisionState::Active if status.reason.as_deref() == Some(NOT_LOADED) => Says::Nothing,
        RevisionState::Active => Says::Serves,
        RevisionState::Refused | RevisionState::NotPermitted | RevisionState::Conflict | RevisionState::Quarantined => {
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

/// Which objects are not as planned, and why.
fn unplanned(left: &Unplanned) -> String {
    let objects = if left.len() == 1 { "object is" } else { "objects are" };
    let named: Vec<String> = left.iter().take(NAMED).map(|(object, why)| format!("{object}: {why}")).collect();
    let more = if left.len() > NAMED { "; …" } else { "" };
    format!("{} {objects} not as it plans: {}{more}", left.len(), named.join("; "))
}

/// What to do about what was turned down before, and is again without being looked at.
fn remedy(revision: &Revision) -> String {
    let PolicyRevisionStatus { state, retried, .. } = status(revision);
    if !matches!(state, RevisionState::Refused | RevisionState::Quarantined) {
        // These are looked at again without being asked for.
        return String::new();
    }
    let namespace = revision.metadata.namespace.as_deref().unwrap_or_default();
    let command = retry_command(name(revision), namespace, retried.as_deref());
    format!(" (it was put aside before; ask for another try with {command})")
}

/// One line for a person.
fn describe(revision: &Revision) -> String {
    let PolicyRevisionStatus { state, reason, message, policy, version, kinds, .. } = status(revision);
    let mut text = format!("PolicyRevision {} is {}", name(revision), state.name());
    let answers = state == RevisionState::Active && reason.as_deref() != Some(NOT_LOADED);
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
    fn what_was_said_before_counts_only_once_nothing_else_is_said() {
        let old = revision(&json!({}), &json!({"state": "Quarantined", "since": "2026-01-01T00:00:00Z"}));
        let before = status(&old);
        assert_eq!(says(Some(&before), &old, false), Says::Nothing);
        assert_eq!(says(Some(&before), &old, true), Says::NoAsBefore);
        assert_eq!(says(None, &old, false), Says::No, "it is said of what was shipped now");
        let again = json!({"state": "Quarantined", "since": "2026-01-01T00:00:09Z", "retried": "1"});
        assert_eq!(says(Some(&before), &revision(&json!({}), &again), false), Says::No);
        assert_eq!(says(Some(&before), &revision(&json!({}), &json!({"state": "Checking"})), true), Says::Nothing);
        assert_eq!(says(Some(&before), &revision(&json!({}), &json!({"state": "Active"})), false), Says::Serves);
        let withheld = revision(&json!({}), &json!({"state": "Active", "reason": "NotLoaded", "policy": "agent"}));
        assert_eq!(says(Some(&before), &withheld, true), Says::Nothing, "it is about to be loaded");
        assert!(describe(&withheld).contains("(NotLoaded)"), "{}", describe(&withheld));
    }

    #[test]
    fn what_is_about_to_be_tried_again_is_waited_for() {
        let asked = json!({"kaos.tools/retry": "2"});
        let old = revision(&asked, &json!({"state": "Refused", "retried": "1"}));
        assert_eq!(says(Some(&status(&old)), &old, true), Says::Nothing);
        let tried = revision(&asked, &json!({"state": "Refused", "retried": "2"}));
        assert_eq!(says(Some(&status(&tried)), &tried, true), Says::NoAsBefore);
        assert!(remedy(&tried).contains("-n kaos-system --overwrite kaos.tools/retry=3"), "{}", remedy(&tried));
    }
}
