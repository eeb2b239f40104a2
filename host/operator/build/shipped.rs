//! Embeds the sources of the default policies, from which `policy new --from` starts.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

use crate::{Result, sources::Policy, write_if_changed};

/// The files of a policy's package that `policy new --from` copies into a project. The other tests of the package work
/// only in this repository.
const FILES: [&str; 6] =
    ["src", "samples", "settings.schema.json", "policy.yaml", "tests/samples.rs", "tests/schema.rs"];

/// Writes the sources of the policies as one JSON document.
pub(crate) fn write(out: &Path, policies: &[Policy]) -> Result<()> {
    let shipped: Vec<Value> = policies.iter().map(shipped).collect::<Result<_>>()?;
    write_if_changed(&out.join("shipped.json"), Value::from(shipped).to_string().as_bytes())
}

fn shipped(policy: &Policy) -> Result<Value> {
    let mut files = Map::new();
    for name in FILES {
        let path = policy.directory.join(name);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
            read(&policy.directory, &path, &mut files)?;
        } else if let Some(folder) = path.parent().filter(|folder| folder.exists()) {
            // Watch only paths that exist: if a watched path does not exist, cargo runs this script in every build.
            println!("cargo::rerun-if-changed={}", folder.display());
        }
    }
    let root = policy.directory.ancestors().nth(2).unwrap_or(&policy.directory);
    let dependencies = policy.metadata["dependencies"].as_array().into_iter().flatten();
    let dependencies: Vec<Value> = dependencies.map(|it| dependency(it, root)).collect();
    Ok(json!({
        "package": policy.package, "features": policy.metadata["features"], "dependencies": dependencies,
        "files": files,
    }))
}

/// Returns the facts about a dependency that `policy new` needs to add the dependency to a project's Cargo.toml. If the
/// dependency is a directory in this repository, its path is relative to the root of the repository.
fn dependency(of: &Value, root: &Path) -> Value {
    let near = of["path"].as_str().map(|path| Path::new(path).strip_prefix(root).unwrap_or(Path::new(path)));
    json!({
        "name": of["name"], "version": of["req"], "isForTests": of["kind"] == "dev", "optional": of["optional"],
        "defaultFeatures": of["uses_default_features"], "features": of["features"], "near": near,
    })
}

/// Adds a file, or all files below a folder.
fn read(root: &Path, path: &Path, files: &mut Map<String, Value>) -> Result<()> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(failed)? {
            read(root, &entry.map_err(failed)?.path(), files)?;
        }
        return Ok(());
    }
    let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    files.insert(name, Value::from(fs::read_to_string(path).map_err(failed)?));
    Ok(())
}
