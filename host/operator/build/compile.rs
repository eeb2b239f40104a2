//! Runs a nested cargo that compiles a policy's package to a core Wasm module.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Result, environment, sources::Policy};

const TARGET: &str = "wasm32-unknown-unknown";

/// Installs the standard library of the Wasm target through rustup if the library is missing.
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
    // Also checks that the directory has content, because an interrupted installation leaves an empty directory.
    Ok(output.status.success() && fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()))
}

/// Builds the policies. Returns their Wasm modules, in the order of the parameter `policies`.
pub(crate) fn build(workspace: &Path, target_dir: &Path, policies: &[Policy]) -> Result<Vec<Vec<u8>>> {
    let built = target_dir.join(TARGET).join("release");
    policies
        .iter()
        .map(|policy| {
            run(workspace, target_dir, policy)?;
            module(&built, policy)
        })
        .collect()
}

/// Builds one policy as a cdylib only. For tests, the manifest also lists the crate type rlib. With both crate types,
/// the compiler would also keep the functions that only tests can call. These functions would make up a third of the
/// component.
fn run(workspace: &Path, target_dir: &Path, policy: &Policy) -> Result<()> {
    let mut cargo = environment::cargo();
    cargo.current_dir(workspace).args(["rustc", "--lib", "--crate-type", "cdylib", "--package", &policy.package]);
    cargo.args(["--release", "--locked", "--target", TARGET]).arg("--target-dir").arg(target_dir);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(workspace)?);
    let output = cargo.output().map_err(|error| format!("cargo does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{} does not build ({}):\n{}",
        policy.package,
        workspace.display(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    ))
}

/// Returns the compiler flags. These flags replace the flags in the user's cargo configuration. They keep paths of this
/// machine out of the component, and make the linker encode each address in as few bytes as possible. Cargo hashes a
/// path dependency outside of the workspace by its absolute path, and this hash changes the order of functions. So the
/// bytes are reproducible only for the same sources in the same directory.
fn flags(workspace: &Path) -> Result<OsString> {
    let repository = workspace.parent().ok_or("guest-policies/ has no parent directory")?;
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let mut flags = OsString::from("-Clink-arg=--compress-relocations");
    for (from, to) in [(Some(repository.to_owned()), "/kaos"), (home, "/cargo")] {
        let Some(from) = from else { continue };
        flags.push("\u{1f}--remap-path-prefix=");
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

/// Tells cargo to watch every input of an artifact: sources of local packages, included files, WIT. Reads the inputs
/// from the dep-info file.
fn watch(dep_info: &Path) -> Result<()> {
    let text = fs::read_to_string(dep_info).map_err(|error| format!("{}: {error}", dep_info.display()))?;
    for line in text.lines() {
        let Some((_, inputs)) = line.split_once(": ") else { continue };
        // The dep-info file writes a space inside a path as `\ `.
        for input in inputs.replace("\\ ", "\u{0}").split(' ').filter(|input| !input.is_empty()) {
            println!("cargo::rerun-if-changed={}", input.replace('\u{0}', " "));
        }
    }
    Ok(())
}
