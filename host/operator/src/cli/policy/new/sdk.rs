//! Finds the location of the SDK, and of the other crates in the repository of the SDK.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde_json::Value;

/// The directory of the SDK in its repository.
const DIRECTORY: &str = "guest-policies/sdk";

/// The location of the SDK.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli::policy) enum Sdk {
    /// The directory of the SDK.
    Path(PathBuf),
    /// The URL of the git repository that contains the SDK, and a tag, if the user gave one.
    Git(String, Option<String>),
    /// A version of the SDK that cargo takes from its registry.
    Version(String),
}

impl Sdk {
    /// Finds the SDK. A directory may be the SDK itself, or the repository that contains the SDK.
    pub(in crate::cli::policy) fn located(sdk: &str) -> anyhow::Result<Self> {
        if sdk.contains("://") || sdk.starts_with("git@") {
            let (url, tag) = sdk.split_once('#').map_or((sdk, None), |(url, tag)| (url, Some(tag.to_owned())));
            return Ok(Self::Git(url.to_owned(), tag));
        }
        let path = Path::new(sdk);
        if path.is_dir() {
            let found = [path.to_owned(), path.join(DIRECTORY)].into_iter().find(|path| is_sdk(path));
            let Some(found) = found else {
                bail!(
                    "{sdk}: this directory does not contain kaos-policy-sdk: name the directory {DIRECTORY} of the \
                     SDK's repository"
                );
            };
            return Ok(Self::Path(found.canonicalize().with_context(|| sdk.to_owned())?));
        }
        if sdk.starts_with(|c: char| c.is_ascii_digit())
            && sdk.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
        {
            return Ok(Self::Version(sdk.to_owned()));
        }
        bail!(
            "{sdk}: is neither a directory, nor the URL of a repository, nor a version: name the source of \
            kaos-policy-sdk"
        )
    }

    /// Returns the location of a crate, as fields of a dependency in Cargo.toml. `directory` is the directory of the
    /// crate in the SDK's repository.
    pub(super) fn near(&self, directory: &str) -> anyhow::Result<String> {
        // A JSON string is a valid TOML string.
        let quoted = |text: &str| Value::from(text).to_string();
        Ok(match self {
            Self::Path(sdk) => {
                let root = sdk.ancestors().nth(Path::new(DIRECTORY).components().count());
                let found = if directory == DIRECTORY { Some(sdk.clone()) } else { root.map(|it| it.join(directory)) };
                let found = found.filter(|path| path.join("Cargo.toml").is_file());
                let Some(found) = found else {
                    bail!(
                        "{}: the repository of this SDK has no directory {directory}: name a complete checkout with \
                         --sdk",
                        sdk.display()
                    );
                };
                format!("path = {}", quoted(&found.display().to_string()))
            }
            Self::Git(url, None) => format!("git = {}", quoted(url)),
            Self::Git(url, Some(tag)) => format!("git = {}, tag = {}", quoted(url), quoted(tag)),
            Self::Version(version) => format!("version = {}", quoted(version)),
        })
    }

    /// Returns a paragraph for the README of a project whose dependencies are directories of this machine.
    pub(super) fn caution(&self) -> &'static str {
        match self {
            Self::Path(_) => {
                "\nCargo.toml names directories of the machine on which this project began, so the CI file works only \
                 there. Before\nyou publish the project, replace each `path` with a version, or with `git` and `tag`.\n"
            }
            Self::Git(..) | Self::Version(_) => "",
        }
    }

    /// Returns the SDK as a dependency in Cargo.toml.
    pub(super) fn dependency(&self) -> anyhow::Result<String> {
        Ok(format!("{{ {} }}", self.near(DIRECTORY)?))
    }
}

fn is_sdk(path: &Path) -> bool {
    fs::read_to_string(path.join("Cargo.toml")).is_ok_and(|text| text.contains("name = \"kaos-policy-sdk\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_written_as_cargo_wants_them() {
        let git = |url: &str| Sdk::located(url).unwrap().dependency().unwrap();
        assert_eq!(git("https://x.io/y"), r#"{ git = "https://x.io/y" }"#);
        assert_eq!(git("https://x.io/y#v0.1.0"), r#"{ git = "https://x.io/y", tag = "v0.1.0" }"#);
        let version = Sdk::Version("0.1.0".into()).dependency().unwrap();
        assert_eq!(version, r#"{ version = "0.1.0" }"#);
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let sdk = Sdk::located(&repository.display().to_string()).unwrap();
        assert_eq!(sdk.near("crds").unwrap(), format!("path = {:?}", repository.join("crds")));
        let error = sdk.near("nothing").unwrap_err().to_string();
        assert!(error.contains("complete checkout"), "{error}");
    }
}
