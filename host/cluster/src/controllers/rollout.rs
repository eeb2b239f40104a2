//! Computes the number of pods for each `ReplicaSet` of a Deployment at one step of a rollout.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    kinds::{count, share},
    storage::meta,
};

/// The rollout bounds of a Deployment.
pub(super) struct Bounds {
    pub(super) replicas: i64,
    pub(super) max_surge: i64,
    pub(super) max_unavailable: i64,
}

impl Bounds {
    /// Reads the bounds from a Deployment's spec.
    pub(super) fn of(spec: &Value) -> Self {
        let replicas = count(&spec["replicas"]);
        let rolling = &spec["strategy"]["rollingUpdate"];
        if spec["strategy"]["type"] == "Recreate" {
            return Self { replicas, max_surge: 0, max_unavailable: 0 };
        }
        let max_surge = share(&rolling["maxSurge"], replicas, true);
        let max_unavailable = share(&rolling["maxUnavailable"], replicas, false).min(replicas);
        // If both bounds were zero, no rollout could make progress.
        let max_unavailable = if max_surge == 0 && max_unavailable == 0 { 1 } else { max_unavailable };
        Self { replicas, max_surge, max_unavailable }
    }
}

fn wanted(set: &Value) -> i64 {
    count(&set["spec"]["replicas"])
}

fn available(set: &Value) -> i64 {
    count(&set["status"]["availableReplicas"])
}

/// Returns the number of pods for the new `ReplicaSet` and for each old `ReplicaSet`.
pub(super) fn step(bounds: &Bounds, recreate: bool, new: Option<&Arc<Value>>, old: &[Arc<Value>]) -> (i64, Vec<i64>) {
    let old_total: i64 = old.iter().map(|set| wanted(set)).sum();
    let current = new.map_or(0, |set| wanted(set));
    if recreate {
        let running: i64 = old
            .iter()
            .map(|set| count(&set["status"]["replicas"]) + count(&set["status"]["terminatingReplicas"]))
            .sum();
        let ready = if running == 0 { bounds.replicas } else { current };
        return (ready, vec![0; old.len()]);
    }
    let room = bounds.replicas + bounds.max_surge - current - old_total;
    let target =
        if current >= bounds.replicas { bounds.replicas } else { current + room.clamp(0, bounds.replicas - current) };
    let mut sizes: Vec<i64> = old.iter().map(|set| wanted(set)).collect();
    let min_available = bounds.replicas - bounds.max_unavailable;
    let new_unavailable = current - new.map_or(0, |set| available(set)).min(current);
    let mut may_go = (current + old_total - min_available - new_unavailable).max(0);
    let mut order: Vec<usize> = (0..old.len()).collect();
    order.sort_by_key(|at| (meta(&old[*at], "creationTimestamp").to_owned(), meta(&old[*at], "name").to_owned()));
    // Remove unavailable pods first, and then as many available pods as the rollout bounds allow.
    for at in &order {
        let useless = (sizes[*at] - available(&old[*at])).clamp(0, may_go);
        sizes[*at] -= useless;
        may_go -= useless;
    }
    let serving: i64 = new.map_or(0, |set| available(set)) + old.iter().map(|set| available(set)).sum::<i64>();
    let mut spare = (serving - min_available).clamp(0, may_go);
    for at in &order {
        let less = sizes[*at].clamp(0, spare);
        sizes[*at] -= less;
        spare -= less;
    }
    (target, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(name: &str, wanted: i64, available: i64) -> Arc<Value> {
        Arc::new(
            json!({"metadata": {"name": name}, "spec": {"replicas": wanted}, "status": {"availableReplicas": available, "replicas": wanted}}),
        )
    }

    fn bounds(replicas: i64) -> Bounds {
        Bounds::of(
            &json!({"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}),
        )
    }

    #[test]
    fn one_replica_is_replaced_only_when_the_new_one_serves() {
        assert_eq!(step(&bounds(1), false, None, &[set("old", 1, 1)]), (1, vec![1]));
        assert_eq!(step(&bounds(1), false, Some(&set("new", 1, 0)), &[set("old", 1, 1)]), (1, vec![1]));
        assert_eq!(step(&bounds(1), false, Some(&set("new", 1, 1)), &[set("old", 1, 1)]), (1, vec![0]));
    }

    #[test]
    fn four_replicas_move_within_surge_and_unavailability() {
        assert_eq!(step(&bounds(4), false, None, &[set("old", 4, 4)]), (1, vec![3]));
        assert_eq!(step(&bounds(4), false, Some(&set("new", 1, 0)), &[set("old", 3, 3)]), (2, vec![3]));
    }

    #[test]
    fn pods_of_an_old_set_that_never_served_go_first() {
        assert_eq!(step(&bounds(4), false, Some(&set("new", 1, 0)), &[set("old", 4, 0)]), (1, vec![3]));
    }
}
