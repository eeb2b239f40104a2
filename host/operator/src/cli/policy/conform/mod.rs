//! `policy conform`: checks a policy with samples and random objects.

mod junit;
mod repeat;
mod text;

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::{Args, ValueEnum};
use kaos_policy::{
    gate::Check as Checked,
    near::nearest,
    policy::Policy,
    settings::{self, Layer, Origin},
};
use serde_json::{Value, json};

use super::{
    HELD_BACK, UNUSABLE,
    facts::ClusterFacts,
    objects::{catalogue, claim, documents_if_named},
    output::{Output, complain},
};
use crate::{
    conform::{self, Findings, Inputs},
    input,
    policies::{Candidate, Loaded, Loader},
};
use repeat::Repeat;

/// Arguments of `policy conform`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 = all checks passed; 1 = a check failed; 2 = the checks could not run.")]
pub(super) struct ConformVerb {
    /// The component or the script; the command also reads a policy.yaml in the same directory
    file: PathBuf,
    /// CRDs of further kinds; without a CRD, the random objects of a kind are variations of its samples
    #[arg(long, value_name = "FILE|DIR|-")]
    crds: Vec<String>,
    /// File or directory with objects in YAML or JSON, or - for standard input; the checks use these objects like the
    /// policy's samples
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    filenames: Vec<String>,
    /// File with settings as YAML: a section for each policy, or settings for every policy that declares them
    #[arg(long, value_name = "FILE")]
    settings: Option<String>,
    /// Settings that may have no effect, for example because they have an effect only on special clusters
    #[arg(long, value_delimiter = ',', value_name = "PATH,…")]
    without_effect: Vec<String>,
    /// Number of random objects
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    objects: u64,
    /// Seed of the random objects; equal seeds give equal objects
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Check only the object with this number; a failed check prints the number
    #[arg(long, value_name = "NUMBER")]
    only: Option<u64>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: FindingsForm,
    #[command(flatten)]
    facts: ClusterFacts,
}

/// The output format of the findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum FindingsForm {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// A JUnit report, for CI
    Junit,
}

impl ConformVerb {
    /// Runs the gate and then all other checks, and prints one result for each check.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { file, crds, filenames, settings, without_effect, objects, seed, only, output, facts } = self;
        let repeat =
            Repeat { file: &file, crds: &crds, filenames: &filenames, settings: settings.as_deref(), seed, objects };
        let Some(mut known) = catalogue(&crds)? else { return Ok(ExitCode::from(UNUSABLE)) };
        let candidate = Candidate::read(&file)?;
        let cluster = facts.cluster();
        let Checked { described, result, .. } = Loader::cached(cluster.clone())?.accepting_all().check(&candidate);
        let findings = match result {
            Ok(policy) => {
                claim(&mut known, [&policy]);
                let Some(files) = documents_if_named(&filenames, &known) else { return Ok(ExitCode::from(UNUSABLE)) };
                let loaded = Loaded { origin: candidate.origin, policy, settings: candidate.inner.file.settings };
                let layers = layers(&loaded, settings.as_deref())?;
                let policy = &loaded.policy;
                let without_effect = paths(policy, &without_effect)?;
                let (settings, cluster, crds, files) = (&*layers, &cluster, &known, &*files);
                let without_effect = &*without_effect;
                conform::check(&Inputs { policy, settings, without_effect, cluster, crds, files, objects, seed, only })?
            }
            Err(error) => Findings::of_gate(described.map(|policy| policy.id().clone()), seed, &error.to_string()),
        };
        for warning in &findings.warnings {
            complain("warning", format_args!("{}: {warning}", file.display()));
        }
        match output {
            FindingsForm::Text => out.text(&text::text(&findings, &repeat)?)?,
            FindingsForm::Json => {
                let mut shown = json!(findings);
                for check in shown["checks"].as_array_mut().into_iter().flatten() {
                    if let Some(Value::Object(counterexample)) = check.get_mut("counterexample") {
                        // Only the check of the settings reports the settings of its passes. This check needs all
                        // objects, so its repetition cannot use `--only`.
                        let is_usual = !counterexample.contains_key("settings");
                        let only = counterexample["number"].as_u64().filter(|_| is_usual);
                        counterexample.insert("repeat".to_owned(), json!(repeat.command(only)));
                    }
                }
                out.json(&shown)?;
            }
            FindingsForm::Junit => out.verbatim(&junit::junit(&findings, &repeat)?)?,
        }
        out.flush()?;
        let failed: Vec<&str> = findings.failed().map(|result| result.property.name()).collect();
        if failed.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let (count, all) = (failed.len(), findings.results.len());
        complain("error", format_args!("{}: {count} of {all} checks failed: {}", file.display(), failed.join(", ")));
        Ok(ExitCode::from(HELD_BACK))
    }
}

/// Returns the settings of `policy.yaml` and of `--settings`. Ignores environment variables, so that the checks
/// give the same result on each machine.
pub(super) fn layers(loaded: &Loaded, file: Option<&str>) -> anyhow::Result<Vec<Layer>> {
    let Loaded { origin, policy, settings } = loaded;
    let (name, mut layers) = (&policy.id().name, Vec::new());
    if !settings.is_null() {
        layers.push(Layer::tree(Origin::PolicyFile(origin.to_string()), name, settings.clone()));
    }
    if let Some(file) = file {
        let document = input::document(std::path::Path::new(file))?;
        // An empty file is valid and has no settings.
        if !document.is_null() {
            layers.extend(settings::file(file, &document, &[(name, policy.schema())])?);
        }
    }
    policy.settings(&layers)?;
    Ok(layers)
}

/// Parses the paths of settings. Fails if the policy's schema does not contain a setting.
fn paths(policy: &Policy, texts: &[String]) -> anyhow::Result<Vec<settings::Path>> {
    let declared: Vec<String> = policy.schema().leaves().iter().map(|(path, _)| path.to_string()).collect();
    let path = |text: &String| {
        if declared.contains(text) {
            return Ok(settings::Path::parse(text));
        }
        let near = nearest(text, declared.iter().map(String::as_str));
        let hint = near.map_or_else(String::new, |near| format!(": did you mean {near}?"));
        bail!("--without-effect: {} has no setting {text}{hint}", policy.id().name)
    };
    texts.iter().map(path).collect()
}
