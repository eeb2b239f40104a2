//! Why policies cannot be used.

use kaos_policy::{contract::ResourceType, gate, manifest::PolicyFileError, policy::StackError};

use super::Origin;
use crate::reading::ReadError;

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
