//! The errors of loading and selecting policies.

use kaos_policy::{contract::ResourceType, gate, manifest::PolicyFileError, policy::StackError};

use super::ComponentOrigin;
use crate::reading::ReadError;

/// Why policies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A policy file is invalid.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The error.
        source: PolicyFileError,
    },
    /// A policy file is empty.
    #[error("{path}: is empty: write {{}} into it for a policy.yaml without fields, or delete it")]
    Empty {
        /// The file.
        path: String,
    },
    /// A policy file has a name under which the program does not read it.
    #[error("{path}: is not read: put these fields into a policy.yaml next to the component, in a folder of its own")]
    Misnamed {
        /// The file.
        path: String,
    },
    /// The gate refused a component.
    #[error("{origin}: {source}")]
    Rejected {
        /// The origin of the component.
        origin: ComponentOrigin,
        /// The reason.
        source: Box<gate::LoadError>,
    },
    /// Two of the user's policies claim the same kind.
    #[error("{second}: claims {of}, as {first} does: name one of the two")]
    ClaimedTwice {
        /// The kind.
        of: ResourceType,
        /// The first of the two policies.
        first: ComponentOrigin,
        /// The second of the two policies.
        second: ComponentOrigin,
    },
    /// An overlay claims a kind that no other policy claims.
    #[error("{origin}: is an overlay for {of}, which no policy claims: name one with --policy")]
    NothingBelow {
        /// The overlay.
        origin: ComponentOrigin,
        /// The kind.
        of: ResourceType,
    },
    /// A policy emits a kind that another policy claims.
    #[error(
        "{origin}: emits {of} for {claimed}, but a policy answers for {of}: a policy must not emit objects that a \
         policy answers for"
    )]
    EmitsClaimed {
        /// The policy that emits the kind.
        origin: ComponentOrigin,
        /// The kind that this policy claims.
        claimed: ResourceType,
        /// The emitted kind.
        of: ResourceType,
    },
    /// Policies that cannot be stacked.
    #[error(transparent)]
    Stack(#[from] StackError),
}
