//! The running rollouts, and the policies that answer for the objects that these rollouts have not moved yet.
//!
//! A rollout moves the objects with the smallest hashes first. The hash depends only on the object's kind, namespace
//! and name, so every process gives the same answer for an object.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{contract::ResourceType, digest::Digest, rollout::RolloutUnit};

use super::{Answers, Kind, Reach};

/// The objects that a rollout has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedObjects {
    /// A text that the operator hashes together with the kind, namespace and name of an object.
    pub salt: String,
    /// Whether the rollout moves single objects or whole namespaces.
    pub by: RolloutUnit,
    /// The largest hash of a moved object. `None` if no object is moved.
    pub up_to: Option<u64>,
}

impl MovedObjects {
    /// Returns the hash of an object or of its namespace.
    pub fn hash(&self, of: &ResourceType, namespace: &str, name: &str) -> u64 {
        // Zero bytes separate the parts, and no part contains a zero byte. So different objects give different texts.
        let text = match self.by {
            RolloutUnit::Object => {
                let of = of.group_kind();
                format!("{}\0{}\0{}\0{namespace}\0{name}", self.salt, of.0, of.1)
            }
            RolloutUnit::Namespace => format!("{}\0{namespace}", self.salt),
        };
        let hex = Digest::of(text.as_bytes()).hex();
        u64::from_str_radix(&hex[..16], 16).unwrap_or_default()
    }

    /// Reads a hash that the status of a revision contains.
    pub fn read_hash(text: &str) -> Option<u64> {
        u64::from_str_radix(text, 16).ok()
    }

    /// Returns whether the rollout has moved an object.
    pub fn has(&self, of: &ResourceType, namespace: &str, name: &str) -> bool {
        match self.up_to {
            None => false,
            Some(u64::MAX) => true,
            Some(up_to) => self.hash(of, namespace, name) <= up_to,
        }
    }
}

/// A running rollout.
#[derive(Debug, Clone)]
pub struct RolloutStage {
    /// The revision that is being rolled out.
    pub revision: Arc<str>,
    /// The objects that the rollout has moved.
    pub moved: MovedObjects,
    /// Whether the revision is in a tenant's namespace.
    pub is_local: bool,
    /// The kinds for which the revision or its predecessor answers.
    pub kinds: BTreeSet<ResourceType>,
    /// The scopes of the revision and of its predecessor.
    pub scopes: Vec<Reach>,
    /// The names of the policies that the revision and its predecessor contain or configure.
    pub policies: BTreeSet<String>,
    /// The predecessor of the revision.
    pub predecessor: Option<Arc<str>>,
    /// Whether the predecessor is loaded. If the predecessor is not loaded, the objects that are not moved have no
    /// policy for now.
    pub can_yield: bool,
    /// Whether the revision cannot be loaded any more. Then its predecessor answers for the moved objects too. If the
    /// predecessor is not loaded either, no object of the rollout has a policy for now: an older revision must not
    /// answer for these objects.
    pub is_lost: bool,
}

impl RolloutStage {
    /// Returns whether the rollout concerns the objects of a kind in a namespace.
    pub fn concerns(&self, of: &ResourceType, namespace: &str) -> bool {
        self.kinds.contains(of) && self.scopes.iter().any(|scope| scope.holds(Some(namespace)))
    }
}

/// The rollouts that a policy table undoes: the table contains the predecessors instead of the revisions of these
/// rollouts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Predecessors {
    /// Whether the table undoes the rollouts of the owner.
    pub of_owner: bool,
    /// Whether the table undoes the rollouts of tenants.
    pub of_tenants: bool,
}

impl Predecessors {
    /// Returns whether the table undoes a rollout.
    pub(super) fn undo(self, stage: &RolloutStage) -> bool {
        if stage.is_local { self.of_tenants } else { self.of_owner }
    }
}

