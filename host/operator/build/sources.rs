//! Finds the default policies: packages of `guest-policies/` with `[package.metadata.kaos-policy]`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{Result, environment};

/// A policy's package.
pub(crate) struct Policy {
    /// The package's name.
    pub(crate) package: String,
    /// The name of the package's cdylib in file names.
    pub(crate) library: String,
    /// The text of the `policy.yaml` next to the package's Cargo.toml.
    pub(crate) manifest: String,
    /// The directory of the package's Cargo.toml.
    pub(crate) directory: PathBuf,
    /// The package's entry in the output of `cargo metadata`.
    pub(crate) metadata: Value,
}

/// Returns the policies of a workspace, ordered by package name.
pub(crate) fn find(workspace: &Path) -> Result<Vec<Policy>> {
    for file in ["Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", workspace.join(file).display());
    }
    let output = environment::cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(workspace)
        .output()
        .map_err(|error| format!("cargo metadata does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{}: {}", workspace.display(), String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata answers no JSON: {error}"))?;
    let mut policies = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest_path = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
        println!("cargo::rerun-if-changed={}", manifest_path.display());
        if !package["metadata"]["kaos-policy"].is_null() {
            policies.push(policy(package, &manifest_path)?);
        }
    }
    if policies.is_empty() {
        return Err(format!("{}: no package has [package.metadata.kaos-policy]", workspace.display()));
    }
    policies.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(policies)
}

fn policy(package: &Value, manifest_path: &Path) -> Result<Policy> {
    let name = package["name"].as_str().unwrap_or_default();
    let library = package["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|target| target["crate_types"].as_array().is_some_and(|types| types.contains(&"cdylib".into())))
        .and_then(|target| target["name"].as_str())
        .ok_or_else(|| {
            format!("{name}: a policy must be a cdylib: add crate-type = [\"cdylib\", \"rlib\"] to [lib]")
        })?;
    let manifest_file = manifest_path.with_file_name("policy.yaml");
    println!("cargo::rerun-if-changed={}", manifest_file.display());
    let manifest =
        fs::read_to_string(&manifest_file).map_err(|error| format!("{}: {error}", manifest_file.display()))?;
    let directory = manifest_path.parent().map(Path::to_owned).unwrap_or_default();
    let library = library.replace('-', "_");
    Ok(Policy { package: name.to_owned(), library, manifest, directory, metadata: package.clone() })
}
