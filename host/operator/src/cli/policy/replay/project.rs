//! Writes files into a project of `policy new`.

use std::{fs, path::Path};

use anyhow::Context as _;

use crate::record::Case;

/// Writes a case into the project, for `policy replay --policy`. Returns the path.
pub(super) fn put_case(project: &Path, name: &str, case: &Case) -> anyhow::Result<String> {
    let path = format!("tests/cases/{name}.kaos");
    put(project, &path, &(serde_json::to_string_pretty(case)? + "\n"))?;
    Ok(path)
}

/// Writes a file of the project.
pub(super) fn put(project: &Path, path: &str, text: &str) -> anyhow::Result<()> {
    let path = project.join(path);
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(&path, text)).with_context(|| path.display().to_string())
}