/// The running rollouts. Without rollouts, this value is empty and costs nothing.
#[derive(Debug, Default)]
pub struct Staging {
    /// The rollouts. At most one rollout of the owner and one of a tenant concern an object.
    pub stages: Vec<RolloutStage>,
    /// For each combination of undone rollouts, the policy table with the predecessors instead of the revisions.
    pub(super) before: BTreeMap<Predecessors, BTreeMap<ResourceType, Answers>>,
}

/// The policy table that answers for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// The table with all revisions that are being rolled out.
    Current,
    /// A table with the predecessors of some of these revisions.
    Before(Predecessors),
    /// No table answers for now, because the revision that must answer is not loaded.
    None,
}

impl Staging {
    /// Returns each combination of undone rollouts that needs a policy table: an object may need the predecessor of the
    /// owner's rollout, of a tenant's rollout, or of both.
    pub(super) fn combinations(stages: &[RolloutStage]) -> Vec<Predecessors> {
        let has = |is_local: bool| stages.iter().any(|stage| stage.is_local == is_local);
        let all = [(true, false), (false, true), (true, true)];
        let possible =
            all.into_iter().filter(|(of_owner, of_tenants)| (!of_owner || has(false)) && (!of_tenants || has(true)));
        possible.map(|(of_owner, of_tenants)| Predecessors { of_owner, of_tenants }).collect()
    }

    /// Returns the table that answers for an object.
    pub(super) fn table_for(&self, of: &ResourceType, namespace: &str, name: &str) -> Table {
        let mut predecessors = Predecessors::default();
        for stage in self.stages.iter().filter(|stage| stage.concerns(of, namespace)) {
            let is_moved = stage.moved.has(of, namespace, name);
            if !stage.can_yield && (!is_moved || stage.is_lost) {
                return Table::None;
            }
            if is_moved {
                continue;
            }
            if stage.is_local {
                predecessors.of_tenants = true;
            } else {
                predecessors.of_owner = true;
            }
        }
        if predecessors == Predecessors::default() { Table::Current } else { Table::Before(predecessors) }
    }

    /// Returns whether a rollout concerns the policies of this name.
    pub(super) fn concerns_policy(&self, name: &str) -> bool {
        self.stages.iter().any(|stage| stage.policies.contains(name))
    }

    /// Returns the revisions that are being rolled out.
    pub(super) fn revisions(&self) -> Vec<Arc<str>> {
        self.stages.iter().map(|stage| Arc::clone(&stage.revision)).collect()
    }

    /// Returns the policy tables for objects that a rollout has not moved.
    pub(super) fn tables(&self) -> impl Iterator<Item = &BTreeMap<ResourceType, Answers>> {
        self.before.values()
    }

