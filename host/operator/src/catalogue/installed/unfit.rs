//! Why what is to serve does not go together.

use std::{collections::BTreeSet, sync::Arc};

/// Revisions that cannot serve together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub(crate) struct Unfit {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// What namespaces brought themselves, as far as that is a part of it.
    pub(super) local: Vec<Arc<str>>,
    /// Every revision that is a part of it.
    pub(super) concerned: BTreeSet<Arc<str>>,
}

impl Unfit {
    /// Settings that hold everywhere do not fit.
    pub(super) fn of_settings(message: String) -> Self {
        Self { reason: "BadSettings", message, local: Vec::new(), concerned: BTreeSet::new() }
    }
}
