//! `policy rollback`: restores the content that a policy's ConfigMap had earlier.
//!
//! A rollback is an ordinary edit of the source. So the ConfigMap contains the package that serves, and the user's next
//! edit starts from this content.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use kaos_crds::RevisionState;
use kube::{Api, Client};

use super::{
    connection::Connection,
    facts::Home,
    follow::{Follower, Until},
    install::Installer,
    named::{Only, packaged, recorded},
    output::{Output, complain},
    revisions::{Lost, Revision, Revisions, is_passing, name, read, shown, state, status},
};
use crate::{
    catalogue::installed::is_withheld,
    package::{Package, pack},
};

/// Arguments of `policy rollback`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = the earlier revision serves, and the children of its objects match the plan; 1 = the \
                  operator refused or quarantined this revision, or the time ran out; 2 = there is no earlier \
                  revision, or the cluster cannot be reached."
)]
pub(super) struct Rollback {
    /// ConfigMap of the policy, as NAME or NAMESPACE/NAME, or the name of the policy
    name: String,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    home: Home,
    /// The revision to restore; default: the revision that served before the active revision
    #[arg(long, value_name = "REVISION")]
    to: Option<String>,
    /// Condition to wait for
    #[arg(long, value_enum, default_value_t)]
    wait: Until,
    /// Seconds to wait; 0 does not wait
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
}

impl Rollback {
    /// Writes the stored bytes of the earlier revision into the ConfigMap.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { name: named, connection, only, home: Home { operator_namespace: home }, to, wait, timeout } = self;
        super::on_cluster(connection, async |client| {
            let revisions = Revisions::new(client.clone(), &home);
            let all = revisions.all().await?;
            let source = packaged(only.meant(&named, &home, &recorded(&all))?)?;
            let of_source: Vec<&Revision> = all.iter().filter(|revision| revision.spec.source == source).collect();
            // With `--to`, the command does not need the current content, so the user needs no right to read the
            // content.
            let holds = if to.is_some() { SourceContent::Nothing } else { held(&client, &of_source).await? };
            let target = target(&of_source, &holds, to.as_deref()).with_context(|| named.clone())?;
            let choose =
                |lost: Lost| anyhow!("PolicyRevision {}: {lost}: choose another revision with --to", name(target));
            let kept = revisions.kept(target).await?.map_err(choose)?;
            let source = &target.spec.source;
            let package = Package { name: source.config_map.clone(), namespace: source.namespace.clone(), ..kept };
            let packed = pack(&package.name, &package.namespace, &package.file, package.component.as_ref())?;
            let installer = Installer::new(client.clone(), &package.namespace, true);
            let follower = match timeout {
                0 => None,
                _ => Some(Follower::new(&revisions, &package).await?.until(wait, client).await?),
            };
            installer.write(&packed).await?;
            complain(
                "applied",
                format_args!("ConfigMap {} with the content of PolicyRevision {}", shown(source), name(target)),
            );
            let Some(follower) = follower else { return Ok(ExitCode::SUCCESS) };
            let code = follower.follow_and_tell(Duration::from_secs(timeout), out).await?;
            if code == ExitCode::SUCCESS {
                installer.sweep(&packed).await?;
            }
            Ok(code)
        })
    }
}

/// The current content of the ConfigMap.
enum SourceContent {
    /// The ConfigMap does not exist.
    Nothing,
    /// A package with this digest.
    Package(String),
    /// The content is not a package, or the user has no right to read the content.
    Something,
}

async fn held(client: &Client, of_source: &[&Revision]) -> anyhow::Result<SourceContent> {
    let Some(source) = of_source.last().map(|revision| &revision.spec.source) else {
        return Ok(SourceContent::Nothing);
    };
    Ok(match read(&Api::namespaced(client.clone(), &source.namespace), &source.config_map).await {
        Ok(None) => SourceContent::Nothing,
        Ok(Some(package)) => SourceContent::Package(package.digest().to_string()),
        Err(error) if is_passing(&error) => return Err(error),
        Err(_) => SourceContent::Something,
    })
}

/// Chooses the revision to restore from the revisions of one source. `of_source` begins with the oldest revision. If
/// the ConfigMap has other content than the active revision, chooses the active revision. Otherwise, or if the operator
/// cannot load the active revision, chooses its predecessor. Skips other builds of the active revision, unless all
/// earlier revisions are such builds.
fn target<'a>(of_source: &[&'a Revision], holds: &SourceContent, to: Option<&str>) -> anyhow::Result<&'a Revision> {
    if let Some(to) = to {
        let found = of_source.iter().find(|revision| name(revision) == to);
        return found.copied().with_context(|| format!("has no revision {to}: see `policy list`"));
    }
    let active = of_source.iter().rev().find(|revision| state(revision) == RevisionState::Active);
    let holds_other = |active: &Revision| match holds {
        SourceContent::Nothing => false,
        SourceContent::Package(digest) => *digest != active.spec.package_digest,
        SourceContent::Something => true,
    };
    // Do not choose the active revision if the operator cannot load it: the package would still not serve.
    if let Some(active) = active.filter(|active| holds_other(active) && !is_withheld(&status(active))) {
        return Ok(active);
    }
    let named = active.and_then(|active| before(active, of_source));
    let other = active.and_then(|active| other_before(active, of_source));
    // If the source has no active revision with a predecessor, choose the last revision that served.
    let served = of_source.iter().rev().find(|revision| state(revision).is_replaced());
    match (other.or(named), active, served) {
        (Some(before), _, _) => Ok(before),
        (None, _, Some(served)) => Ok(served),
        (None, Some(only), None) => {
            bail!(
                "{} is the first revision that served: delete the ConfigMap to return to the policy that served before",
                name(only)
            )
        }
        (None, None, None) => bail!("none of its revisions ever served"),
    }
}

/// Returns the predecessor of a revision, if it has the same source.
fn before<'a>(revision: &Revision, of_source: &[&'a Revision]) -> Option<&'a Revision> {
    let predecessor = status(revision).predecessor?;
    of_source.iter().find(|revision| name(revision) == predecessor).copied()
}

/// Returns the latest predecessor with other answers than the active revision. A revision with the same answers is
/// probably another build of the active revision, so restoring it changes nothing.
fn other_before<'a>(active: &Revision, of_source: &[&'a Revision]) -> Option<&'a Revision> {
    let answers = status(active).answers_digest;
    let mut earlier = before(active, of_source);
    // A chain of predecessors can end in a circle, because an earlier revision can serve again.
    for _ in of_source {
        let other = earlier?;
        if answers.is_none() || status(other).answers_digest != answers {
            return Some(other);
        }
        earlier = before(other, of_source);
    }
    None
}

#[cfg(test)]
mod tests;
