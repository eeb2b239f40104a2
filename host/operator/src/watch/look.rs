//! What there is, as the stores have it.

use std::sync::Arc;

use kaos_policy::contract::SecretFacts;

/// What there is, not parsed yet.
#[derive(Debug)]
pub(super) enum Look {
    Pending,
    Objects(Vec<(Arc<str>, u64)>),
    Secret(SecretFacts),
    Unserved,
    Forbidden(String),
}
