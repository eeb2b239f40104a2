//! Components that are not looked into yet, and the `policy.yaml` beside each.

use std::{io, path::Path};

use kaos_policy::{gate, manifest::PolicyFile, settings};

use super::{Origin, PolicyError};
use crate::{
    embedded,
    reading::{self, COMPONENT, SETTINGS},
};

/// A component and what its `policy.yaml` says, not looked into yet.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Where it comes from.
    pub origin: Origin,
    /// The component and its policy file; an empty one, which grants nothing, where there is none.
    pub inner: gate::Candidate,
}

impl Candidate {
    /// The policies that are part of the binary.
    pub fn embedded() -> Result<Vec<Self>, PolicyError> {
        embedded::DEFAULTS
            .iter()
            .map(|policy| {
                let file = PolicyFile::parse(policy.manifest)
                    .map_err(|source| PolicyError::File { path: Origin::Embedded.to_string(), source })?;
                let inner = gate::Candidate { bytes: policy.component.to_vec(), file, ..gate::Candidate::default() };
                Ok(Self { origin: Origin::Embedded, inner })
            })
            .collect()
    }

    /// A component from a file. Where it holds and what it is granted stands beside it, in `policy.yaml`.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let bytes = reading::bytes(path, COMPONENT)?;
        let misnamed = path.with_extension("policy.yaml");
        if is_there(&misnamed) {
            return Err(PolicyError::Misnamed { path: misnamed.display().to_string() });
        }
        let beside = path.with_file_name("policy.yaml");
        let file = file_at(&beside)?;
        let settings_from = Some(settings::Origin::File(beside.display().to_string()));
        Ok(Self { origin: Origin::File(path.to_owned()), inner: gate::Candidate { bytes, file, settings_from } })
    }
}

/// Whether there is something of this name; not what a link leads to: where that is gone the link is still there.
fn is_there(path: &Path) -> bool {
    !path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// A policy file, or an empty one where there is none. One that is there and cannot be used must not look like none: the
/// policy would hold everywhere.
fn file_at(path: &Path) -> Result<PolicyFile, PolicyError> {
    if !is_there(path) {
        return Ok(PolicyFile::default());
    }
    let named = || path.display().to_string();
    let text = reading::text(path, SETTINGS)?;
    if text.trim().is_empty() {
        // As a shell leaves what the output is written into, before anybody has read it.
        return Err(PolicyError::Empty { path: named() });
    }
    PolicyFile::parse(&text).map_err(|source| PolicyError::File { path: named(), source })
}
