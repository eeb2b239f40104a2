//! The flag for optional types that the operator neither watches nor writes.

use clap::Args;

use crate::{group_kind::GroupKind, left_out::LeftOut};

/// The `--without` flag of `run` and `rbac`. The flag decides which rights the operator needs.
#[derive(Debug, Args)]
pub(super) struct Without {
    /// Kinds that the operator neither watches nor writes although a policy can use them, such as
    /// NetworkPolicy.networking.k8s.io; the operator needs no rights for these kinds, and policies treat them as not
    /// served
    #[arg(long, env = "WITHOUT_KINDS", value_delimiter = ',', value_name = "A,B")]
    without: Vec<GroupKind>,
}

impl Without {
    /// Returns the types that the operator neither watches nor writes.
    pub(super) fn left_out(&self) -> LeftOut {
        LeftOut::new(self.without.iter().cloned())
    }
}
