//! The environment that the outer cargo sets, and the part of this environment that a nested cargo gets.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Result;

/// Returns the outer build's target directory, which its debug, release, clippy and doc builds share.
pub(crate) fn target_directory(out: &Path) -> Result<PathBuf> {
    // Cargo puts a marker file into the target directory. The depth of OUT_DIR below this directory varies (profile,
    // `--target`).
    if let Some(marked) = out.ancestors().skip(1).find(|dir| dir.join(".rustc_info.json").is_file()) {
        return Ok(marked.to_owned());
    }
    // Ignore a relative path: it is relative to the directory in which the user called cargo, and a build script does
    // not know this directory.
    if let Some(named) = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute()) {
        return Ok(named);
    }
    // The form of OUT_DIR is <target>/<profile>/build/<package>/out.
    out.ancestors().nth(4).map(Path::to_owned).ok_or_else(|| format!("no target directory above {}", out.display()))
}

/// Returns the directory of this package's Cargo.toml.
pub(crate) fn manifest_directory() -> Result<PathBuf> {
    env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).ok_or_else(|| "CARGO_MANIFEST_DIR is not set".to_owned())
}

/// Prepares a command for the cargo that runs this build script. Removes the settings of the outer build, such as
/// coverage, clippy and sanitizers: these settings are not for Wasm, and would change the bytes of the modules.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_of_the_outer_build) {
            command.env_remove(name);
        }
    }
    command
}

fn is_of_the_outer_build(name: &str) -> bool {
    // A nested cargo needs these variables for the registries, the download cache, and the job tokens of the outer
    // build.
    const KEPT: [&str; 5] = ["CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR"];
    const DROPPED: [&str; 10] = [
        "CLIPPY_ARGS",
        "DEBUG",
        "HOST",
        "LLVM_PROFILE_FILE",
        "NUM_JOBS",
        "OPT_LEVEL",
        "OUT_DIR",
        "PROFILE",
        "RUSTDOCFLAGS",
        "TARGET",
    ];
    if KEPT.iter().any(|kept| name.starts_with(kept)) {
        return false;
    }
    name.starts_with("CARGO")
        || name == "RUSTFLAGS"
        || (name.starts_with("RUSTC") && name != "RUSTC")
        || name.starts_with("__CARGO")
        || DROPPED.contains(&name)
}
