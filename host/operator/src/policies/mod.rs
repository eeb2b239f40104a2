//! Which policies answer offline: the embedded ones, and over them those that the user names.

mod load;
mod select;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use kaos_policy::{
    contract::ResourceType,
    gate,
    manifest::{PolicyFile, PolicyFileError},
    policy::StackError,
    settings,
};

pub use load::{Loaded, Loader, sample_cluster};
pub use select::select;

use crate::{
    embedded,
    reading::{self, COMPONENT, ReadError, SETTINGS},
};

/// Where a component comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The binary.
    Embedded,
    /// A file, as the user named it.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("the embedded policy"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// A component and what its `policy.yaml` says, not looked into yet.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Where it comes from.
    pub origin: Origin,
    /// The component and its policy file; an empty one, which grants nothing, where there is none.
    pub inner: gate::Candidate,
}

/// Why policies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A file that cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A policy file that says something wrong.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        source: PolicyFileError,
    },
    /// A policy file with nothing in it.
    #[error("{path}: is empty: write {{}} into it if that is meant, or take it away")]
    Empty {
        /// The file.
        path: String,
    },
    /// A policy file under a name that is not read.
    #[error("{path}: is not read: what is said of a component stands in policy.yaml beside it, in a folder of its own")]
    Misnamed {
        /// The file.
        path: String,
    },
    /// A component that is no policy.
    #[error("{origin}: {source}")]
    Rejected {
        /// Where it came from.
        origin: Origin,
        /// Why.
        source: Box<gate::LoadError>,
    },
    /// Two of the user's policies for one kind.
    #[error("{second}: claims {of}, as {first} does: name one of the two")]
    ClaimedTwice {
        /// The kind.
        of: ResourceType,
        /// The one that was named first.
        first: Origin,
        /// The other one.
        second: Origin,
    },
    /// An overlay with nothing below it.
    #[error("{origin}: is an environment overlay for {of}, which no policy claims: name one with --policy")]
    NothingBelow {
        /// The overlay.
        origin: Origin,
        /// The kind.
        of: ResourceType,
    },
    /// Policies that would feed each other.
    #[error(
        "{origin}: emits {of} for {claimed}, but a policy answers for {of}: nothing emitted may be an object for one"
    )]
    EmitsClaimed {
        /// The policy that emits it.
        origin: Origin,
        /// The kind for which it does.
        claimed: ResourceType,
        /// What it emits.
        of: ResourceType,
    },
    /// Layers that do not go together.
    #[error(transparent)]
    Stack(#[from] StackError),
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
