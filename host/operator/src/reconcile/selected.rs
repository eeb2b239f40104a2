//! The policies that were chosen for the object of a pass.

use crate::catalogue::{Descent, Without};

/// The policies chosen for an object, with the reason for any fallback.
#[derive(Debug, Clone)]
pub(crate) struct Selected {
    pub(crate) descent: Descent,
    /// The swap that brought the policies.
    pub(crate) since: u64,
    /// Whether the object pins its policy.
    pub(crate) chosen: bool,
    /// Set if the object pins a policy that it cannot have. Its children stay as they are.
    pub(crate) unknown_pin: Option<String>,
}

impl Selected {
    /// The message to the user about a fallback and its reason.
    pub(crate) fn fallback(&self) -> Option<String> {
        let told =
            |Without { revision, how, .. }: &Without| format!("policy revision {revision} does not answer: {how}");
        let told: Vec<String> = self.descent.without.iter().map(told).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Whether a fallback answers for this object.
    pub(crate) fn stands_in(&self) -> bool {
        !self.descent.without.is_empty()
    }
}
