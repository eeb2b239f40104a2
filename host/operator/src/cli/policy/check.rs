//! `policy check`: runs all checks that a cluster would run before a policy serves.

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode, sync::Arc};

use clap::Args;
use kaos_policy::{
    contract::ResourceType,
    gate::{self, Check as Checked, Survey, Taken},
};
use serde_json::{Value, json};

use super::{
    HELD_BACK, OutputFormat, UNUSABLE,
    conform::layers,
    grantable::GrantableFlags,
    objects::catalogue,
    output::{Output, complain},
    table::Table,
};
use crate::{
    catalogue::Grantable,
    conform::{refused, told, unchecked},
    policies::{Candidate, Loaded, Loader, sample_cluster},
};

/// Arguments of `policy check`.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The component; the command also reads a policy.yaml in the same directory
    file: PathBuf,
    /// Files with the CRDs of the policy's kinds and of other custom kinds in its plans; the command has the CRDs of
    /// KAOS
    #[arg(long, value_name = "FILE")]
    crds: Vec<String>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    grantable: GrantableFlags,
}

impl Check {
    /// Prints the steps up to the first step that fails.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { file, crds, output, grantable } = self;
        let Some(crds) = catalogue(&crds)? else { return Ok(ExitCode::from(UNUSABLE)) };
        let candidate = Candidate::read(&file)?;
        let Checked { steps, result, .. } =
            Loader::new(sample_cluster())?.accepting(grantable.size()).check(&candidate);
        let mut steps: Vec<Value> = steps.iter().map(shown).collect();
        let mut result = result.map_err(|error| error.to_string());
        let grantable = grantable.grantable();
        if grantable != Grantable::default()
            && let Ok(policy) = &result
        {
            let granted = grantable.covers_grants(policy.grants());
            let beyond = granted.and_then(|()| grantable.covers_claims(&policy.descriptor().claims)).err();
            let within = "the operator permits all grants and claims".to_owned();
            let (passed, outcome) = (beyond.is_none(), beyond.as_ref().map_or(within, ToString::to_string));
            steps.push(json!({"step": "grantable", "milliseconds": 0.0, "outcome": outcome, "passed": passed}));
            if let Some(beyond) = beyond {
                result = Err(beyond.to_string());
            }
        }
        let (mut remarks, mut unknown) = (Vec::new(), BTreeSet::<ResourceType>::new());
        if let Ok(policy) = &result {
            remarks.extend(policy.remarks().iter().cloned());
            let (origin, settings) = (candidate.origin, candidate.inner.file.settings);
            let loaded = Loaded { origin, policy: Arc::clone(policy), settings };
            let layers = layers(&loaded, None)?;
            let Survey { idle_origins, plans } =
                gate::survey(policy, &layers, &sample_cluster(), &|of: &ResourceType| crds.schema(of))?;
            remarks.extend(idle_origins);
            let mut wrong = None;
            for (sample, manifests) in &plans {
                unknown.extend(unchecked(manifests, &crds));
                wrong = wrong.or_else(|| Some(format!("sample {sample}: {}", refused(manifests, &crds)?)));
            }
            if let Some(wrong) = wrong {
                steps.push(json!({"step": "manifests", "milliseconds": 0.0, "outcome": wrong, "passed": false}));
                result = Err(wrong);
            }
        }
        match output {
            OutputFormat::Json => out.json(&json!({
                "digest": result.as_ref().ok().map(|policy| policy.id().digest),
                "policy": result.as_ref().ok().map(|policy| policy.id()),
                "passed": result.is_ok(),
                "steps": steps,
                "remarks": remarks,
                "unchecked": unknown,
                "error": result.as_ref().err(),
            }))?,
            OutputFormat::Text => {
                let mut table = Table::new(&["STEP", "TIME", "RESULT", "FOUND"]);
                for step in &steps {
                    let text = |field: &str| step[field].as_str().unwrap_or_default().to_owned();
                    let verdict = if step["passed"] == true { "passed" } else { "failed" };
                    let time = format!("{:.1} ms", step["milliseconds"].as_f64().unwrap_or_default());
                    table.row([text("step"), time, verdict.to_owned(), text("outcome")]);
                }
                out.text(&table.to_string())?;
            }
        }
        out.flush()?;
        Ok(match result {
            Ok(_) => {
                for remark in &remarks {
                    complain("warning", format_args!("{}: {remark}", file.display()));
                }
                if let Some(told) = told(&unknown) {
                    complain("note", format_args!("{}: {told}", file.display()));
                }
                ExitCode::SUCCESS
            }
            Err(error) => {
                complain("error", format_args!("{}: {error}", file.display()));
                ExitCode::from(HELD_BACK)
            }
        })
    }
}

fn shown(taken: &Taken) -> Value {
    let Taken { step, time, outcome, passed } = taken;
    json!({"step": step, "milliseconds": time.as_secs_f64() * 1e3, "outcome": outcome, "passed": passed})
}
