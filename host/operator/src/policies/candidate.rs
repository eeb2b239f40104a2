//! Reads components and scripts with their `policy.yaml`, for the gate.

use std::{io, path::Path};

use kaos_policy::{
    gate::{self, CodeForm},
    manifest::PolicyFile,
    settings,
};

use super::{ComponentOrigin, PolicyError};
use crate::{
    embedded,
    reading::{self, COMPONENT, SETTINGS},
};

/// A component or script with its `policy.yaml`, before the gate has checked it.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The origin of the component.
    pub origin: ComponentOrigin,
    /// The code and its policy file. Without a `policy.yaml`, the policy file is empty and grants nothing.
    pub inner: gate::Candidate,
}

impl Candidate {
    /// Returns the policies that are embedded in the binary.
    pub fn embedded() -> Result<Vec<Self>, PolicyError> {
        embedded::DEFAULTS
            .iter()
            .map(|policy| {
                let file = PolicyFile::parse(policy.manifest)
                    .map_err(|source| PolicyError::File { path: ComponentOrigin::Embedded.to_string(), source })?;
                let inner = gate::Candidate { bytes: policy.component.to_vec(), file, ..gate::Candidate::default() };
                Ok(Self { origin: ComponentOrigin::Embedded, inner })
            })
            .collect()
    }

    /// Reads a component or a script from a file, and the scope and the grants of the policy from `policy.yaml` in the
    /// same directory. A file whose name ends in `.js` or `.mjs` is a script.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let form = if is_script(path) { CodeForm::Script } else { CodeForm::Component };
        let bytes = reading::bytes(path, COMPONENT)?;
        let misnamed = path.with_extension("policy.yaml");
        if is_there(&misnamed) {
            return Err(PolicyError::Misnamed { path: misnamed.display().to_string() });
        }
        let beside = path.with_file_name("policy.yaml");
        let file = file_at(&beside)?;
        let settings_from = Some(settings::Origin::File(beside.display().to_string()));
        Ok(Self {
            origin: ComponentOrigin::File(path.to_owned()),
            inner: gate::Candidate { form, bytes, file, settings_from },
        })
    }
}

/// Returns whether the name of a file is the name of a script.
pub(crate) fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "js" || it == "mjs")
}

/// Returns whether a file with this name exists. Also returns true for a link without a target.
fn is_there(path: &Path) -> bool {
    !path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Reads a policy file. Returns an empty policy file if the file does not exist. An unusable file is an error, because
/// with an empty policy file the policy would apply in the whole cluster.
fn file_at(path: &Path) -> Result<PolicyFile, PolicyError> {
    if !is_there(path) {
        return Ok(PolicyFile::default());
    }
    let named = || path.display().to_string();
    let text = reading::text(path, SETTINGS)?;
    if text.trim().is_empty() {
        // The file may be empty because a shell creates it before a command writes its redirected output.
        return Err(PolicyError::Empty { path: named() });
    }
    PolicyFile::parse(&text).map_err(|source| PolicyError::File { path: named(), source })
}
