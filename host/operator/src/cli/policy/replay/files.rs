//! Reads cases from files and directories.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use crate::{
    parallel::in_parallel,
    reading::{self, OBJECTS},
    record::Case,
};

/// The extension of the files that the command reads from a directory.
const EXTENSION: &str = "kaos";

/// A case, and the name of its file.
pub(super) struct CaseFile {
    pub(super) name: String,
    pub(super) case: Case,
}

/// Reads the cases of files and directories, in the order of the names.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<CaseFile>> {
    let paths: Vec<Vec<PathBuf>> = paths.iter().map(|path| in_path(path)).collect::<anyhow::Result<_>>()?;
    in_parallel(&paths.concat(), |path| one(path)).into_iter().collect()
}

fn one(path: &Path) -> anyhow::Result<CaseFile> {
    let text = reading::text(path, OBJECTS)?;
    let name = path.display().to_string();
    let case = Case::parse(&text).with_context(|| name.clone())?;
    Ok(CaseFile { name, case })
}

fn in_path(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let named = || path.display().to_string();
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(named)? {
        let path = entry.with_context(named)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            files.push(path);
        }
    }
    if files.is_empty() {
        bail!("{}: the directory has no file NAME.{EXTENSION}", path.display());
    }
    files.sort();
    Ok(files)
}
