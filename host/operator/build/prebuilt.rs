//! Reads components that were built elsewhere: a directory with `<name>.wasm` and `<name>.yaml` (the `policy.yaml`) for
//! each policy.

use std::{fs, path::Path};

use crate::{Component, Result};

/// The environment variable that names the directory.
pub(crate) const VARIABLE: &str = "KAOS_EMBEDDED_POLICIES";

/// Returns the directory's components, ordered by name.
pub(crate) fn read(directory: &Path) -> Result<Vec<Component>> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{VARIABLE}: {}: {error}", path.display());
    if directory.is_relative() {
        return Err(failed(directory, &"not an absolute path: cargo runs build scripts in the package's directory"));
    }
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut components = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| failed(directory, &error))? {
        let path = entry.map_err(|error| failed(directory, &error))?.path();
        if path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
            return Err(failed(&path, &"the file name is not UTF-8"));
        };
        let bytes = fs::read(&path).map_err(|error| failed(&path, &error))?;
        let beside = path.with_extension("yaml");
        let manifest = fs::read_to_string(&beside).map_err(|error| failed(&beside, &error))?;
        components.push(Component { name: name.to_owned(), bytes, manifest });
    }
    if components.is_empty() {
        return Err(failed(directory, &"this folder has no *.wasm file"));
    }
    components.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(components)
}
