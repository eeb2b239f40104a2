//! The result of looking up a target in the stores.

use kaos_objects::SecretFacts;

use super::text::Text;

/// The known state of a target. Objects are not expanded and not parsed yet.
#[derive(Debug)]
pub(super) enum Look {
    Pending,
    Objects(Vec<(Text, u64)>),
    Secret(SecretFacts),
    Unserved,
    Forbidden(String),
}
