//! `upgrade-check`: prints the changes that an upgrade from KAOS's own operator would make. The verb only reads.

mod check;
mod gather;
mod left;
mod report;
mod rolls;
mod secured;
mod values;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use kaos_policy::kubernetes::Checks;

use super::{
    Form, UNUSABLE,
    compatibility::Compatibility,
    connection::{Connection, on_cluster},
    exit::or_held_back,
    facts::ClusterFacts,
    grantable::GrantableFlags,
    objects::{catalogue, documents},
    output::Output,
    policy::{Beside, Installed},
    settings,
};
use crate::{catalogue::Catalogue, input::InputPaths, offline::Started, policies::Loader};
use check::UpgradeTarget;
use report::UpgradeFinding;
use values::Values;

/// Exit code if there are findings.
const FINDINGS: u8 = UNUSABLE;

/// Arguments of `upgrade-check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 no pod is replaced and nothing is lost; 2 there are findings; 1 the verb cannot check \
        the upgrade."
)]
pub(super) struct UpgradeCheck {
    /// Values of the Helm release that will be upgraded, as `helm get values NAME -o yaml` prints them; the last file wins
    #[arg(long, value_name = "FILE")]
    values: Vec<String>,
    /// File or directory with the objects of the cluster, or - for standard input; default: read them from a running
    /// cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    filenames: Vec<String>,
    /// Read the subdirectories of a directory too
    #[arg(short = 'R', long, requires = "filenames")]
    recursive: bool,
    /// With -f, the namespace of objects that name no namespace
    #[arg(short = 'n', long, default_value = "default", value_parser = super::namespace)]
    namespace: String,
    #[command(flatten)]
    compatibility: Compatibility,
    #[command(flatten)]
    connection: Connection,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    #[command(flatten)]
    facts: ClusterFacts,
    #[command(flatten)]
    grantable: GrantableFlags,
}

impl UpgradeCheck {
    /// Prints the findings. Every error ends with exit code 1, because exit code 2 means that there are findings.
    pub(super) fn run(self, out: &mut Output) -> ExitCode {
        let output = self.output;
        let checked = self.checked().and_then(|(findings, objects)| report::write(findings, objects, output, out));
        or_held_back(checked.map(|any| if any { ExitCode::from(FINDINGS) } else { ExitCode::SUCCESS }))
    }

    fn checked(self) -> anyhow::Result<(Vec<UpgradeFinding>, usize)> {
        let Self { values, filenames, recursive, namespace, compatibility, connection, output: _, facts, grantable } =
            self;
        let values = Values::read(&values)?;
        let preset = values.preset(&compatibility)?;
        let size = grantable.size();
        let grantable = grantable.grantable();
        let started =
            Started { cluster: facts.cluster(), grantable: grantable.privileges.clone(), checks: Checks::Fields };
        let home = started.cluster.operator_namespace.clone();
        let loader = Loader::cached(started.cluster.clone())?.accepting(size);
        let own = loader.load(&[])?;
        let mut layers = settings::layers(&own, None, &[])?;
        layers.extend(values.layers(&preset));
        let beside = Beside { loader: &loader, own: &own, home: &home, grantable: &grantable, in_namespaces: false };
        let Installed { snapshot, .. } = beside.standing(&[], &layers, None)?.install(&Catalogue::default())?;
        let check =
            UpgradeTarget { values: &values, preset: &preset, home: &home, snapshot: &snapshot, started: &started };
        if filenames.is_empty() {
            return on_cluster(connection, async |client| gather::checked(client, &check).await);
        }
        let Some(catalogue) = catalogue(&[])? else { bail!("the CRDs cannot be used") };
        let sources = InputPaths { paths: &filenames, recursive, namespace: &namespace };
        let Some(documents) = documents(sources, &catalogue) else { bail!("the objects cannot be used") };
        let (findings, _) = check.of(&documents, &|_| None)?;
        Ok((findings, check.claimed(&documents)))
    }
}
