//! `policy push`: ships a policy, or settings for one, and waits for what becomes of it.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use kaos_crds::{PolicyRevisionStatus, RevisionState};
use tokio::time::{Instant, sleep};

use super::{
    HELD_BACK,
    connection::Connection,
    install::Installer,
    output::{Output, complain},
    revisions::{Revision, Revisions, name, status},
    shipment::{Ready, Shipment},
};
use crate::{
    package::{Package, Packed, unpack},
    policies::{Loader, sample_cluster},
};

/// Between two looks at what became of it.
const LOOK: Duration = Duration::from_millis(500);

/// Arguments of `policy push`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 it serves; 1 it was refused, or did not serve in time; 2 it cannot be shipped.")]
pub(super) struct Push {
    #[command(flatten)]
    shipment: Shipment,
    #[command(flatten)]
    connection: Connection,
    /// Namespace of the ConfigMap: the operator's, unless the operator was started to take policies from others
    #[arg(short, long, env = "SYSTEM_NAMESPACE", default_value = "kaos-system", value_parser = super::namespace)]
    namespace: String,
    /// Namespace that the operator runs in; otherwise the ConfigMap's
    #[arg(long, value_parser = super::namespace)]
    operator_namespace: Option<String>,
    /// Take over fields of the ConfigMap that somebody else wrote
    #[arg(long)]
    force_conflicts: bool,
    /// Seconds to wait until it serves; 0 does not wait
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
}

impl Push {
    /// Writes the ConfigMaps and follows the revision that the operator makes of them.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { shipment, connection, namespace, operator_namespace, force_conflicts, timeout } = self;
        let Ready { packed, .. } = shipment.ready(&Loader::cached(sample_cluster())?, &namespace)?;
        let home = operator_namespace.unwrap_or_else(|| namespace.clone());
        super::on_cluster(connection, async |client| {
            let installer = Installer::new(client.clone(), &namespace, force_conflicts);
            let revisions = Revisions::new(client, &home);
            let package = whole(&packed)?;
            installer.write(&packed).await?;
            complain("applied", format_args!("ConfigMap {namespace}/{}", package.name));
            if timeout == 0 {
                return Ok(ExitCode::SUCCESS);
            }
            let code = follow_and_tell(&revisions, &package, Duration::from_secs(timeout), out).await?;
            if code == ExitCode::SUCCESS {
                installer.sweep(&packed).await?;
            }
            Ok(code)
        })
    }
}

/// Ships to the operator that lives where the ConfigMaps are to lie; gives what becomes of it.
#[cfg(feature = "demo")]
pub(in crate::cli) async fn ship(
    client: kube::Client,
    packed: &Packed,
    patience: Duration,
) -> anyhow::Result<Result<String, String>> {
    let package = whole(packed)?;
    Installer::new(client.clone(), &package.namespace, false).write(packed).await?;
    follow(&Revisions::new(client, &package.namespace), &package, patience, |_| ()).await
}

/// The package that the ConfigMaps are.
pub(super) fn whole(packed: &Packed) -> anyhow::Result<Package> {
    let chunk = |name: &str| packed.chunks.iter().find(|chunk| chunk.metadata.name.as_deref() == Some(name));
    Ok(unpack(&packed.index, chunk)?)
}

/// Follows the revision of a package until it serves, or will not; gives what there is to say of it then. On the way
/// there, `news` is told each of its states.
async fn follow(
    revisions: &Revisions,
    package: &Package,
    patience: Duration,
    mut news: impl FnMut(String),
) -> anyhow::Result<Result<String, String>> {
    let (digest, deadline) = (package.digest().to_string(), Instant::now() + patience);
    let is_it = |revision: &&Revision| {
        let spec = &revision.spec;
        spec.package_digest == digest
            && spec.source.config_map == package.name
            && spec.source.namespace == package.namespace
    };
    let mut told = None;
    loop {
        let all = revisions.all().await?;
        if let Some(revision) = all.iter().find(is_it) {
            let status = status(revision);
            match status.state {
                // What served before and is shipped again is superseded until the operator notices.
                RevisionState::Pending | RevisionState::Checking | RevisionState::Superseded => {}
                RevisionState::Active => return Ok(Ok(describe(revision, &status))),
                RevisionState::Refused
                | RevisionState::NotPermitted
                | RevisionState::Conflict
                | RevisionState::Quarantined => return Ok(Err(describe(revision, &status))),
            }
            if told.replace(status.state) != Some(status.state) {
                news(describe(revision, &status));
            }
        }
        if Instant::now() >= deadline {
            let why = told.map_or(
                "no operator took notice of it: is it running, and does it live in this namespace?",
                |_| "it does not serve yet, and may still come to: see `policy list`",
            );
            return Ok(Err(why.to_owned()));
        }
        sleep(LOOK).await;
    }
}

/// The same, for who types.
pub(super) async fn follow_and_tell(
    revisions: &Revisions,
    package: &Package,
    patience: Duration,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    match follow(revisions, package, patience, |news| complain("waiting", news)).await? {
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

/// One line for a person.
fn describe(revision: &Revision, status: &PolicyRevisionStatus) -> String {
    let PolicyRevisionStatus { state, reason, message, policy, version, kinds, .. } = status;
    let mut text = format!("PolicyRevision {} is {}", name(revision), state.name());
    if let Some(policy) = policy.as_ref().filter(|_| *state == RevisionState::Active) {
        text += &format!(": {policy} {}", version.as_deref().unwrap_or("(settings)"));
        if !kinds.is_empty() {
            text += &format!(" answers for {}", kinds.join(", "));
        }
        return text;
    }
    if let Some(reason) = reason.as_ref().filter(|reason| *reason != state.name()) {
        text += &format!(" ({reason})");
    }
    if let Some(message) = message.as_ref().filter(|message| !message.is_empty()) {
        text += &format!(": {message}");
    }
    text
}
