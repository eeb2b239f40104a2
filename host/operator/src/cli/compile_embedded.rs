//! `compile-embedded`: compiles the default policies and the script engine to machine code. The image build runs this
//! command between its two builds of this program, and the second build embeds the machine code. In the finished image,
//! the command checks that this program contains the machine code.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use kaos_policy::engine::{BuiltIn, Engine, ScriptEngine};

use super::{HELD_BACK, output::Output};
use crate::embedded::{DEFAULTS, script_engine};

/// Arguments of `compile-embedded`.
#[derive(Debug, Args)]
pub(super) struct CompileEmbedded {
    /// Folder to write the code to, for a build with `KAOS_EMBEDDED_CODE`; without a folder, the command prints which
    /// policies are already compiled
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

/// Writes one file for each default policy, and one for the script engine. The name of each file is the digest of the
/// policy's component, or of the packed script engine.
fn write(folder: &Path) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for policy in DEFAULTS {
        let file = folder.join(policy.digest).with_extension("code");
        fs::write(&file, BuiltIn::make(policy.component)?).with_context(|| file.display().to_string())?;
    }
    let file = folder.join(ScriptEngine::shipped()?.packed_digest.hex()).with_extension("code");
    fs::write(&file, BuiltIn::make(&ScriptEngine::component()?)?).with_context(|| file.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn tell(out: &mut Output) -> anyhow::Result<ExitCode> {
    let engine = Engine::compiling()?;
    let mut told = ExitCode::SUCCESS;
    let scripts = (ScriptEngine::shipped()?.digest.hex(), script_engine());
    let policies = DEFAULTS.iter().map(|policy| (policy.digest.to_owned(), policy.built_in()));
    for (digest, code) in policies.chain([scripts]) {
        let compiled = code.context("compiled at each start").and_then(|code| Ok(code.fits(&engine)?));
        match compiled {
            Ok(()) => out.text(&format!("{digest}  compiled\n"))?,
            Err(why) => {
                told = ExitCode::from(HELD_BACK);
                out.text(&format!("{digest}  {why}\n"))?;
            }
        }
    }
    Ok(told)
}
