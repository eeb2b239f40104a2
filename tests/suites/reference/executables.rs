//! Checks that every test file is part of a test executable. A few executables contain all tests. The manifests disable
//! Cargo's search for test files, so Cargo would never run a test file that no executable includes.

use std::fs;
use std::path::Path;

use crate::page::ROOT;

/// Each entry has a folder with test files, the manifest that lists the folder's executables, and the file that
/// declares the folder's other files as modules.
const FOLDERS: [(&str, &str, &str); 5] = [
    ("crds/tests", "crds/Cargo.toml", "main.rs"),
    ("host/cluster/tests", "host/cluster/Cargo.toml", "main.rs"),
    ("host/operator/tests", "host/operator/Cargo.toml", "main.rs"),
    ("host/policy/tests", "host/policy/Cargo.toml", "main.rs"),
    ("tests/suites", "tests/Cargo.toml", "policies.rs"),
];

/// Asserts that every Rust file in the folders of [`FOLDERS`] is the root of a test executable, or a module of a test
/// executable. Also asserts this for every folder in them that has a `main.rs` or a `mod.rs`.
pub(crate) fn check() {
    for (folder, manifest, list) in FOLDERS {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let folder = Path::new(ROOT).join(folder);
        let (manifest, list) = (read(&Path::new(ROOT).join(manifest)), read(&folder.join(list)));
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let has = |file: &str| path.join(file).is_file();
            if path.extension().is_none_or(|of| of != "rs") && !has("main.rs") && !has("mod.rs") {
                continue;
            }
            let name = path.file_stem().unwrap().to_string_lossy();
            let root = path.strip_prefix(&folder).unwrap().join(if has("main.rs") { "main.rs" } else { "" });
            let is_executable = manifest.contains(&format!("/{}\"", root.display().to_string().trim_end_matches('/')));
            let is_module = list.contains(&format!("mod {name};"));
            assert!(is_executable || is_module, "no executable has {}", path.display());
        }
    }
}
