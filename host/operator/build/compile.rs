//! The nested cargo: from a policy's package to a core Wasm module.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Result, environment, sources::Policy};

const TARGET: &str = "wasm32-unknown-unknown";

/// Adds the target's standard library through rustup where it is missing.
pub(crate) fn ensure_target() -> Result<()> {
    if target_is_installed()? {
        return Ok(());
    }
    let add = format!("rustup target add {TARGET}");
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    match added {
        Ok(output) if output.status.success() && target_is_installed()? => Ok(()),
        Ok(output) => Err(format!(
            "the default policies need the Rust target {TARGET}, and `{add}` failed:\n{}\nrun it by hand, then build again",
            String::from_utf8_lossy(&output.stderr).trim_end()
        )),
        Err(_) => Err(format!(
            "the default policies need the Rust target {TARGET}: install rustup and run `{add}`, or install your \
             distribution's Rust standard library for {TARGET}, then build again"
        )),
    }
}

fn target_is_installed() -> Result<bool> {
    let output = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("rustc does not start: {error}"))?;
    let directory = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // An empty directory is what an interrupted installation leaves.
    Ok(output.status.success() && fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()))
}

/// Builds all policies in one run; the modules come back in the policies' order.
pub(crate) fn build(workspace: &Path, target_dir: &Path, policies: &[Policy]) -> Result<Vec<Vec<u8>>> {
    let mut cargo = environment::cargo();
    cargo.current_dir(workspace).args(["build", "--release", "--locked", "--target", TARGET]);
    cargo.arg("--target-dir").arg(target_dir).env("CARGO_ENCODED_RUSTFLAGS", flags(workspace)?);
    for policy in policies {
        cargo.args(["--package", &policy.package]);
    }
    let output = cargo.output().map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "the default policies do not build ({}):\n{}",
            workspace.display(),
            String::from_utf8_lossy(&output.stderr).trim_end()
        ));
    }
    let built = target_dir.join(TARGET).join("release");
    policies.iter().map(|policy| module(&built, policy)).collect()
}

/// Set even where empty, since it keeps flags of the user's cargo configuration out. Paths of this machine are
/// mapped away, so that the same sources give the same bytes everywhere.
fn flags(workspace: &Path) -> Result<OsString> {
    let repository = workspace.parent().ok_or("guest-policies/ has no parent directory")?;
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let mut flags = OsString::new();
    for (from, to) in [(Some(repository.to_owned()), "/kaos"), (home, "/cargo")] {
        let Some(from) = from else { continue };
        if !flags.is_empty() {
            flags.push("\u{1f}");
        }
        flags.push("--remap-path-prefix=");
        flags.push(from);
        flags.push("=");
        flags.push(to);
    }
    Ok(flags)
}

fn module(built: &Path, policy: &Policy) -> Result<Vec<u8>> {
    let path = built.join(&policy.library).with_extension("wasm");
    watch(&path.with_extension("d"))?;
    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Cargo's list of everything that went into an artifact: sources of every local package, included files, WIT.
fn watch(dep_info: &Path) -> Result<()> {
    let text = fs::read_to_string(dep_info).map_err(|error| format!("{}: {error}", dep_info.display()))?;
    for line in text.lines() {
        let Some((_, inputs)) = line.split_once(": ") else { continue };
        // A space inside a path is written as `\ `.
        for input in inputs.replace("\\ ", "\u{0}").split(' ').filter(|input| !input.is_empty()) {
            println!("cargo::rerun-if-changed={}", input.replace('\u{0}', " "));
        }
    }
    Ok(())
}
