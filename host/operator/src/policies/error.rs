//! The errors of loading and selecting policies.

use kaos_policy::{contract::ResourceType, gate, manifest::PolicyFileError, policy::StackError};

use super::ComponentOrigin;
use crate::reading::ReadError;

/// The reason why the process cannot use the policies.
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
    #[error("{path}: is empty: write {{}} into the file for a policy.yaml without fields, or delete the file")]
    Empty {
        /// The file.
        path: String,
    },
    /// A file has a name such as `X.policy.yaml`, but the program reads only `policy.yaml`.
    #[error(
        "{path}: the program does not read this file: put its fields into a policy.yaml, in a folder that contains \
         only this file and the component"
    )]
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
    #[error("{second}: this policy and {first} both claim {of}: name only one of the two policies")]
    ClaimedTwice {
        /// The kind.
        of: ResourceType,
        /// The first of the two policies.
        first: ComponentOrigin,
        /// The second of the two policies.
        second: ComponentOrigin,
    },
    /// An overlay claims a kind that no other policy claims.
    #[error(
        "{origin}: is an overlay for {of}, but no policy claims this kind: also name a policy that claims it with \
         --policy"
    )]
    NothingBelow {
        /// The overlay.
        origin: ComponentOrigin,
        /// The kind.
        of: ResourceType,
    },
    /// A policy emits a kind that another policy claims.
    #[error(
        "{origin}: this policy emits {of} for {claimed}, but another policy answers for {of}: remove {of} from \
         `emits`, or leave out one of the two policies"
    )]
    EmitsClaimed {
        /// The policy that emits the kind.
        origin: ComponentOrigin,
        /// The kind for whose objects this policy emits it.
        claimed: ResourceType,
        /// The emitted kind.
        of: ResourceType,
    },
    /// Policies that cannot be stacked.
    #[error(transparent)]
    Stack(#[from] StackError),
}
