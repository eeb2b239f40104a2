//! The content of the stores.

use std::sync::Arc;

use kaos_objects::SecretFacts;

/// The content of a target, not parsed yet.
#[derive(Debug)]
pub(super) enum Look {
    Pending,
    Objects(Vec<(Arc<str>, u64)>),
    Secret(SecretFacts),
    Unserved,
    Forbidden(String),
}
