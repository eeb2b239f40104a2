//! `policy approve`: lets a held package serve.
//!
//! The approval is an annotation of the PolicyRevision with the name of the user. The chart's admission policy accepts
//! the annotation only from users with the right to approve, and only with their own name. A second annotation contains
//! the start of the hold that the user approves.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kaos_crds::RevisionState;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    HELD_BACK,
    facts::Home,
    named::NamedRevision,
    output::{Output, complain},
    preview::newest,
    revisions::{LOOK, Revision, Revisions, name, shown, state, status},
};
use crate::catalogue::{
    PLACE_TAKEN,
    installed::{self, APPROVED_BY, APPROVED_FOR},
};

/// Arguments of `policy approve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = the package serves; 1 = the package does not serve, or the time ran out; 2 = the \
                  operator does not hold the named package, you lack the right to approve the package, or the cluster \
                  cannot be reached."
)]
pub(super) struct Approve {
    #[command(flatten)]
    revision: NamedRevision,
    /// Seconds to wait until the package serves; 0 does not wait
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
}

impl Approve {
    /// Writes the approval, and waits until the package serves.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { revision, timeout } = self;
        let NamedRevision { name: named, connection, only, home: Home { operator_namespace: home } } = revision;
        super::on_cluster(connection, async |client| {
            let revisions = Revisions::new(client.clone(), &home);
            let all = revisions.all().await?;
            // Accept only a held revision, because the user approves the effect for which the operator holds it.
            let is_held = |revision: &Revision| state(revision) == RevisionState::Held;
            let Some(revision) = newest(&all, &named, &only, &home, is_held)? else {
                bail!("{named}: no package of this name is held: see `policy list`");
            };
            let held = status(revision);
            if held.reason.as_deref() == Some(PLACE_TAKEN) {
                bail!(
                    "{named}: another package has the place of this package, so the operator has not computed the \
                     effect yet: {}",
                    held.message.unwrap_or_default()
                );
            }
            let (user, hold) = (user(&client).await?, held.since.unwrap_or_default());
            let api: Api<Revision> = Api::namespaced_with(client, &home, &installed::revision_resource());
            let approval = json!({"metadata": {"annotations": {APPROVED_BY: user, APPROVED_FOR: hold}}});
            let written = api.patch(name(revision), &PatchParams::default(), &Patch::Merge(&approval)).await;
            written.with_context(|| format!("PolicyRevision {} cannot be approved", name(revision)))?;
            let source = shown(&revision.spec.source);
            complain("approved", format_args!("PolicyRevision {} of ConfigMap {source}, by {user}", name(revision)));
            if timeout == 0 {
                return Ok(ExitCode::SUCCESS);
            }
            wait(&api, name(revision), &hold, Duration::from_secs(timeout), out).await
        })
    }
}

/// Returns the name under which the API server knows the user.
pub(super) async fn user(client: &Client) -> anyhow::Result<String> {
    let reviewed = Api::<SelfSubjectReview>::all(client.clone())
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .context("the API server does not tell your user name (SelfSubjectReview)")?;
    let user = reviewed.status.and_then(|status| status.user_info).and_then(|info| info.username);
    user.filter(|user| !user.is_empty()).context("the API server does not tell your user name (SelfSubjectReview)")
}

/// Waits until an approved revision serves, or until its state shows that it will not serve. `hold` is the start of the
/// hold that the user approved.
async fn wait(
    api: &Api<Revision>,
    name: &str,
    hold: &str,
    patience: Duration,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut told = None;
    loop {
        let revision = api.get(name).await.with_context(|| format!("PolicyRevision {name}"))?;
        let text = format!("PolicyRevision {name} is {}", state(&revision).name());
        match state(&revision) {
            RevisionState::Active => {
                out.text(&format!("{text}\n"))?;
                return Ok(ExitCode::SUCCESS);
            }
            RevisionState::Held if status(&revision).since.unwrap_or_default() != hold => {
                let again = "the operator held the revision again meanwhile: look at the new effect, and approve the \
                             revision again";
                complain("error", format_args!("{text}: {again}"));
                return Ok(ExitCode::from(HELD_BACK));
            }
            RevisionState::Pending | RevisionState::Checking | RevisionState::Previewing | RevisionState::Held => {}
            RevisionState::Yielding
            | RevisionState::Superseded
            | RevisionState::Refused
            | RevisionState::NotPermitted
            | RevisionState::Conflict
            | RevisionState::Quarantined => {
                complain("error", format_args!("{text}: {}", status(&revision).message.unwrap_or_default()));
                return Ok(ExitCode::from(HELD_BACK));
            }
        }
        if told.replace(state(&revision)) != Some(state(&revision)) {
            complain("waiting", &text);
        }
        if began.elapsed() >= patience {
            let together = status(&revision).preview.map(|preview| preview.inputs.together).unwrap_or_default();
            let why = if together.is_empty() {
                "is the operator running?".to_owned()
            } else {
                format!(
                    "it can serve only together with {}: see in `policy list` whether these revisions need an approval",
                    together.join(", ")
                )
            };
            complain("error", format_args!("{text} after {} seconds: {why}", patience.as_secs()));
            return Ok(ExitCode::from(HELD_BACK));
        }
        sleep(LOOK).await;
    }
}
