//! `policy plan`: prints the changes that a policy, settings for a policy, or another preset would make.

#[cfg(feature = "console")]
mod candidate;
mod change;
mod json;
mod live;
mod planned;
mod sides;
mod summary;
mod table;

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;
use kaos_policy::{contract::ResourceType, kubernetes::Checks};

use super::{
    Beside, HELD_BACK, OutputFormat, UNUSABLE,
    compatibility::Compatibility,
    connection::{Connection, for_server},
    facts::ClusterFacts,
    grantable::GrantableFlags,
    named_objects::named_objects,
    objects::{catalogue, claim, documents, warn_of_strangers},
    on_cluster, or_held_back,
    output::{Output, complain},
    settings,
    shipment::{Shipment, agreed},
};
use crate::{
    input::InputPaths,
    offline::Started,
    plan::{Child, Difference, Said, Side, Unstored},
    policies::Loader,
};
#[cfg(feature = "console")]
pub(in crate::cli) use candidate::{CandidateEffect, candidate_effect};
use change::ProposedChange;
pub(super) use live::compared;
pub(super) use planned::{PlanScope, Planned};
pub(super) use sides::Sides;
use summary::Summary;
#[cfg(feature = "console")]
pub(super) use table::lines;

/// The exit code if the plan of at least one object changes.
const CHANGES: u8 = UNUSABLE;

/// Arguments of `policy plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = no object changes; 1 = the command cannot plan, the policy fails on an object, or \
                  the API server refuses a planned child; 2 = an object changes."
)]
pub(super) struct Plan {
    #[command(flatten)]
    shipment: Shipment,
    /// Preset to plan for, instead of a package: kaos-0.1, kaos-0.8, or a file
    #[arg(long, value_name = "PRESET|FILE", conflicts_with_all = ["file", "settings", "policy", "scope", "name", "into"])]
    compatibility: Option<String>,
    /// File or directory with the objects of the cluster, or - for standard input; default: read them from a running
    /// cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    filenames: Vec<String>,
    /// Read the subdirectories of a directory too
    #[arg(short = 'R', long, requires = "filenames")]
    recursive: bool,
    /// CRDs of further kinds
    #[arg(long, value_name = "FILE|DIR|-", requires = "filenames")]
    crds: Vec<String>,
    /// With -f, the namespace of objects that name no namespace; without -f, the only namespace to plan for
    #[arg(short = 'n', long, value_parser = super::namespace)]
    namespace: Option<String>,
    /// Namespace to install the package in; default: the namespace that a packed file names, or the operator's
    /// namespace if no file names one
    #[arg(long, value_name = "NAMESPACE", value_parser = super::namespace)]
    into: Option<String>,
    /// Component of a policy that the running operator got with --policy
    #[arg(long = "policy", value_name = "X.wasm")]
    policies: Vec<PathBuf>,
    #[command(flatten)]
    connection: Connection,
    /// Also use packages in the files from namespaces other than the operator's
    #[arg(long, env = "NAMESPACE_POLICIES")]
    namespace_policies: bool,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    facts: ClusterFacts,
    #[command(flatten)]
    grantable: GrantableFlags,
}

impl Plan {
    /// Prints the changes. Every error ends with exit code 1, because exit code 2 means that an object changes.
    pub(super) fn run(self, out: &mut Output) -> ExitCode {
        let output = self.output;
        or_held_back(self.planned().and_then(|planned| show(&planned, output, out)))
    }

