//! `policy inspect`: prints facts about a policy.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;
use kaos_policy::{
    contract::{Claim, ResourceType},
    gate::{Check as Checked, Inspection},
    manifest::Grants,
    policy::Policy,
};
use serde_json::{Value, json};

use super::{
    HELD_BACK, OutputFormat,
    output::{Output, complain},
    table::Table,
};
use crate::policies::{Candidate, Loader, sample_cluster};

/// Arguments of `policy inspect`.
#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// The component
    file: PathBuf,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

impl Inspect {
    /// Prints the facts that the command reads from the file's bytes, and the description that the policy returns. The
    /// description comes from the gate, because the earlier steps of the gate make the call safe. If a step of the gate
    /// fails, also prints the error.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { file, output } = self;
        let candidate = Candidate::read(&file)?;
        let named = || file.display().to_string();
        let Checked { inspection, described, result, .. } =
            Loader::new(sample_cluster())?.accepting_all().check(&candidate);
        let Some(inspection) = inspection else {
            result.with_context(named)?;
            return Ok(ExitCode::SUCCESS);
        };
        match output {
            OutputFormat::Json => out.json(&shown(&inspection, described.as_deref()))?,
            OutputFormat::Text => out.text(&told(&inspection, described.as_deref()))?,
        }
        let Err(error) = result else { return Ok(ExitCode::SUCCESS) };
        out.flush()?;
        complain("error", format_args!("{}: {error}", file.display()));
        Ok(ExitCode::from(HELD_BACK))
    }
}

fn shown(inspection: &Inspection, policy: Option<&Policy>) -> Value {
    let Inspection { digest, size, world, contract, imports, functions, largest_function, script_engine } = inspection;
    let mut shown = json!({
        "digest": digest, "size": size, "world": world.name(), "contract": contract, "imports": imports,
        "functions": functions, "largestFunction": largest_function,
    });
    if let Some(engine) = script_engine {
        shown["scriptEngine"] = json!(engine);
    }
    let Some(policy) = policy else { return shown };
    let claims: Vec<Value> = policy
        .descriptor()
        .claims
        .iter()
        .map(|Claim { primary, emits, reads, wishes, finalizer, samples, extra: _ }| {
            let samples: Vec<_> = samples.iter().map(|sample| &sample.name).collect();
            json!({
                "primary": primary, "emits": emits, "reads": reads, "wishes": wishes, "finalizer": finalizer,
                "samples": samples,
            })
        })
        .collect();
    for (field, value) in [
        ("name", json!(policy.id().name)),
        ("version", json!(policy.id().version)),
        ("claims", json!(claims)),
        ("grants", json!(policy.grants())),
        ("settingsSchema", policy.schema().document().clone()),
    ] {
        shown[field] = value;
    }
    shown
}

fn told(inspection: &Inspection, policy: Option<&Policy>) -> String {
    let Inspection { digest, size, world, contract, imports, functions, largest_function, script_engine } = inspection;
    let name = policy.map_or_else(|| "(unknown)".to_owned(), |policy| policy.id().to_string());
    let mut table = Table::new(&["POLICY", &name]);
    table.row(["digest", &digest.to_string()]);
    if let Some(engine) = script_engine {
        table.row(["size", &format!("{size} bytes")]);
        table.row(["script engine", &engine.to_string()]);
    } else {
        let functions = format!("{functions} functions, the largest of {largest_function} bytes");
        table.row(["size", &format!("{size} bytes, {functions}")]);
    }
    table.row(["world", &format!("{} of contract {contract}", world.name())]);
    table.row([
        "imports",
        &if imports.is_empty() { "nothing".to_owned() } else { format!("types of {}", imports.join(", ")) },
    ]);
    let Some(policy) = policy else { return table.to_string() };
    for claim in &policy.descriptor().claims {
        table.row(["claims", &claim.primary.to_string()]);
        for (what, types) in [("  emits", &claim.emits), ("  reads", &claim.reads), ("  wishes", &claim.wishes)] {
            if !types.is_empty() {
                table.row([what, &types.iter().map(ResourceType::to_string).collect::<Vec<_>>().join(", ")]);
            }
        }
        if let Some(finalizer) = &claim.finalizer {
            table.row(["  finalizer", finalizer]);
        }
    }
    for (what, granted) in granted(policy.grants()) {
        table.row([format!("granted {what}"), granted]);
    }
    format!("{table}\n{}", settings(policy))
}

/// Returns a row for each kind of grant.
fn granted(grants: &Grants) -> Vec<(&'static str, String)> {
    let Grants { reads, namespaces, privileges, secrets, persistent_volume_claims, finalizers } = grants;
    let joined = |names: &mut dyn Iterator<Item = String>| names.collect::<Vec<_>>().join(", ");
    let reads = reads.iter().map(|grant| {
        let place = grant.namespace.as_deref().unwrap_or("the cluster");
        format!("{} {} in {place}", grant.kind, grant.names.join("|"))
    });
    let privileges =
        privileges.iter().filter_map(|privilege| serde_json::to_value(privilege).ok()?.as_str().map(str::to_owned));
    let rows = [
        ("reads", joined(&mut { reads })),
        ("namespaces", joined(&mut namespaces.iter().cloned())),
        ("privileges", joined(&mut { privileges })),
        ("secrets", joined(&mut secrets.iter().cloned())),
        ("claims", joined(&mut persistent_volume_claims.iter().cloned())),
        ("finalizers", joined(&mut finalizers.iter().cloned())),
    ];
    rows.into_iter().filter(|(_, names)| !names.is_empty()).collect()
}

/// Formats every setting with its default and its environment variable.
fn settings(policy: &Policy) -> String {
    let mut table = Table::new(&["SETTING", "DEFAULT", "VARIABLE"]);
    let schema = policy.schema();
    let Ok(defaults) = schema.resolve(&policy.id().name, &[]) else { return String::new() };
    for (path, _) in defaults.sources() {
        let value = path.find_in(defaults.tree());
        let variable = schema.variables().iter().find(|(_, fed)| *fed == path).map_or("", |(variable, _)| variable);
        table.row([path.to_string(), value.map(ToString::to_string).unwrap_or_default(), variable.to_owned()]);
    }
    table.to_string()
}
