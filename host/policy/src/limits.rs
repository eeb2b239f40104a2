//! What one pass may cost. All of it is counted, none of it is timed: the same input ends the same way on
//! every machine.

use serde::{Deserialize, Serialize};

/// Bounds of one pass of one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Instructions, roughly; an ordinary pass takes less than two million.
    pub fuel: u64,
    /// Bytes of linear memory.
    pub memory: usize,
    /// Bytes that one call may hand back.
    pub answer_bytes: usize,
    /// Manifests in a plan.
    pub manifests: usize,
    /// Containers in a pod.
    pub containers: usize,
    /// Needs of one object.
    pub needs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fuel: 500_000_000, memory: 32 << 20, answer_bytes: 8 << 20, manifests: 64, containers: 256, needs: 256 }
    }
}

impl Limits {
    /// How often a policy is asked for its needs before it must be content.
    pub const ROUNDS: usize = 5;

    /// The stricter of both in every respect.
    #[must_use]
    pub fn at_most(self, ceiling: Self) -> Self {
        Self {
            fuel: self.fuel.min(ceiling.fuel),
            memory: self.memory.min(ceiling.memory),
            answer_bytes: self.answer_bytes.min(ceiling.answer_bytes),
            manifests: self.manifests.min(ceiling.manifests),
            containers: self.containers.min(ceiling.containers),
            needs: self.needs.min(ceiling.needs),
        }
    }

    /// What a trial may use that asks everything twice in one sandbox.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self { fuel: self.fuel.saturating_mul(2), memory: self.memory.saturating_mul(2), ..self }
    }
}
