//! Why revisions cannot serve together.

use std::{collections::BTreeSet, sync::Arc};

/// The error for revisions that cannot serve together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub(crate) struct Unfit {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The revisions that a namespace installed itself and that are part of the problem.
    pub(super) local: Vec<Arc<str>>,
    /// All revisions that are part of the problem.
    pub(super) concerned: BTreeSet<Arc<str>>,
}

impl Unfit {
    /// Settings for the whole cluster do not fit.
    pub(super) fn of_settings(message: String) -> Self {
        Self { reason: "BadSettings", message, local: Vec::new(), concerned: BTreeSet::new() }
    }
}
