//! `compile-embedded`: what a build of the image does between its two steps, and how it sees that it came to something.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use kaos_policy::engine::Engine;

use super::{HELD_BACK, output::Output};
use crate::{embedded::DEFAULTS, package::gzip};

/// Arguments of `compile-embedded`.
#[derive(Debug, Args)]
pub(super) struct CompileEmbedded {
    /// Where it is written, for a build with `KAOS_EMBEDDED_CODE`; without it, whether each is compiled already is told
    folder: Option<PathBuf>,
}

impl CompileEmbedded {
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        match self.folder {
            Some(folder) => write(&folder),
            None => tell(out),
        }
    }
}

/// One file a policy, named by its component's digest, packed.
fn write(folder: &Path) -> anyhow::Result<ExitCode> {
    let engine = Engine::portable()?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for policy in DEFAULTS {
        let file = folder.join(policy.digest).with_extension("code");
        fs::write(&file, gzip(&engine.compile(policy.component)?)?).with_context(|| file.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(out: &mut Output) -> anyhow::Result<ExitCode> {
    let engine = Engine::compiling()?;
    let mut all = ExitCode::SUCCESS;
    for policy in DEFAULTS {
        let told = match policy.built_in().map(|code| code.fits(&engine)) {
            Some(Ok(())) => "compiled".to_owned(),
            Some(Err(error)) => error.to_string(),
            None => "compiled at each start".to_owned(),
        };
        if told != "compiled" {
            all = ExitCode::from(HELD_BACK);
        }
        out.text(&format!("{}  {told}\n", policy.digest))?;
    }
    Ok(all)
}
