//! Compiled code of the default policies, from a folder that `kaos-operator compile-embedded` of an earlier build of the
//! same sources wrote: `<digest of the component>.code`.
//!
//! What is in there becomes part of the program and is run as such. The program notices code of another version or with other
//! options, and compiles the policy instead; it does not notice code that somebody forged. So the folder has to be as
//! trustworthy as the sources are.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::Result;

/// The environment variable that names the folder.
pub(crate) const VARIABLE: &str = "KAOS_EMBEDDED_CODE";

/// The folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The one that is named, if one is.
    pub(crate) fn named() -> Result<Option<Self>> {
        let Some(folder) = env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from) else {
            return Ok(None);
        };
        if folder.is_relative() {
            let remedy = "not an absolute path: cargo runs build scripts in the package's directory";
            return Err(format!("{VARIABLE}: {}: {remedy}", folder.display()));
        }
        println!("cargo::rerun-if-changed={}", folder.display());
        Ok(Some(Self(folder)))
    }

    /// The code of a component.
    pub(crate) fn of(&self, name: &str, digest: &str) -> Result<Vec<u8>> {
        let file = self.0.join(Path::new(digest)).with_extension("code");
        fs::read(&file).map_err(|error| {
            let remedy = "write it with `kaos-operator compile-embedded` of a build of these very sources";
            format!("{VARIABLE}: {}: no code of {name}: {error}; {remedy}", file.display())
        })
    }
}
