//! `upgrade-check`: prints the changes that an upgrade from KAOS's own operator would make. The command only reads.

mod check;
mod gateway;
mod gather;
mod go_image;
mod keyless;
mod left;
mod left_out;
mod litellm_version;
mod merging;
mod operator_image;
mod preset_images;
mod protection;
mod recorded;
mod reference_grants;
mod refused;
mod registries;
mod report;
mod rolls;
mod secured;
mod service_address;
mod table;
mod takeover;
mod values;
mod volumes;

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
use recorded::Recorded;
use report::{Sort, UpgradeFinding};
use values::Values;

/// Exit code if there are findings.
const FINDINGS: u8 = UNUSABLE;

/// Arguments of `upgrade-check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = no pod is replaced and nothing is lost; 1 = the command cannot check the upgrade; \
                  2 = there are findings other than notes."
)]
pub(super) struct UpgradeCheck {
    /// Values of the Helm release that will be upgraded, as `helm get values NAME -o yaml` prints them; the last file
    /// wins
    #[arg(long, value_name = "FILE")]
    values: Vec<String>,
    /// Check `helm upgrade --reuse-values`: the chart adds only its new values; write the output of `helm get values
    /// NAME --all -o yaml` into the files of --values
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
    /// Preset to compare with, or a file. Default: the first of these that exists: the Helm value `compatibility`, the
    /// preset that the chart recorded in ConfigMap kaos-operator-config, the preset of the KAOS that works now,
    /// kaos-0.8
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

/// The choices that the chart would make from the values and the earlier release.
struct Chosen {
    values: Values,
    preset: Preset,
    recorded: Recorded,
    /// The changes that the chart makes to these values, and the reasons why the chart stops.
    findings: Vec<UpgradeFinding>,
}

impl Chosen {
    fn of(mut values: Values, documents: &[Document], flag: &Compatibility, home: &str) -> anyhow::Result<Self> {
        let recorded = Recorded::of(documents, home);
        let changes = recorded.choose(&mut values, flag.name());
        let preset = values.preset(flag)?;
        let mut values = values.under(&preset);
        let takeover = takeover::decided(documents, &values, &preset, &recorded);
        values.takeover = takeover.time;
        values.gateway_address = gateway::address(documents, &values, home);
        let findings = changes.findings(&preset.name).into_iter().chain(takeover.finding).collect();
        Ok(Self { values, preset, recorded, findings })
    }

    fn target<'a>(&'a self, home: &'a str, snapshot: &'a Arc<Snapshot>, started: &'a Started) -> UpgradeTarget<'a> {
        let Self { values, preset, recorded, .. } = self;
        UpgradeTarget { values, preset, recorded, home, snapshot, started }
    }

    /// Returns the answer, with the findings about the objects.
    fn checked(self, found: Vec<UpgradeFinding>, objects: usize, home: &str) -> anyhow::Result<Checked> {
        let mut findings = refused::findings(&self.values, &self.recorded, home)?;
        findings.extend(self.findings.into_iter().chain(found));
        Ok(Checked { findings, objects, preset: self.preset.name })
    }
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
        let cluster = self.facts.clone().cluster();
        let flag = Compatibility::of(self.compatibility.clone());
        let home = cluster.operator_namespace.clone();
        // Before the command reads the cluster, only the values and the flag determine the preset.
        let known = Chosen::of(values.clone(), &[], &flag, &home)?;
        let findings = refused::findings(&known.values, &known.recorded, &home)?;
        match self.compared(&values, &flag, cluster) {
            Ok(checked) => Ok(checked),
            // Report the error as a finding: the values that the chart refuses may also be the cause of this error.
            Err(error) if findings.iter().any(|finding| finding.sort == Sort::Stops) => {
                let why = format!("are not checked: {}", with_causes(error.as_ref()));
                let open = UpgradeFinding::new(Sort::Open, "the objects", why, "correct the refused values first");
                let findings = findings.into_iter().chain([open]).collect();
                Ok(Checked { findings, objects: 0, preset: known.preset.name })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the findings about the values and the objects.
    fn compared(self, values: &Values, flag: &Compatibility, cluster: Cluster) -> anyhow::Result<Checked> {
        let Self { filenames, recursive, namespace, connection, grantable, .. } = self;
        let size = grantable.size();
        let grantable = grantable.grantable();
        let started = Started { cluster, grantable: grantable.privileges.clone(), checks: Checks::Fields };
        let home = started.cluster.operator_namespace.clone();
        let loader = Loader::cached(started.cluster.clone())?.accepting(size);
        let own = loader.load(&[])?;
        let chosen = |documents: &[Document]| -> anyhow::Result<(Chosen, Arc<Snapshot>)> {
            let chosen = Chosen::of(values.clone(), documents, flag, &home)?;
            let mut layers = settings::layers(&own, None, &[])?;
            layers.extend(chosen.values.layers(&chosen.preset, &home));
            let beside =
                Beside { loader: &loader, own: &own, home: &home, grantable: &grantable, in_namespaces: false };
            let Installed { snapshot, .. } = beside.standing(&[], &layers, None)?.install(&Catalogue::default())?;
            Ok((chosen, snapshot))
        };
        if filenames.is_empty() {
            return on_cluster(connection, async |client| {
                let gathered = gather::begun(client, values, &home).await?;
                let (chosen, snapshot) = chosen(&gathered.documents())?;
                let check = chosen.target(&home, &snapshot, &started);
                let (found, objects) = gather::checked(gathered, &check).await?;
                chosen.checked(found, objects, &home)
            });
        }
        let Some(catalogue) = catalogue(&[])? else { bail!("the CRDs cannot be used") };
        let sources = InputPaths { paths: &filenames, recursive, namespace: &namespace };
        let Some(documents) = documents(sources, &catalogue) else { bail!("the objects cannot be used") };
        let (chosen, snapshot) = chosen(&documents)?;
        let check = chosen.target(&home, &snapshot, &started);
        let (mut found, _) = check.of(&documents, catalogue.scopes(), &|_| None)?;
        if secured::config(&documents, &home).is_none() {
            // The files may contain only a part of a cluster, so this is only a note.
            found.push(secured::without_earlier(&home, Sort::Note));
        }
        let objects = check.claimed(&documents);
        chosen.checked(found, objects, &home)
    }
}
