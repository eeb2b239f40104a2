//! `policy pause`, `resume`, `promote` and `return`: steer a running rollout.
//!
//! The request is an annotation of the PolicyRevision with the name of the user. The chart's admission policy accepts
//! the annotation only from users with the right to approve, and only with their own name. A further annotation names
//! the rollout and the number of the request, so an old annotation has no effect.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    HELD_BACK,
    approve::user,
    facts::Home,
    named::NamedRevision,
    output::{Output, complain},
    preview::newest,
    revisions::{LOOK, Revision, Revisions, name, shown, state, status},
};
use crate::catalogue::installed::{self, ROLLOUT, ROLLOUT_BY, ROLLOUT_FOR, RolloutVerb, next_request};

/// Arguments of the commands that steer a rollout.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 = the operator handled the request; 1 = the time ran out; 2 = the named \
                        package has no rollout in progress, you lack the right to approve the package, or the cluster \
                        cannot be reached.")]
pub(super) struct Steer {
    #[command(flatten)]
    revision: NamedRevision,
    /// Seconds to wait until the operator handles the request; 0 does not wait
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    timeout: u64,
}

impl Steer {
    /// Writes the request, and waits until the operator has handled it.
    pub(super) fn run(self, verb: RolloutVerb, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { revision, timeout } = self;
        let NamedRevision { name: named, connection, only, home: Home { operator_namespace: home } } = revision;
        super::on_cluster(connection, async |client| {
            let all = Revisions::new(client.clone(), &home).all().await?;
            let is_rolled_out = |revision: &Revision| status(revision).open_rollout().is_some();
            let Some(revision) = newest(&all, &named, &only, &home, is_rolled_out)? else {
                bail!("{named}: no package with this name has a rollout in progress: see `policy list`");
            };
            let rollout = status(revision).rollout.unwrap_or_default();
            let (user, request) = (user(&client).await?, next_request(&rollout));
            let api: Api<Revision> = Api::namespaced_with(client, &home, &installed::revision_resource());
            let annotations = json!({ROLLOUT: verb.name(), ROLLOUT_BY: user, ROLLOUT_FOR: request});
            let patch = json!({"metadata": {"annotations": annotations}});
            let written = api.patch(name(revision), &PatchParams::default(), &Patch::Merge(&patch)).await;
            written.with_context(|| format!("cannot write the request into PolicyRevision {}", name(revision)))?;
            let source = shown(&revision.spec.source);
            let what = format!("{} of PolicyRevision {} of ConfigMap {source}, by {user}", verb.name(), name(revision));
            complain("requested", what);
            if timeout == 0 {
                return Ok(ExitCode::SUCCESS);
            }
            wait(&api, name(revision), rollout.requests, Duration::from_secs(timeout), out).await
        })
    }
}

/// Returns the message of a revision. Adds the message of the rollout's pause, if the revision's message does not
/// contain it. While the revision is not loaded, only the message of the pause names a refused request.
fn told(status: &PolicyRevisionStatus) -> String {
    let message = status.message.clone().unwrap_or_default();
    let paused =
        status.open_rollout().and_then(|rollout| rollout.paused.as_ref()).map(|paused| paused.message.as_str());
    match paused.filter(|paused| !paused.is_empty() && !message.contains(paused)) {
        Some(paused) if message.is_empty() => paused.to_owned(),
        Some(paused) => format!("{message}; {paused}"),
        None => message,
    }
}

/// Waits until the operator has handled a request. `before` is the number of requests that the operator handled before.
async fn wait(
    api: &Api<Revision>,
    name: &str,
    before: i64,
    patience: Duration,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    loop {
        let revision = api.get(name).await.with_context(|| format!("PolicyRevision {name}"))?;
        let status = status(&revision);
        let handled = status.rollout.as_ref().is_none_or(|rollout| rollout.requests > before || !rollout.is_open());
        if handled || state(&revision) != RevisionState::Active {
            let reason = status.reason.clone().unwrap_or_default();
            out.text(&format!("PolicyRevision {name} is {} ({reason}): {}\n", status.state.name(), told(&status)))?;
            return Ok(ExitCode::SUCCESS);
        }
        if began.elapsed() >= patience {
            let seconds = patience.as_secs();
            complain(
                "error",
                format_args!("the operator did not handle the request within {seconds} seconds: is it running?"),
            );
            return Ok(ExitCode::from(HELD_BACK));
        }
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use kaos_crds::{PolicyRollout, PolicyRolloutPause};

    use super::*;

    #[test]
    fn the_answer_names_a_refused_request_also_if_only_the_pause_tells_it() {
        let answer = |message: &str, paused: &str| {
            let pause = PolicyRolloutPause { message: paused.to_owned(), ..PolicyRolloutPause::default() };
            told(&PolicyRevisionStatus {
                state: RevisionState::Active,
                message: Some(message.to_owned()),
                rollout: Some(PolicyRollout { paused: Some(pause), ..PolicyRollout::default() }),
                ..PolicyRevisionStatus::default()
            })
        };
        assert_eq!(answer("it cannot be loaded", "alice requested"), "it cannot be loaded; alice requested");
        assert_eq!(answer("step 1; alice paused", "alice paused"), "step 1; alice paused");
        assert_eq!(answer("step 1", ""), "step 1");
        assert_eq!(answer("", "alice paused"), "alice paused");
    }
}
