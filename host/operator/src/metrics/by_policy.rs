//! Metrics of single policies, by name and version. The samples of a policy are its lines on the metrics page. The
//! operator removes these samples when the policy can no longer answer for any object.
//!
//! Authors choose names and versions. If the samples of old versions stayed for ever, many new versions would fill the
//! memory and the metrics page.

use std::{collections::BTreeSet, sync::Mutex, time::Duration};

use kaos_policy::{
    failure::{Failure, Verb},
    policy::PolicyId,
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::exponential_buckets},
    registry::Registry,
};

use super::{
    labels,
    sizes::{Histogram, Sizes},
    table,
};
use crate::locking::lock;

/// The maximum number of policy versions with their own samples. The samples of one version are about 100 lines of the
/// metrics page, and tenants choose the number of versions.
const MAX_POLICIES: usize = 100;

/// Fuel, answers, calls, failures and fallbacks of policies.
pub(super) struct ByPolicy {
    fuel: Sizes<labels::PolicyLabels>,
    answers: Family<labels::AnswerLabels, Counter>,
    calls: Sizes<labels::PolicyCallLabels>,
    failures: Family<labels::PolicyFailureLabels, Counter>,
    fallbacks: Family<labels::PolicyLabels, Counter>,
    kept: Mutex<Kept>,
}

/// The policies that have samples.
#[derive(Default)]
struct Kept {
    counted: BTreeSet<labels::PolicyLabels>,
    /// The policies that could answer at the last update.
    able: BTreeSet<labels::PolicyLabels>,
}

impl ByPolicy {
    /// Adds the metrics to a registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            fuel: table::FUEL.register(registry, Sizes::new_with_constructor(fuel as fn() -> Histogram)),
            answers: table::POLICY_ANSWERS.register(registry, Family::default()),
            calls: table::POLICY_CALL_DURATION
                .register(registry, Sizes::new_with_constructor(call_seconds as fn() -> Histogram)),
            failures: table::POLICY_FAILURES.register(registry, Family::default()),
            fallbacks: table::POLICY_FALLBACKS.register(registry, Family::default()),
            kept: Mutex::default(),
        }
    }

    /// Removes the samples of policies that can no longer answer. The set `able` has the policies that can answer for
    /// some object. Also keeps the samples of policies that could answer at the previous update, because passes with
    /// these policies can still run. So the failures of a quarantined policy stay until the next update.
    pub(super) fn keep(&self, able: &BTreeSet<PolicyId>) {
        let able: BTreeSet<labels::PolicyLabels> = able.iter().map(labels::PolicyLabels::from).collect();
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

    /// Starts a policy's counters at zero.
    pub(super) fn begin(&self, id: &PolicyId) {
        self.count(id, |policy| {
            drop(self.fallbacks.get_or_create(policy));
            for remembered in [true, false] {
                drop(self.answers.get_or_create(&labels::AnswerLabels { policy: policy.clone(), remembered }));
            }
            for reason in Failure::CATEGORIES {
                drop(self.failures.get_or_create(&labels::PolicyFailureLabels { policy: policy.clone(), reason }));
            }
        });
    }

    /// Records the fuel of a policy in one pass.
    pub(super) fn fuel(&self, id: &PolicyId, burnt: u64) {
        // The histogram needs a floating-point number. Such a number is exact, because fuel stays far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let burnt = burnt as f64;
        self.count(id, |policy| self.fuel.get_or_create(policy).observe(burnt, None, None));
    }

    /// Records an answer of a policy. Ignores the fuel of a remembered answer, because the pass used none.
    pub(super) fn answer(&self, id: &PolicyId, fuel: u64, remembered: bool) {
        self.count(id, |policy| {
            self.answers.get_or_create(&labels::AnswerLabels { policy: policy.clone(), remembered }).inc();
        });
        if !remembered {
            self.fuel(id, fuel);
        }
    }

    /// Records a call of a policy, with the id of the trace that contains the call.
    pub(super) fn call(&self, id: &PolicyId, verb: Verb, took: Duration, trace: Option<String>) {
        self.count(id, |policy| {
            let labels = labels::PolicyCallLabels { policy: policy.clone(), verb: verb.name() };
            self.calls.get_or_create(&labels).observe(took.as_secs_f64(), trace.map(Into::into), None);
        });
    }

    pub(super) fn failure(&self, id: &PolicyId, reason: &'static str) {
        self.count(id, |policy| {
            self.failures.get_or_create(&labels::PolicyFailureLabels { policy: policy.clone(), reason }).inc();
        });
    }

    pub(super) fn fallback(&self, id: &PolicyId) {
        self.count(id, |policy| {
            self.fallbacks.get_or_create(policy).inc();
        });
    }

    /// Calls `count` and records the policy under one lock, so that `keep` can later remove every sample. If
    /// [`MAX_POLICIES`] other policies have samples already, calls `count` with the shared labels `(others)`.
    fn count(&self, id: &PolicyId, count: impl FnOnce(&labels::PolicyLabels)) {
        let policy = labels::PolicyLabels::from(id);
        let mut kept = lock(&self.kept);
        if kept.counted.len() >= MAX_POLICIES && !kept.counted.contains(&policy) {
            return count(&labels::PolicyLabels::of_others());
        }
        count(&policy);
        kept.counted.insert(policy);
    }

    fn take_back(&self, policy: &labels::PolicyLabels) {
        self.fuel.remove(policy);
        self.fallbacks.remove(policy);
        for remembered in [true, false] {
            self.answers.remove(&labels::AnswerLabels { policy: policy.clone(), remembered });
        }
        for verb in Verb::OF_PASS {
            self.calls.remove(&labels::PolicyCallLabels { policy: policy.clone(), verb: verb.name() });
        }
        for reason in Failure::CATEGORIES {
            self.failures.remove(&labels::PolicyFailureLabels { policy: policy.clone(), reason });
        }
    }
}

/// Creates a histogram. The smallest bucket is the fuel of an empty answer, and the largest bucket is above the fuel
/// limit of a pass.
fn fuel() -> Histogram {
    Histogram::new(exponential_buckets(100_000.0, 2.0, 12))
}

/// Creates a histogram with buckets from 0.1 milliseconds to two seconds.
fn call_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 8))
}
