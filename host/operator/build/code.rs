//! Reads compiled code of the default policies from a folder. To fill the folder, first build the same sources without
//! the folder, and then run the command `compile-embedded` of the built `kaos-operator`. The command writes a file
//! `<digest of the component>.code` for each component.
//!
//! The code becomes part of the program and runs with the program's rights. If the code was compiled by another version
//! or with other options, the program detects this and compiles the policy instead. The program cannot detect forged
//! code, so the folder must be as trustworthy as the sources.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::Result;

/// The environment variable that names the folder.
pub(crate) const VARIABLE: &str = "KAOS_EMBEDDED_CODE";

/// The folder with the compiled code.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Returns the folder that the variable names; `None` if the variable is not set.
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

    /// Reads the compiled code of a component from the folder.
    pub(crate) fn of(&self, name: &str, digest: &str) -> Result<Vec<u8>> {
        let file = self.0.join(Path::new(digest)).with_extension("code");
        fs::read(&file).map_err(|error| {
            let remedy = "build kaos-operator from the same sources without this variable, and let its command \
                          compile-embedded write the folder";
            format!("{VARIABLE}: {}: cannot read the compiled code of {name}: {error}; {remedy}", file.display())
        })
    }
}
