//! The policies that the pass chose for its object.

use crate::catalogue::{Descent, Without};

/// The policies chosen for an object, with the reason for each fallback.
#[derive(Debug, Clone)]
pub(crate) struct Selected {
    pub(crate) descent: Descent,
    /// The number of the swap that installed these policies.
    pub(crate) since: u64,
    /// Whether the object pins its policy.
    pub(crate) chosen: bool,
    /// The message if the object's pin matches no policy for this object; `None` otherwise. The operator does not
    /// change the children of such an object.
    pub(crate) unknown_pin: Option<String>,
}

impl Selected {
    /// Returns the message to the user about a fallback and its reason; `None` without a fallback.
    pub(crate) fn fallback(&self) -> Option<String> {
        let told =
            |Without { revision, how, .. }: &Without| format!("policy revision {revision} does not answer: {how}");
        let told: Vec<String> = self.descent.without.iter().map(told).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Returns whether a fallback answers for this object.
    pub(crate) fn stands_in(&self) -> bool {
        !self.descent.without.is_empty()
    }
}
