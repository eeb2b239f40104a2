//! The result of looking up a target in the stores.

use std::sync::Arc;

use kaos_objects::SecretFacts;

/// The known state of a target. Objects are not parsed yet.
#[derive(Debug)]
pub(super) enum Look {
    Pending,
    Objects(Vec<(Arc<str>, u64)>),
    Secret(SecretFacts),
    Unserved,
    Forbidden(String),
}
