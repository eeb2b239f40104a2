//! `policy rollback`: what a ConfigMap held before, again.
//!
//! It is an ordinary edit of the source: whoever looks at the ConfigMap sees what serves, and the next edit goes on from
//! there.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use kaos_crds::RevisionState;

use super::{
    connection::Connection,
    install::Installer,
    output::{Output, complain},
    push::follow_and_tell,
    revisions::{Revision, Revisions, name, of_name, shown, state, status},
};
use crate::package::{Package, pack};

/// Arguments of `policy rollback`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 the earlier one serves; 1 it does not; 2 there is none to go back to.")]
pub(super) struct Rollback {
    /// The ConfigMap that the policy came from, or the policy
    name: String,
    #[command(flatten)]
    connection: Connection,
    /// Namespace that the operator runs in
    #[arg(short, long, env = "SYSTEM_NAMESPACE", default_value = "kaos-system", value_parser = super::namespace)]
    namespace: String,
    /// The revision to go back to; otherwise the one that served before
    #[arg(long, value_name = "REVISION")]
    to: Option<String>,
    /// Seconds to wait until it serves; 0 does not wait
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
}

impl Rollback {
    /// Writes what was kept of the earlier revision into the ConfigMap.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { name: named, connection, namespace, to, timeout } = self;
        super::on_cluster(connection, async |client| {
            let revisions = Revisions::new(client.clone(), &namespace);
            let all = revisions.all().await?;
            let target = target(&of_name(&all, &named)?, to.as_deref()).with_context(|| named.clone())?;
            let kept = revisions.kept(target).await?;
            let source = target.spec.source.clone();
            let packed = pack(&source.config_map, &source.namespace, &kept.file, kept.component.as_deref())?;
            let installer = Installer::new(client, &source.namespace, true);
            installer.write(&packed).await?;
            complain("applied", format_args!("ConfigMap {} is as in PolicyRevision {}", shown(&source), name(target)));
            if timeout == 0 {
                return Ok(ExitCode::SUCCESS);
            }
            let package = Package { name: source.config_map, namespace: source.namespace, ..kept };
            let code = follow_and_tell(&revisions, &package, Duration::from_secs(timeout), out).await?;
            if code == ExitCode::SUCCESS {
                installer.sweep(&packed).await?;
            }
            Ok(code)
        })
    }
}

/// The revision to go back to, of those of one source, the oldest first.
fn target<'a>(of_source: &[&'a Revision], to: Option<&str>) -> anyhow::Result<&'a Revision> {
    if let Some(to) = to {
        let found = of_source.iter().find(|revision| name(revision) == to);
        return found.copied().with_context(|| format!("has no revision {to}, see `policy list`"));
    }
    let active = of_source.iter().rev().find(|revision| state(revision) == RevisionState::Active);
    let predecessor = active.and_then(|active| status(active).predecessor);
    let named = predecessor.and_then(|before| of_source.iter().find(|revision| name(revision) == before));
    // Where nothing of the source serves, what served last does again.
    let served = of_source.iter().rev().find(|revision| state(revision) == RevisionState::Superseded);
    match (named, active, served) {
        (Some(before), _, _) => Ok(before),
        (None, _, Some(served)) => Ok(served),
        (None, Some(only), None) => {
            bail!("{} is the first that served: delete the ConfigMap to go back to what served before", name(only))
        }
        (None, None, None) => bail!("nothing of it ever served"),
    }
}
