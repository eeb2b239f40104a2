//! `policy plan`: what a policy, or settings for one, would change.

mod json;
mod sides;
mod summary;
mod table;

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;
use kaos_policy::{
    contract::{Cluster, ResourceType},
    lookup::Sighting,
};

use super::{
    Form, HELD_BACK, UNUSABLE,
    objects::{catalogue, documents, warn_of_strangers},
    output::{Output, complain},
    shipment::Shipment,
};
use crate::{
    input::Sources,
    offline::Stored,
    plan::{Difference, Said, Side, compare},
    policies::Loader,
};
use sides::Sides;
use summary::{Fuel, Summary};

/// Something changes.
const CHANGES: u8 = UNUSABLE;

/// Arguments of `policy plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing changes; 2 something changes; 1 the question cannot be answered, or the policy \
    fails on an object."
)]
pub(super) struct Plan {
    #[command(flatten)]
    shipment: Shipment,
    /// File or directory with what the cluster holds, or - for standard input; may be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", required = true)]
    filenames: Vec<String>,
    /// Look into the directories below a directory, too
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Namespace of objects that name none
    #[arg(short = 'n', long, default_value = "default", value_parser = super::namespace)]
    namespace: String,
    /// A policy that is in force; what is planned takes its place if it claims the same kinds
    #[arg(long = "policy", value_name = "X.wasm")]
    policies: Vec<PathBuf>,
    /// CRDs of further kinds
    #[arg(long, value_name = "FILE|DIR|-")]
    crds: Vec<String>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    /// Namespace that the operator runs in
    #[arg(long, env = "SYSTEM_NAMESPACE", default_value = "kaos-system", value_parser = super::namespace)]
    operator_namespace: String,
    /// DNS domain of the cluster's Services
    #[arg(long, env = "KUBERNETES_CLUSTER_DOMAIN", default_value = "cluster.local", value_parser = super::domain)]
    cluster_domain: String,
}

impl Plan {
    /// Shows what changes. Whatever keeps it from doing so ends with 1, since 2 says that something changes.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        self.planned(out).or_else(|error| {
            if super::output::is_broken_pipe(&error) {
                return Err(error);
            }
            complain("error", super::told(&error));
            Ok(ExitCode::from(HELD_BACK))
        })
    }

    fn planned(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self {
            shipment,
            filenames,
            recursive,
            namespace,
            policies,
            crds,
            output,
            operator_namespace,
            cluster_domain,
        } = self;
        let Some(catalogue) = catalogue(&crds)? else { return Ok(ExitCode::from(HELD_BACK)) };
        let sources = Sources { paths: &filenames, recursive, namespace: &namespace };
        let Some(documents) = documents(sources, &catalogue) else { return Ok(ExitCode::from(HELD_BACK)) };
        let cluster =
            Cluster { domain: cluster_domain, operator_namespace: operator_namespace.clone(), served: vec![] };
        let loader = Loader::new(cluster.clone())?;
        let ready = shipment.ready(&loader, &operator_namespace)?;
        let sides = Sides::of(loader.load(&policies)?, ready, &cluster)?;
        warn_of_strangers(&documents, &catalogue, &sides.claimed());
        let stored = Stored::new(&documents);
        let hidden = |_: &ResourceType| -> Option<Sighting> { None };
        let differences = compare(&stored, &sides.before, &sides.after, &hidden)?;
        if !documents.iter().any(|document| sides.claims(&document.object)) {
            bail!("nothing to plan for: no object is of a kind that a policy claims");
        }
        show(&differences, output, out)
    }
}

fn show(differences: &[Difference], form: Form, out: &mut Output) -> anyhow::Result<ExitCode> {
    let summary = Summary::of(differences);
    match form {
        Form::Json => json::write(out, differences, &summary)?,
        Form::Text => {
            out.text(&table::of(differences))?;
            out.text(&format!("{summary}\n"))?;
        }
    }
    out.flush()?;
    for Difference { object, before, after, .. } in differences {
        let said = |side: &Option<Side>| side.as_ref().map(|side| side.said.clone());
        let (before, after) = (said(before), said(after));
        match after {
            Some(Said::Failed(message)) => complain("failed", format_args!("{object}: {message}")),
            Some(refused @ Said::Refused(..)) if before.as_ref() != Some(&refused) => {
                complain("refused", format_args!("{object}: {refused}"));
            }
            _ => {}
        }
    }
    Ok(if differences.iter().any(Difference::is_failure) {
        ExitCode::from(HELD_BACK)
    } else if differences.iter().any(Difference::is_change) {
        ExitCode::from(CHANGES)
    } else {
        ExitCode::SUCCESS
    })
}
