//! `crds`: prints the CustomResourceDefinitions.

use std::process::ExitCode;

use clap::Args;

use super::output::Output;

/// Arguments of `crds`.
#[derive(Debug, Args)]
pub(super) struct Crds {}

impl Crds {
    /// Prints the definitions as multi-document YAML, ready for `kubectl apply -f -`.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self {} = self;
        for crd in kaos_crds::manifests::ALL {
            out.verbatim("---\n")?;
            out.verbatim(crd)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
