//! `policy check`: everything that a cluster would check before it runs a policy.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use kaos_policy::gate::{Check as Checked, Taken};
use serde_json::{Value, json};

use super::{
    Form, HELD_BACK,
    output::{Output, complain},
    table::Table,
};
use crate::policies::{Candidate, Loader, sample_cluster};

/// Arguments of `policy check`.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The component; its policy.yaml is looked for beside it
    file: PathBuf,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

impl Check {
    /// Shows every step up to the first that fails.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { file, output } = self;
        let candidate = Candidate::read(&file)?;
        let Checked { steps, result, .. } = Loader::new(sample_cluster())?.check(&candidate);
        match output {
            Form::Json => out.json(&json!({
                "digest": result.as_ref().ok().map(|policy| policy.id().digest),
                "policy": result.as_ref().ok().map(|policy| policy.id()),
                "passed": result.is_ok(),
                "steps": steps.iter().map(shown).collect::<Vec<_>>(),
                "error": result.as_ref().err().map(ToString::to_string),
            }))?,
            Form::Text => {
                let mut table = Table::new(&["STEP", "TIME", "RESULT", "FOUND"]);
                for taken in &steps {
                    let shown = shown(taken);
                    let text = |field: &str| shown[field].as_str().unwrap_or_default().to_owned();
                    let verdict = if taken.passed { "passed" } else { "failed" };
                    let time = format!("{:.1} ms", taken.time.as_secs_f64() * 1e3);
                    table.row([text("step"), time, verdict.to_owned(), text("outcome")]);
                }
                out.text(&table.to_string())?;
            }
        }
        Ok(match result {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                out.flush()?;
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