    fn planned(self) -> anyhow::Result<Planned> {
        let Self {
            shipment,
            compatibility,
            filenames,
            recursive,
            crds,
            namespace,
            into,
            policies,
            connection,
            namespace_policies,
            output: _,
            facts,
            grantable,
        } = self;
        let size = grantable.size();
        let grantable = grantable.grantable();
        let started =
            Started { cluster: facts.cluster(), grantable: grantable.privileges.clone(), checks: Checks::Fields };
        let home = started.cluster.operator_namespace.clone();
        let loader = Loader::cached(started.cluster.clone())?.accepting(size);
        let own = loader.load(&policies)?;
        let place = |packed: Option<&str>| agreed("--into", into, packed, &home);
        let ready = || shipment.clone().ready_untried(&loader, place.clone());
        let is_live = filenames.is_empty();
        let new = if compatibility.is_some() {
            ProposedChange::Preset(Compatibility::of(compatibility))
        } else {
            let ready = if is_live { for_server(&loader, &connection, ready)? } else { ready()? };
            ProposedChange::Package(Box::new(ready.shipped(&home, &grantable, &own)?))
        };
        if is_live {
            let place = PlanScope { started, namespace };
            return on_cluster(connection, async |client| live::planned(client, &loader, &own, new, &place).await);
        }
        let Some(mut catalogue) = catalogue(&crds)? else { bail!("the CRDs cannot be used") };
        claim(&mut catalogue, own.iter().map(|loaded| &loaded.policy).chain(new.policy()));
        let namespace = namespace.as_deref().unwrap_or("default");
        let sources = InputPaths { paths: &filenames, recursive, namespace };
        let Some(documents) = documents(sources, &catalogue) else { bail!("the objects cannot be used") };
        let mut layers = settings::layers(&own, None, &[])?;
        layers.extend(settings::held(&documents, &home, &own)?);
        let in_namespaces = namespace_policies;
        let beside = Beside { loader: &loader, own: &own, home: &home, grantable: &grantable, in_namespaces };
        // The files may already contain this package or an earlier version of this package, so the call of `standing`
        // leaves out the package's ConfigMap.
        let standing = beside.standing(&documents, &layers, new.source())?;
        let sides = new.sides(&standing, &loader)?;
        warn_of_strangers(&documents, &catalogue, &sides.kinds());
        if !sides.answer_for(&documents) {
            bail!("nothing to plan for: no object is of a kind that a policy claims");
        }
        // The files may contain only a part of the cluster's objects, so a missing object may exist in the cluster.
        let unstored = Unstored { hidden: &|_: &ResourceType| None, is_read: &|_| false };
        let comparison = sides.compare(&documents, catalogue.scopes(), &started, &unstored)?;
        sides.tell_held(&documents);
        Ok(Planned::of(&sides, &documents, comparison.differences))
    }
}

/// Prints the changes. Returns the exit code.
pub(super) fn show(planned: &Planned, form: OutputFormat, out: &mut Output) -> anyhow::Result<ExitCode> {
    tell(planned, form, out)?;
    let differences = &planned.differences;
    Ok(if differences.iter().any(Difference::is_failure) {
        ExitCode::from(HELD_BACK)
    } else if differences.iter().any(Difference::is_change) {
        ExitCode::from(CHANGES)
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the changes with a line for each field.
pub(super) fn table(differences: &[Difference]) -> String {
    table::of(differences)
}

/// Prints the changes, including failures and refusals.
pub(super) fn tell(
    Planned { objects, differences }: &Planned,
    form: OutputFormat,
    out: &mut Output,
) -> anyhow::Result<()> {
    let summary = Summary::of(*objects, differences);
    match form {
        OutputFormat::Json => json::write(out, differences, &summary)?,
        OutputFormat::Text => {
            out.text(&table::of(differences))?;
            out.text(&format!("{summary}\n"))?;
        }
    }
    out.flush()?;
    for Difference { object, before, after, children, .. } in differences {
        let said = |side: &Option<Side>| side.as_ref().map(|side| side.said.clone());
        let (before, after) = (said(before), said(after));
        match after {
            Some(Said::Failed(message)) => complain("failed", format_args!("{object}: {message}")),
            Some(refused @ Said::Refused(..)) if before.as_ref() != Some(&refused) => {
                complain("refused", format_args!("{object}: {refused}"));
            }
            _ => {}
        }
        for Child { child, refused, .. } in children {
            if let Some(why) = refused {
                complain("failed", format_args!("{object}: the API server refuses the planned {child}: {why}"));
            }
        }
    }
    let held = differences.iter().filter(|difference| !difference.waits_for.is_empty());
    let held: Vec<String> = held.map(waits_for).collect();
    if !held.is_empty() {
        let what = "objects change only when their plan gates open";
        complain("note", format_args!("{what}: {}", named_objects(&held)));
    }
    Ok(())
}

/// Names an object and the objects that its gates wait for.
fn waits_for(Difference { object, waits_for, .. }: &Difference) -> String {
    let on: BTreeSet<String> = waits_for.iter().map(ToString::to_string).collect();
    format!("{object} waits for {}", on.into_iter().collect::<Vec<_>>().join(", "))
}