    /// Returns the policies for those objects of a kind that a rollout has not moved yet.
    pub(super) fn yielding(&self, of: &ResourceType) -> Vec<Arc<Kind>> {
        self.tables().filter_map(|table| table.get(of)).flat_map(|answers| answers.all().map(Arc::clone)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(salt: &str, by: RolloutUnit, up_to: Option<u64>) -> MovedObjects {
        MovedObjects { salt: salt.to_owned(), by, up_to }
    }

    fn agent() -> ResourceType {
        ResourceType::new("kaos.tools/v1alpha1", "Agent")
    }

    #[test]
    fn the_hash_of_an_object_is_the_same_in_every_version_of_the_operator() {
        let hash = |by| format!("{:016x}", moved("sha256:1", by, None).hash(&agent(), "team", "writer"));
        assert_eq!(hash(RolloutUnit::Object), OBJECT_HASH);
        assert_eq!(hash(RolloutUnit::Namespace), NAMESPACE_HASH);
    }

    /// If these values changed, a rollout would move different objects after an upgrade of the operator.
    const OBJECT_HASH: &str = "dbeba2722d2d5802";
    const NAMESPACE_HASH: &str = "e1323f3eeff9f605";

    #[test]
    fn a_larger_step_contains_a_smaller_one_and_moves_about_its_share() {
        let names: Vec<String> = (0..2000).map(|number| format!("agent-{number}")).collect();
        let share = |up_to: u64| -> BTreeSet<&String> {
            let moved = moved("salt", RolloutUnit::Object, Some(up_to));
            names.iter().filter(|name| moved.has(&agent(), "team", name)).collect()
        };
        let (tenth, half) = (share(u64::MAX / 10), share(u64::MAX / 2));
        assert!(tenth.is_subset(&half));
        assert!((150..250).contains(&tenth.len()) && (900..1100).contains(&half.len()));
        assert_eq!((share(u64::MAX).len(), share(0).len()), (2000, 0));
        let none = moved("salt", RolloutUnit::Object, None);
        assert!(!names.iter().any(|name| none.has(&agent(), "team", name)));
    }

    #[test]
    fn another_salt_moves_other_objects_first_and_a_namespace_moves_as_a_whole() {
        let first = |salt: &str| {
            let moved = moved(salt, RolloutUnit::Object, None);
            (0..100).min_by_key(|number| moved.hash(&agent(), "team", &format!("agent-{number}")))
        };
        assert_ne!(first("sha256:1"), first("sha256:2"));
        let by_namespace = moved("s", RolloutUnit::Namespace, Some(u64::MAX / 2));
        for team in ["a", "b", "c", "d"] {
            let all: BTreeSet<bool> =
                (0..20).map(|number| by_namespace.has(&agent(), team, &format!("agent-{number}"))).collect();
            assert_eq!(all.len(), 1, "{team}");
        }
    }

    #[test]
    fn the_table_of_an_object_depends_on_the_rollouts_that_concern_it() {
        let stage = |is_local: bool, scope: Reach, up_to: Option<u64>| RolloutStage {
            revision: "r".into(),
            moved: moved("s", RolloutUnit::Object, up_to),
            is_local,
            kinds: BTreeSet::from([agent()]),
            scopes: vec![scope],
            policies: BTreeSet::new(),
            predecessor: None,
            can_yield: true,
            is_lost: false,
        };
        let owner = |up_to| stage(false, Reach::Cluster, up_to);
        let tenant = |up_to| stage(true, Reach::Own("team".to_owned()), up_to);
        let table = |stages: Vec<RolloutStage>, namespace: &str| {
            Staging { stages, before: BTreeMap::new() }.table_for(&agent(), namespace, "writer")
        };
        let predecessors = |of_owner, of_tenants| Table::Before(Predecessors { of_owner, of_tenants });
        assert_eq!(table(vec![], "team"), Table::Current);
        assert_eq!(table(vec![owner(None)], "team"), predecessors(true, false));
        assert_eq!(table(vec![owner(Some(u64::MAX))], "team"), Table::Current);
        assert_eq!(table(vec![owner(None), tenant(None)], "team"), predecessors(true, true));
        assert_eq!(table(vec![owner(Some(u64::MAX)), tenant(None)], "team"), predecessors(false, true));
        assert_eq!(table(vec![owner(Some(u64::MAX)), tenant(None)], "other"), Table::Current);
        let lost = RolloutStage { can_yield: false, ..owner(None) };
        assert_eq!(table(vec![lost], "team"), Table::None);
        let moved_all = RolloutStage { can_yield: false, ..owner(Some(u64::MAX)) };
        assert_eq!(table(vec![moved_all.clone()], "team"), Table::Current);
        let both_lost = RolloutStage { is_lost: true, ..moved_all };
        assert_eq!(table(vec![both_lost.clone()], "team"), Table::None, "no older revision takes over moved objects");
        assert_eq!(table(vec![RolloutStage { can_yield: true, ..both_lost }], "team"), Table::Current);
        let other = Staging { stages: vec![owner(None)], before: BTreeMap::new() };
        let kite = ResourceType::new("sky.io/v1", "Kite");
        assert_eq!(other.table_for(&kite, "team", "writer"), Table::Current);
        let combinations = |stages: &[RolloutStage]| Staging::combinations(stages).len();
        assert_eq!((combinations(&[]), combinations(&[tenant(None)])), (0, 1));
        assert_eq!(combinations(&[owner(None), tenant(None)]), 3);
    }
}
