//! What is counted of each policy, by its name and version, for as long as it may have to answer.
//!
//! Names and versions are up to whoever installs policies: were samples kept of all that ever were, one who ships another
//! version again and again would fill the memory, and the page.

use std::{collections::BTreeSet, sync::Mutex};

use kaos_policy::{failure::Failure, policy::PolicyId};
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::{labels, sizes::Sizes, table};
use crate::locking::lock;

/// What policies burnt, and where they failed.
pub(super) struct ByPolicy {
    fuel: Sizes<labels::Policy>,
    failures: Family<labels::PolicyFailure, Counter>,
    fallbacks: Family<labels::Policy, Counter>,
    kept: Mutex<Kept>,
}

/// Whose samples there are.
#[derive(Default)]
struct Kept {
    counted: BTreeSet<labels::Policy>,
    /// Those that might have to answer when that was said last.
    able: BTreeSet<labels::Policy>,
}

impl ByPolicy {
    /// Adds the metrics to a registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            fuel: table::FUEL.register(registry, Sizes::new_with_constructor(fuel as fn() -> Histogram)),
            failures: table::POLICY_FAILURES.register(registry, Family::default()),
            fallbacks: table::POLICY_FALLBACKS.register(registry, Family::default()),
            kept: Mutex::default(),
        }
    }

    /// Takes back what was counted of all but those that may have to answer now, or might until now: passes of these may be
    /// under way, and what a policy failed with that was put aside is there until something else changes.
    pub(super) fn keep(&self, able: &BTreeSet<PolicyId>) {
        let able: BTreeSet<labels::Policy> = able.iter().map(labels::Policy::from).collect();
        let mut kept = lock(&self.kept);
        let Kept { counted, able: before } = &mut *kept;
        counted.retain(|policy| {
            let stays = able.contains(policy) || before.contains(policy);
            if !stays {
                self.take_back(policy);
            }
            stays
        });
        *before = able;
    }

    /// Begins to count at zero.
    pub(super) fn begin(&self, id: &PolicyId) {
        self.count(id, |policy| {
            drop(self.fallbacks.get_or_create(policy));
            for reason in Failure::CATEGORIES {
                drop(self.failures.get_or_create(&labels::PolicyFailure { policy: policy.clone(), reason }));
            }
        });
    }

    /// One burnt this in a pass.
    pub(super) fn fuel(&self, id: &PolicyId, burnt: u64) {
        // A histogram counts in floating point; fuel is far below what that can hold exactly.
        #[allow(clippy::cast_precision_loss)]
        let burnt = burnt as f64;
        self.count(id, |policy| self.fuel.get_or_create(policy).observe(burnt));
    }

    /// One failed.
    pub(super) fn failure(&self, id: &PolicyId, reason: &'static str) {
        self.count(id, |policy| {
            self.failures.get_or_create(&labels::PolicyFailure { policy: policy.clone(), reason }).inc();
        });
    }

    /// What served before one answered in its place.
    pub(super) fn fallback(&self, id: &PolicyId) {
        self.count(id, |policy| {
            self.fallbacks.get_or_create(policy).inc();
        });
    }

    /// Counts, and knows whose samples there are; under one lock, so that there are none that nobody takes back.
    fn count(&self, id: &PolicyId, count: impl FnOnce(&labels::Policy)) {
        let policy = labels::Policy::from(id);
        let mut kept = lock(&self.kept);
        count(&policy);
        kept.counted.insert(policy);
    }

    fn take_back(&self, policy: &labels::Policy) {
        self.fuel.remove(policy);
        self.fallbacks.remove(policy);
        for reason in Failure::CATEGORIES {
            self.failures.remove(&labels::PolicyFailure { policy: policy.clone(), reason });
        }
    }
}

/// From what an empty answer costs to what no pass may.
fn fuel() -> Histogram {
    Histogram::new(exponential_buckets(100_000.0, 2.0, 12))
}
