//! Embeds the default policies: finds them, builds them for Wasm, turns the modules into components, and writes the
//! table that `src/embedded.rs` includes. This script contains no name of a policy.

#[path = "build/code.rs"]
mod code;
#[path = "build/compile.rs"]
mod compile;
#[path = "build/embed.rs"]
mod embed;
#[path = "build/environment.rs"]
mod environment;
#[path = "build/prebuilt.rs"]
mod prebuilt;
#[path = "src/sections.rs"]
mod sections;
#[path = "build/shipped.rs"]
mod shipped;
#[path = "build/sources.rs"]
mod sources;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The component and the files of a policy, ready to be embedded in the program.
pub(crate) struct Component {
    /// The base name of the policy's files: `<name>.wasm` and `<name>.yaml`.
    name: String,
    bytes: Vec<u8>,
    /// The text of the policy's `policy.yaml`.
    manifest: String,
}

/// The error is a text, because only the person who runs the build reads it.
pub(crate) type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    for path in ["build.rs", "build", "src/sections.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    for variable in [prebuilt::VARIABLE, code::VARIABLE] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            for line in message.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: this is a build script of cargo")?);
    let workspace = environment::manifest_directory()?.join("../../guest-policies");
    let workspace = workspace.canonicalize().map_err(|error| format!("{}: {error}", workspace.display()))?;
    let prebuilt = env::var_os(prebuilt::VARIABLE).filter(|dir| !dir.is_empty());
    // Only the command `policy new` reads the sources, and a build without the feature `authoring` lacks this command.
    let is_for_authors = env::var_os("CARGO_FEATURE_AUTHORING").is_some();
    let policies = if is_for_authors || prebuilt.is_none() { sources::find(&workspace)? } else { Vec::new() };
    if is_for_authors {
        shipped::write(&out, &policies)?;
    }
    let components = match prebuilt {
        Some(dir) => prebuilt::read(&PathBuf::from(dir))?,
        None => build(&workspace, &policies, &environment::target_directory(&out)?.join("policies"))?,
    };
    let code = code::Folder::named()?;
    embed::write_script_engine(&out, &workspace, code.as_ref())?;
    embed::write_table(&out, &components, code.as_ref())
}

fn build(workspace: &Path, policies: &[sources::Policy], target_dir: &Path) -> Result<Vec<Component>> {
    compile::ensure_target()?;
    let modules = compile::build(workspace, target_dir, policies)?;
    policies.iter().zip(modules).map(|(policy, module)| embed::componentize(policy, &module)).collect()
}

/// Writes a file only if its content differs, so that cargo does not needlessly recompile code that includes it.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}
