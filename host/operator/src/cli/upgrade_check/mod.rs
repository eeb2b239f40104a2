//! `upgrade-check`: prints the changes that an upgrade from KAOS's own operator would make. The verb only reads.

mod check;
mod gather;
mod go_image;
mod keyless;
mod left;
mod protection;
mod reference_grants;
mod refused;
mod report;
mod rolls;
mod secured;
mod service_address;
mod table;
mod takeover;
mod values;

use std::{process::ExitCode, sync::Arc};

use anyhow::bail;
use clap::Args;
use kaos_policy::{contract::Cluster, kubernetes::Checks};

use super::{
    OutputFormat, UNUSABLE,
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
use crate::{
    catalogue::{Catalogue, Snapshot},
    error_text::with_causes,
    input::{Document, InputPaths},
    offline::Started,
    policies::Loader,
    presets::Preset,
};
use check::UpgradeTarget;
use report::{Sort, UpgradeFinding};
use values::Values;

/// Exit code if there are findings.
const FINDINGS: u8 = UNUSABLE;

/// Arguments of `upgrade-check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = no pod is replaced and nothing is lost; 1 = the verb cannot check the upgrade; 2 = \
                  there are findings."
)]
pub(super) struct UpgradeCheck {
    /// Values of the Helm release that will be upgraded, as `helm get values NAME -o yaml` prints them; the last file wins
    #[arg(long, value_name = "FILE")]
    values: Vec<String>,
    /// Check `helm upgrade --reuse-values`: the chart adds only its new values; write the output of `helm get values NAME
    /// --all -o yaml` into the files of --values
    #[arg(long, requires = "values")]
    reuse_values: bool,
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
    /// Preset to compare with, or a file; default: the preset in the Helm value `compatibility`, or kaos-0.8 if the
    /// values do not set it
    #[arg(long, value_name = "PRESET|FILE")]
    compatibility: Option<String>,
    #[command(flatten)]
    connection: Connection,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    facts: ClusterFacts,
    #[command(flatten)]
    grantable: GrantableFlags,
}

/// The answer of the check.
struct Checked {
    findings: Vec<UpgradeFinding>,
    /// The number of objects for which a policy answers.
    objects: usize,
    /// The name of the preset.
    preset: String,
}

impl UpgradeCheck {
    /// Prints the findings. Every error ends with exit code 1, because exit code 2 means that there are findings.
    pub(super) fn run(self, out: &mut Output) -> ExitCode {
        let output = self.output;
        let checked = self
            .checked()
            .and_then(|Checked { findings, objects, preset }| report::write(findings, objects, &preset, output, out));
        or_held_back(checked.map(|any| if any { ExitCode::from(FINDINGS) } else { ExitCode::SUCCESS }))
    }

    fn checked(self) -> anyhow::Result<Checked> {
        let values = Values::read(&self.values, self.reuse_values)?;
        let preset = values.preset(&Compatibility::of(self.compatibility.clone()))?;
        let values = values.under(&preset);
        let cluster = self.facts.clone().cluster();
        let mut findings = refused::findings(&values, &cluster.operator_namespace)?;
        let stops = findings.iter().any(|finding| finding.sort == Sort::Stops);
        let objects = match self.compared(&values, &preset, cluster) {
            Ok((found, objects)) => {
                findings.extend(found);
                objects
            }
            // Report the error as a finding: the values that the chart refuses may also be the cause of this error.
            Err(error) if stops => {
                let why = format!("are not checked: {}", with_causes(error.as_ref()));
                findings.push(UpgradeFinding::new(Sort::Open, "the objects", why, "correct the refused values first"));
                0
            }
            Err(error) => return Err(error),
        };
        Ok(Checked { findings, objects, preset: preset.name })
    }

    /// Returns the findings about the objects, and the number of objects for which a policy answers.
    fn compared(
        self,
        values: &Values,
        preset: &Preset,
        cluster: Cluster,
    ) -> anyhow::Result<(Vec<UpgradeFinding>, usize)> {
        let Self { filenames, recursive, namespace, connection, grantable, .. } = self;
        let size = grantable.size();
        let grantable = grantable.grantable();
        let started = Started { cluster, grantable: grantable.privileges.clone(), checks: Checks::Fields };
        let home = started.cluster.operator_namespace.clone();
        let loader = Loader::cached(started.cluster.clone())?.accepting(size);
        let own = loader.load(&[])?;
        let taken_over = |documents: &[Document]| -> anyhow::Result<(Values, Arc<Snapshot>)> {
            let mut values = values.clone();
            values.takeover = takeover::time(documents, &values, &home);
            let mut layers = settings::layers(&own, None, &[])?;
            layers.extend(values.layers(preset, &home));
            let beside =
                Beside { loader: &loader, own: &own, home: &home, grantable: &grantable, in_namespaces: false };
            let Installed { snapshot, .. } = beside.standing(&[], &layers, None)?.install(&Catalogue::default())?;
            Ok((values, snapshot))
        };
        if filenames.is_empty() {
            return on_cluster(connection, async |client| {
                let gathered = gather::begun(client, &home).await?;
                let (values, snapshot) = taken_over(&gathered.documents())?;
                let (values, snapshot) = (&values, &snapshot);
                let check = UpgradeTarget { values, preset, home: &home, snapshot, started: &started };
                gather::checked(gathered, &check).await
            });
        }
        let Some(catalogue) = catalogue(&[])? else { bail!("the CRDs cannot be used") };
        let sources = InputPaths { paths: &filenames, recursive, namespace: &namespace };
        let Some(documents) = documents(sources, &catalogue) else { bail!("the objects cannot be used") };
        let (values, snapshot) = taken_over(&documents)?;
        let check = UpgradeTarget { values: &values, preset, home: &home, snapshot: &snapshot, started: &started };
        let (mut findings, _) = check.of(&documents, catalogue.scopes(), &|_| None)?;
        if secured::config(&documents, &home).is_none() {
            // The files may contain only a part of a cluster, so this is only a note.
            findings.push(secured::without_earlier(&home, Sort::Note));
        }
        Ok((findings, check.claimed(&documents)))
    }
}
