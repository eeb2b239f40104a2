//! Builds components from source for tests.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use wit_component::ComponentEncoder;

/// Builds the Rust package in a folder of the repository for Wasm. Returns the Wasm module with this name.
pub fn build(folder: &str, arguments: &[&str], module: &str) -> Result<Vec<u8>> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = top.join("target/tmp/guests");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--release", "--target", "wasm32-unknown-unknown"])
        .args(arguments)
        .arg("--target-dir")
        .arg(&target)
        .current_dir(top.join(folder))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .status()?;
    ensure!(status.success(), "{folder} does not build: is the target wasm32-unknown-unknown installed?");
    let path = target.join("wasm32-unknown-unknown/release").join(module);
    std::fs::read(&path).with_context(|| path.display().to_string())
}

/// Turns a module into a component. The module itself contains the name of its WIT world.
pub fn component(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default().module(module)?.validate(true).encode()
}

/// Returns an example of the SDK as a component: a policy, or an overlay over the policy of Agents.
pub fn example(name: &str) -> Result<Vec<u8>> {
    let arguments = ["--package", "kaos-policy-sdk", "--example", name];
    component(&build("guest-policies", &arguments, &format!("examples/{name}.wasm"))?)
}

/// Returns the overlay that changes the registry of every image. `policy new --overlay` uses it as its template.
pub fn mirror() -> Result<Vec<u8>> {
    component(&build("guest-policies", &["--package", "mirror-overlay"], "mirror_overlay.wasm")?)
}

/// Returns the hostile guest in the given mode. Each mode breaks one rule. `host/policy/tests/guests/hostile` lists the
/// modes.
pub fn hostile(mode: &str) -> Result<Vec<u8>> {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    if MODULE.get().is_none() {
        let _raced = MODULE.set(build("host/policy/tests/guests/hostile", &[], "hostile.wasm")?);
    }
    let built = MODULE.get().context("it was built")?;
    component(&told(built, "MODE=", 35, mode)?)
}

/// Writes `text` into the bytes of a module, directly after the bytes `mark`. The module has room for `room` bytes
/// there.
pub fn told(module: &[u8], mark: &str, room: usize, text: &str) -> Result<Vec<u8>> {
    let at = module.windows(mark.len()).position(|window| window == mark.as_bytes());
    let from = at.with_context(|| format!("the guest does not contain the bytes {mark}"))? + mark.len();
    let padded = format!("{text:room$}");
    ensure!(padded.len() == room, "{text:?} is too long");
    let mut module = module.to_vec();
    module[from..from + room].copy_from_slice(padded.as_bytes());
    Ok(module)
}
