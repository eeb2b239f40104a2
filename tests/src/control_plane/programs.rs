//! Finds the programs of a control plane: first in `$KUBEBUILDER_ASSETS`, then in `target/control-plane`, then on PATH.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The folders in which the tests look for the programs.
#[derive(Debug, Clone)]
pub struct Programs(Vec<PathBuf>);

impl Programs {
    /// Returns the folders in the variables `KUBEBUILDER_ASSETS` and `PATH`, and the folder [`provided`].
    pub fn find() -> Self {
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
        Self(assets.into_iter().chain([provided()]).chain(path).collect())
    }

    /// Finds a program by name.
    pub fn get(&self, name: &str) -> Result<PathBuf> {
        let found = self.0.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        found.with_context(|| format!("{name} is not installed: run tests/control-plane/provision"))
    }

    /// Finds the operator that cargo built in the same target folder as this test.
    pub fn operator() -> Result<PathBuf> {
        let this = std::env::current_exe()?;
        let here = this.ancestors().map(|folder| folder.join("kaos-operator"));
        let found = here.take(4).find(|path| path.is_file());
        found.with_context(|| {
            format!("no kaos-operator next to {program}: build the whole workspace", program = this.display())
        })
    }
}

/// The folder in which the operators of all clusters cache the compiled code of policies.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp")
}

/// The folder that `tests/control-plane/provision` fills.
pub fn provided() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/control-plane")
}

/// Returns the files of kwok that define the behaviour of nodes and pods.
pub fn stages() -> Result<Vec<PathBuf>> {
    let folder = provided().join("stages");
    let read = std::fs::read_dir(&folder)
        .with_context(|| format!("{}: run tests/control-plane/provision", folder.display()))?;
    let mut files: Vec<PathBuf> = read.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    if files.is_empty() {
        bail!(
            "the folder {folder} is empty: remove the folder and run tests/control-plane/provision",
            folder = folder.display()
        );
    }
    Ok(files)
}
