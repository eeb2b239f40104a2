//! `policy replay`: repeats the passes of recorded cases, without a cluster.

mod as_test;
mod candidate;
mod files;
mod outcome;
mod project;
mod script_test;
mod show;

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;

use super::{OutputFormat, or_held_back, output::Output};
use crate::{
    parallel::in_parallel,
    policies::{Candidate, Loader, sample_cluster},
    replay::{KnownCode, Proposed, Replayer},
};
use files::CaseFile;
use outcome::Outcome;

/// Arguments of `policy replay`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = every answer equals the recorded answer; 1 = a case cannot be replayed; 2 = an \
                  answer differs. With a candidate: 0 = no object changes; 1 = a case cannot be replayed, or the \
                  candidate fails on an object; 2 = an object changes."
)]
pub(super) struct Replay {
    /// Cases of `policy record`, or directories with files NAME.kaos
    #[arg(value_name = "FILE|DIR", required = true)]
    cases: Vec<PathBuf>,
    /// Component or script of a candidate, which replaces the recorded policy of the same name; the command prints what
    /// the candidate would change. The command also reads a policy.yaml in the same directory
    #[arg(long, value_name = "X.wasm")]
    policy: Option<PathBuf>,
    /// Component or script of a recorded policy that is neither a default policy nor in the case
    #[arg(long = "component", value_name = "X.wasm")]
    components: Vec<PathBuf>,
    /// Write each case as a test into this project of `policy new`
    #[arg(long, value_name = "DIR", conflicts_with = "policy")]
    as_test: Option<PathBuf>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

impl Replay {
    /// Repeats the passes. Every error ends with exit code 1, because exit code 2 means that an answer differs.
    pub(super) fn run(self, out: &mut Output) -> ExitCode {
        or_held_back(self.replayed(out))
    }

    fn replayed(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { cases, policy, components, as_test, output } = self;
        let cases = files::read(&cases)?;
        let loader = Loader::cached(sample_cluster())?.accepting_all();
        let code = KnownCode::new(&loader, &components)?;
        if let Some(project) = as_test {
            return as_test::write(&project, &cases, &code);
        }
        let candidate = policy.map(|policy| proposed(&loader, &policy)).transpose()?;
        let is_plan = candidate.is_some();
        let replayer = Replayer::new(code, candidate);
        let outcomes = all(&replayer, &cases);
        if is_plan {
            return candidate::show(cases, outcomes, output, out);
        }
        show::show(&cases, &outcomes, output, out)
    }
}

fn proposed(loader: &Loader, path: &std::path::Path) -> anyhow::Result<Proposed> {
    let candidate = Candidate::read(path)?;
    match loader.check(&candidate).result {
        Ok(policy) => Ok(Proposed { policy, file: candidate.inner.file }),
        Err(error) => bail!("{}: {error}", path.display()),
    }
}

/// Repeats all passes.
fn all(replayer: &Replayer<'_>, cases: &[CaseFile]) -> Vec<Outcome> {
    in_parallel(cases, |file| replayer.replay(&file.case))
}
