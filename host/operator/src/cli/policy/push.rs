//! `policy push`: installs a policy, or settings for a policy, and waits until the package serves and the children of
//! its objects match the plan.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use clap::Args;

use super::{
    connection::{Connection, for_server},
    facts::Home,
    follow::{Follower, Until},
    install::Installer,
    left_settings,
    output::{Output, complain},
    revisions::Revisions,
    shipment::{Ready, Shipment, agreed},
};
use crate::{
    catalogue::reach,
    package::{Package, Packed, unpack},
    policies::{Loader, sample_cluster},
};

/// Arguments of `policy push`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = the policy serves, and the children of its objects match the plan; 1 = the operator \
                  refused or quarantined the policy, or the time ran out; 2 = the policy cannot be installed."
)]
pub(super) struct Push {
    #[command(flatten)]
    shipment: Shipment,
    #[command(flatten)]
    connection: Connection,
    /// Namespace of the ConfigMap; default: the namespace that a packed file names, or the operator's namespace if no
    /// file names one. An operator uses packages in other namespaces only if it runs with --namespace-policies
    #[arg(short, long, value_parser = super::namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    home: Home,
    /// Take over fields of the ConfigMap that another field manager wrote
    #[arg(long)]
    force_conflicts: bool,
    /// Replace an existing ConfigMap of this name even if this moves its policy to other namespaces
    #[arg(long = "move")]
    moves: bool,
    /// Condition to wait for
    #[arg(long, value_enum, default_value_t)]
    wait: Until,
    /// Seconds to wait; 0 does not wait. During a rollout in steps, each change of the rollout starts the wait again,
    /// for at least the longest time that a step can take
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
}

impl Push {
    /// Writes the ConfigMaps and follows the revision that the operator records for them.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self {
            shipment,
            connection,
            namespace,
            home: Home { operator_namespace },
            force_conflicts,
            moves,
            wait,
            timeout,
        } = self;
        let place = |packed: Option<&str>| agreed("--namespace", namespace, packed, &operator_namespace);
        let loader = Loader::cached(sample_cluster())?.accepting_all();
        let Ready { packed, is_placed, policy, .. } =
            for_server(&loader, &connection, || shipment.clone().ready(&loader, place.clone()))?;
        if let Some(loaded) = &policy {
            left_settings::tell_of_defaults(&loaded.policy);
        }
        let package = whole(&packed)?;
        allowed(&package, &operator_namespace)?;
        super::on_cluster(connection, async |client| {
            let installer = Installer::new(client.clone(), &package.namespace, force_conflicts);
            if is_placed && !moves {
                installer.refuse_move(&packed).await?;
            }
            let revisions = Revisions::new(client.clone(), &operator_namespace);
            let follower = match timeout {
                0 => None,
                _ => Some(Follower::new(&revisions, &package).await?.until(wait, client).await?),
            };
            installer.write(&packed).await?;
            complain("applied", format_args!("ConfigMap {}/{}", package.namespace, package.name));
            let Some(follower) = follower else { return Ok(ExitCode::SUCCESS) };
            let code = follower.follow_and_tell(Duration::from_secs(timeout), out).await?;
            if code == ExitCode::SUCCESS {
                installer.sweep(&packed).await?;
            }
            Ok(code)
        })
    }
}

/// Installs a package into the operator's namespace, and follows the package's revision. Calls `news` for each new
/// state. Returns a description of the outcome, as `Err` if the package does not serve.
#[cfg(feature = "demo")]
pub(in crate::cli) async fn ship(
    client: kube::Client,
    packed: &Packed,
    until: Until,
    patience: Duration,
    news: impl FnMut(String),
) -> anyhow::Result<Result<String, String>> {
    let package = whole(packed)?;
    let revisions = Revisions::new(client.clone(), &package.namespace);
    let follower = Follower::new(&revisions, &package).await?.until(until, client.clone()).await?;
    Installer::new(client, &package.namespace, false).write(packed).await?;
    follower.follow(patience, news).await
}

/// Checks that the namespace of a package allows its scope and its grants.
fn allowed(package: &Package, operator_namespace: &str) -> anyhow::Result<()> {
    let Package { file, namespace, .. } = package;
    match reach(file, namespace, operator_namespace) {
        Ok(_) => Ok(()),
        Err(overreach) => {
            bail!("{overreach}; if the operator runs in {namespace}, add --operator-namespace {namespace}")
        }
    }
}

/// Returns the package that the ConfigMaps contain.
fn whole(packed: &Packed) -> anyhow::Result<Package> {
    let chunk = |name: &str| packed.chunks.iter().find(|chunk| chunk.metadata.name.as_deref() == Some(name));
    Ok(unpack(&packed.index, chunk)?)
}
