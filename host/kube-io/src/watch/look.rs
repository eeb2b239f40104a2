//! The result of looking up a target in the stores.

use kaos_objects::SecretFacts;

use super::text::Text;

/// The known state of a target. The texts of the objects are still compressed and unparsed.
#[derive(Debug)]
pub(super) enum Look {
    Pending,
    Objects(Vec<(Text, u64)>),
    Secret(SecretFacts),
    Unserved,
    Forbidden(String),
}
