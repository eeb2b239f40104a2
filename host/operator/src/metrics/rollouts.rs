//! Metrics of rollouts, by package. The gauges of a rollout exist only while the rollout runs.

use std::{collections::BTreeSet, sync::Mutex};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{labels, table};
use crate::locking::lock;

/// The state of a running rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutState {
    /// The package's ConfigMap, as `namespace/name`.
    pub package: String,
    /// The number of steps that have begun.
    pub step: i64,
    /// The number of objects that are moved.
    pub moved: i64,
    /// The number of objects that are not moved yet.
    pub left: i64,
    /// The reason of the pause; `None` if the rollout is not paused.
    pub paused: Option<String>,
}

/// The metrics of rollouts.
pub(super) struct Rollouts {
    step: Family<labels::PackageLabels, Gauge>,
    objects: Family<labels::RolloutObjectsLabels, Gauge>,
    paused: Family<labels::RolloutPauseLabels, Gauge>,
    returned: Family<labels::RolloutReturnLabels, Counter>,
    /// The labels of all samples in the metric `returned`: each package with a cause.
    counted: Mutex<BTreeSet<(String, &'static str)>>,
}

impl Rollouts {
    /// Adds the metrics to a registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            step: table::ROLLOUT_STEP.register(registry, Family::default()),
            objects: table::ROLLOUT_OBJECTS.register(registry, Family::default()),
            paused: table::ROLLOUT_PAUSED.register(registry, Family::default()),
            returned: table::ROLLOUT_RETURNED.register(registry, Family::default()),
            counted: Mutex::default(),
        }
    }

    /// Sets the states of all running rollouts. Replaces the previous states.
    pub(super) fn set(&self, states: &[RolloutState]) {
        self.step.clear();
        self.objects.clear();
        self.paused.clear();
        for state in states {
            let package = || labels::PackageLabels { package: state.package.clone() };
            self.step.get_or_create(&package()).set(state.step);
            for (moved, objects) in [(true, state.moved), (false, state.left)] {
                let labels = labels::RolloutObjectsLabels { package: package(), moved };
                self.objects.get_or_create(&labels).set(objects);
            }
            if let Some(reason) = state.paused.clone() {
                self.paused.get_or_create(&labels::RolloutPauseLabels { package: package(), reason }).set(1);
            }
        }
    }

    /// Counts a rollout that ended with the return of all objects.
    pub(super) fn returned(&self, package: &str, cause: &'static str) {
        lock(&self.counted).insert((package.to_owned(), cause));
        self.returned.get_or_create(&returned_by(package, cause)).inc();
    }

    /// Removes the counters of returned rollouts for all packages that are not in `packages`.
    pub(super) fn keep(&self, packages: &BTreeSet<String>) {
        lock(&self.counted).retain(|(package, cause)| {
            let is_kept = packages.contains(package);
            if !is_kept {
                self.returned.remove(&returned_by(package, cause));
            }
            is_kept
        });
    }
}

fn returned_by(package: &str, cause: &'static str) -> labels::RolloutReturnLabels {
    labels::RolloutReturnLabels { package: labels::PackageLabels { package: package.to_owned() }, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_package_end_with_the_package() {
        let mut registry = Registry::default();
        let rollouts = Rollouts::register(&mut registry);
        let page = || {
            let mut page = String::new();
            prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
            page
        };
        rollouts.returned("home/one", "harm");
        rollouts.returned("home/two", "person");
        rollouts.keep(&BTreeSet::from(["home/two".to_owned()]));
        assert!(!page().contains("home/one") && page().contains("home/two"), "{}", page());
        rollouts.keep(&BTreeSet::new());
        assert!(!page().contains("home/two"), "{}", page());
    }
}
