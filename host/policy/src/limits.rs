//! The limits of one pass. None of them is a duration, so a pass over the same input has the same result on every
//! machine.

use serde::{Deserialize, Serialize};

use crate::units::{bytes, count};

/// The limits of one pass of one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Fuel, which is roughly the number of instructions. An ordinary pass takes less than two million units.
    pub fuel: u64,
    /// The maximum size of linear memory in bytes.
    pub memory: usize,
    /// The maximum size of the answer of one call in bytes.
    pub answer_bytes: usize,
    /// The maximum number of manifests in a plan.
    pub manifests: usize,
    /// The maximum number of origins in a plan. The origins of variables do not count.
    pub origins: usize,
    /// The maximum number of containers in a pod.
    pub containers: usize,
    /// The maximum number of needs for one object.
    pub needs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 500_000_000,
            memory: 32 << 20,
            answer_bytes: 8 << 20,
            manifests: 64,
            origins: 2_000,
            containers: 256,
            needs: 256,
        }
    }
}

impl Limits {
    /// The maximum number of rounds in which a policy names needs.
    pub const ROUNDS: usize = 5;

    /// Returns, for each limit, the lower of the two values.
    #[must_use]
    pub fn at_most(self, ceiling: Self) -> Self {
        Self {
            fuel: self.fuel.min(ceiling.fuel),
            memory: self.memory.min(ceiling.memory),
            answer_bytes: self.answer_bytes.min(ceiling.answer_bytes),
            manifests: self.manifests.min(ceiling.manifests),
            origins: self.origins.min(ceiling.origins),
            containers: self.containers.min(ceiling.containers),
            needs: self.needs.min(ceiling.needs),
        }
    }

    /// Returns a sentence for each limit above the limit in `ceiling`. The author of `policy.yaml` reads the sentences.
    /// The host uses the limit in `ceiling` instead.
    pub(crate) fn above(&self, ceiling: &Self) -> Vec<String> {
        let number =
            |own: usize, most: usize, shown: fn(usize) -> String| (own > most).then(|| (shown(own), shown(most)));
        let fuel = (self.fuel > ceiling.fuel).then(|| (count(self.fuel), count(ceiling.fuel)));
        let all = [
            ("fuel", fuel),
            ("memory", number(self.memory, ceiling.memory, bytes)),
            ("answerBytes", number(self.answer_bytes, ceiling.answer_bytes, bytes)),
            ("manifests", number(self.manifests, ceiling.manifests, count)),
            ("origins", number(self.origins, ceiling.origins, count)),
            ("containers", number(self.containers, ceiling.containers, count)),
            ("needs", number(self.needs, ceiling.needs, count)),
        ];
        let told = |(name, (own, most)): (&str, (String, String))| {
            format!("limits.{name} of policy.yaml is {own}, but the operator allows at most {most} in a pass")
        };
        all.into_iter().filter_map(|(name, above)| Some(told((name, above?)))).collect()
    }

    /// Returns the limits for a trial in which the host calls each function twice in one sandbox.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self { fuel: self.fuel.saturating_mul(2), memory: self.memory.saturating_mul(2), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_above_the_operators_is_reported_with_the_effective_one() {
        let ceiling = Limits::default();
        assert_eq!(ceiling.above(&ceiling), [""; 0]);
        let own = Limits { fuel: 900_000_000, memory: 48 << 20, needs: 2, ..ceiling };
        let told = own.above(&ceiling);
        let fuel = "limits.fuel of policy.yaml is 900,000,000, but the operator allows at most 500,000,000 in a pass";
        assert_eq!(told[0], fuel);
        assert!(told.len() == 2 && told[1].contains("is 48 MiB, but the operator allows at most 32 MiB"), "{told:?}");
    }
}
