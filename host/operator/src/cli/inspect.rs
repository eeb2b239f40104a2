//! `policy inspect`: what a policy is.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, anyhow};
use clap::Args;
use kaos_policy::{
    contract::{Claim, ResourceType},
    gate::{Bounds, Inspection, inspect},
    policy::Policy,
};
use serde_json::{Value, json};

use super::{Form, output::Output, table::Table};
use crate::policies::{Candidate, Loader, sample_cluster};

/// Arguments of `policy inspect`.
#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// The component
    file: PathBuf,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

impl Inspect {
    /// Shows what the bytes tell, and what the policy says of itself. It is asked only after it passed the gate.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { file, output } = self;
        let candidate = Candidate::read(&file)?;
        let named = || file.display().to_string();
        let inspection = inspect(&candidate.inner.bytes, &Bounds::default()).with_context(named)?;
        let policy =
            Loader::new(sample_cluster())?.check(&candidate).result.map_err(|error| anyhow!("{}: {error}", named()))?;
        match output {
            Form::Json => out.json(&shown(&inspection, &policy))?,
            Form::Text => out.text(&told(&inspection, &policy))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(inspection: &Inspection, policy: &Policy) -> Value {
    let Inspection { digest, size, world, contract, imports, functions, largest_function } = inspection;
    let claims: Vec<Value> = policy
        .descriptor()
        .claims
        .iter()
        .map(|Claim { primary, emits, reads, wishes, finalizer, retired_finalizers, samples, extra: _ }| {
            let samples: Vec<_> = samples.iter().map(|sample| &sample.name).collect();
            json!({
                "primary": primary, "emits": emits, "reads": reads, "wishes": wishes, "finalizer": finalizer,
                "retiredFinalizers": retired_finalizers, "samples": samples,
            })
        })
        .collect();
    json!({
        "name": policy.id().name, "version": policy.id().version, "digest": digest, "size": size,
        "world": world.name(), "contract": contract, "imports": imports,
        "functions": functions, "largestFunction": largest_function, "claims": claims, "grants": policy.grants(),
        "settingsSchema": policy.schema().document(),
    })
}

fn told(inspection: &Inspection, policy: &Policy) -> String {
    let Inspection { digest, size, world, contract, imports, functions, largest_function } = inspection;
    let mut table = Table::new(&["POLICY", &format!("{} {}", policy.id().name, policy.id().version)]);
    table.row(["digest", &digest.to_string()]);
    table.row(["size", &format!("{size} bytes, {functions} functions, the largest of {largest_function} bytes")]);
    table.row(["world", &format!("{} of contract {contract}", world.name())]);
    table.row([
        "imports",
        &if imports.is_empty() { "nothing".to_owned() } else { format!("types of {}", imports.join(", ")) },
    ]);
    for claim in &policy.descriptor().claims {
        table.row(["claims", &claim.primary.to_string()]);
        for (what, types) in [("  emits", &claim.emits), ("  reads", &claim.reads), ("  wishes", &claim.wishes)] {
            if !types.is_empty() {
                table.row([what, &types.iter().map(ResourceType::to_string).collect::<Vec<_>>().join(", ")]);
            }
        }
    }
    format!("{table}\n{}", settings(policy))
}

/// Every setting with its default and the variable that feeds it.
fn settings(policy: &Policy) -> String {
    let mut table = Table::new(&["SETTING", "DEFAULT", "VARIABLE"]);
    let schema = policy.schema();
    let Ok(defaults) = schema.resolve(&policy.id().name, &[]) else { return String::new() };
    for (path, _) in defaults.sources() {
        let value = path.names().iter().try_fold(defaults.tree(), |value, name| value.get(name));
        let variable = schema.variables().iter().find(|(_, fed)| *fed == path).map_or("", |(variable, _)| variable);
        table.row([path.to_string(), value.map(ToString::to_string).unwrap_or_default(), variable.to_owned()]);
    }
    table.to_string()
}
