//! Reads the facts that a rollout needs about each object. Parses an object and its workloads only after they changed,
//! because a rollout looks at all objects again and again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kaos_policy::contract::ResourceType;
use serde_json::Value;

use crate::{
    catalogue::{Catalogue, Kind, Predecessors, RolloutStage, Snapshot},
    hashing::hash,
    pods::PodCounts,
    status::conditions::{READY, condition, is_true},
    timestamps::parsed,
    watch::{ObjectKey, Seen, Watch},
};

/// While the operator looks at many objects, it lets other tasks run after each batch of this many objects.
const BATCH: usize = 256;
/// The annotations that policies can read start with this text.
const READ_BY_POLICIES: &str = "kaos.tools/";

/// The facts about one object that a rollout concerns.
#[derive(Debug, Clone)]
pub(super) struct ObjectSight {
    pub(super) key: ObjectKey,
    pub(super) hash: u64,
    /// Whether only the predecessor answered for the object. The object moves too, but shows nothing about the
    /// revision.
    pub(super) is_left: bool,
    /// Whether a pass after the move has ended, and the status shows its result.
    pub(super) had_pass: bool,
    pub(super) pods: PodCounts,
    pub(super) is_ready: bool,
    /// The time at which the condition `Ready` got its status. `None` if the object has no such condition yet.
    pub(super) ready_since: Option<Timestamp>,
    pub(super) created: Option<Timestamp>,
    /// The last time at which a user changed the spec.
    pub(super) changed: Option<Timestamp>,
    /// A hash of the spec, and of the annotations that policies can read.
    pub(super) spec: u64,
}

/// The facts of the last look at each object.
#[derive(Debug, Default)]
pub(super) struct SightCache {
    known: BTreeMap<ObjectKey, Known>,
}

#[derive(Debug)]
struct Known {
    /// A hash of the versions of the object and of its workloads.
    versions: u64,
    /// `None` if the object is being deleted.
    facts: Option<Facts>,
}

/// The facts that an object and its workloads contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    pods: PodCounts,
    is_ready: bool,
    ready_since: Option<Timestamp>,
    created: Option<Timestamp>,
    spec: u64,
}

impl Facts {
    /// Reads the facts. Returns `None` if the object is being deleted: policies do not answer for it any more.
    fn read(object: &Value, workloads: &[Value]) -> Option<Self> {
        let metadata = &object["metadata"];
        if metadata["deletionTimestamp"].is_string() {
            return None;
        }
        let annotations = metadata["annotations"].as_object().into_iter().flatten();
        let read: Vec<(&String, String)> = annotations
            .filter(|(name, _)| name.starts_with(READ_BY_POLICIES))
            .map(|(name, value)| (name, value.to_string()))
            .collect();
        Some(Self {
            pods: PodCounts::of(workloads),
            is_ready: is_true(object, READY),
            ready_since: condition(object, READY).and_then(|ready| parsed(ready["lastTransitionTime"].as_str())),
            created: parsed(metadata["creationTimestamp"].as_str()),
            spec: hash((object["spec"].to_string(), read)),
        })
    }
}

impl SightCache {
    /// Returns the facts about the objects that a rollout concerns. A rollout concerns an object without a pin if other
    /// policies would answer for the object without the revision. In addition, the revision must answer for the object
    /// now, or its predecessor must have answered before.
    pub(super) async fn look(
        &mut self,
        catalogue: &Catalogue,
        watch: &Watch,
        (name, stage): (&str, &RolloutStage),
    ) -> Vec<ObjectSight> {
        let Some(snapshot) = catalogue.load() else { return Vec::new() };
        let choosing = catalogue.ledger().choosing();
        let mut found: Vec<(ObjectKey, Concern)> = Vec::new();
        for of in &stage.kinds {
            let mut places: BTreeMap<String, Option<Concern>> = BTreeMap::new();
            for key in watch.keys(of) {
                let concern = *places
                    .entry(key.namespace.clone())
                    .or_insert_with(|| Concern::of(&snapshot, (name, stage), of, &key.namespace));
                found.extend(concern.filter(|_| !choosing.contains(&key)).map(|concern| (key, concern)));
            }
        }
        let (keys, concerns): (Vec<ObjectKey>, Vec<Concern>) = found.into_iter().unzip();
        let ledger = catalogue.ledger();
        let passes = ledger.had_pass(name, &keys);
        let left = ledger.had_pass_without(stage.predecessor.as_deref().unwrap_or_default(), &keys);
        let mut sights = Vec::with_capacity(keys.len());
        for (number, key) in keys.iter().enumerate() {
            if number % BATCH == BATCH - 1 {
                tokio::task::yield_now().await;
            }
            let Some(seen) = watch.live(&key.of, &key.namespace, &key.name) else { continue };
            let Some(facts) = self.facts(key, &seen, watch) else { continue };
            let Facts { pods, is_ready, ready_since, created, spec } = facts;
            let concern = concerns[number];
            sights.push(ObjectSight {
                hash: stage.moved.hash(&key.of, &key.namespace, &key.name),
                key: key.clone(),
                is_left: concern != Concern::Answers,
                had_pass: match concern {
                    Concern::Answers => passes[number],
                    Concern::Leaves => left[number],
                    // No policy answers for the moved object, so there is no pass to wait for.
                    Concern::Abandons => true,
                },
                pods,
                is_ready,
                ready_since,
                created,
                changed: parsed(seen.changed.as_deref()),
                spec,
            });
        }
        let seen: BTreeSet<&ObjectKey> = keys.iter().collect();
        self.known.retain(|key, _| seen.contains(key));
        sights
    }

    fn facts(&mut self, key: &ObjectKey, seen: &Seen, watch: &Watch) -> Option<Facts> {
        let mut workloads = watch.children(&seen.uid);
        // Do not parse ConfigMaps and Services, because many objects have them.
        workloads.retain(|child| child.of.api_version != "v1" || child.of.kind == "Pod");
        let children: Vec<(&str, u64)> = workloads.iter().map(|child| (&*child.uid, child.version)).collect();
        let versions = hash((&seen.uid, seen.version, children));
        self.read_once(key, versions, || {
            let workloads: Vec<Value> = workloads.iter().filter_map(Seen::object).collect();
            Facts::read(&seen.object()?, &workloads)
        })
    }

    /// Returns the facts of an object. Reads them only if the versions changed.
    fn read_once(&mut self, key: &ObjectKey, versions: u64, read: impl FnOnce() -> Option<Facts>) -> Option<Facts> {
        if let Some(known) = self.known.get(key)
            && known.versions == versions
        {
            return known.facts;
        }
        let facts = read();
        self.known.insert(key.clone(), Known { versions, facts });
        facts
    }
}

/// Which policies answer for the objects of a place during a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concern {
    /// The revision answers for moved objects.
    Answers,
    /// The predecessor answered, but the revision does not: other policies answer for moved objects.
    Leaves,
    /// The predecessor answered, but no policy answers for moved objects.
    Abandons,
}

impl Concern {
    /// Returns how the rollout concerns the objects of a kind in a namespace. Returns `None` if the same policies
    /// answer for these objects with and without the revision. Also returns `None` if the revision does not answer for
    /// them now and its predecessor did not answer for them before.
    fn of(
        snapshot: &Snapshot,
        (name, stage): (&str, &RolloutStage),
        of: &ResourceType,
        namespace: &str,
    ) -> Option<Self> {
        if !stage.concerns(of, namespace) {
            return None;
        }
        let undone = Predecessors { of_owner: !stage.is_local, of_tenants: stage.is_local };
        let (now, before) = (snapshot.current_in(of, namespace), snapshot.before_in(undone, of, namespace));
        // The function `answers_like` ignores fallbacks. So the rollout does not concern objects of a tenant's policy
        // for which the revision is only a possible fallback.
        let is_same = |one: &Arc<Kind>, other: &Arc<Kind>| Arc::ptr_eq(one, other) || one.answers_like(other);
        if now.zip(before).is_some_and(|(now, before)| is_same(now, before)) {
            return None;
        }
        let has = |kind: Option<&Arc<Kind>>, name: &str| {
            kind.is_some_and(|kind| kind.revisions().any(|revision| **revision == *name))
        };
        if has(now, name) {
            return Some(Self::Answers);
        }
        let answered = stage.predecessor.as_deref().is_some_and(|predecessor| has(before, predecessor));
        answered.then_some(if now.is_some() { Self::Leaves } else { Self::Abandons })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    fn widget() -> Value {
        json!({
            "metadata": {"name": "w", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"x": "1"}},
            "spec": {"size": 1},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"},
            ]},
        })
    }

    #[test]
    fn an_object_is_parsed_again_only_after_it_or_a_workload_changed() {
        let (mut cache, reads) = (SightCache::default(), Cell::new(0));
        let key = ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "n", "w");
        let mut look = |versions| {
            cache.read_once(&key, versions, || {
                reads.set(reads.get() + 1);
                Facts::read(&widget(), &[])
            })
        };
        let first = look(1);
        assert!(first.is_some_and(|facts| facts.is_ready));
        assert_eq!((look(1), look(1), reads.get()), (first, first, 1));
        assert_eq!((look(2), reads.get()), (first, 2));
    }

    #[test]
    fn an_object_that_is_being_deleted_shows_nothing() {
        let mut going = widget();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:02:00Z");
        assert_eq!(Facts::read(&going, &[]), None);
    }

    #[test]
    fn the_spec_and_the_annotations_for_policies_are_the_spec_of_a_user() {
        let spec = |change: &dyn Fn(&mut Value)| {
            let mut object = widget();
            change(&mut object);
            Facts::read(&object, &[]).unwrap().spec
        };
        let same = spec(&|_| {});
        assert_eq!(spec(&|object| object["status"] = json!({})), same);
        assert_eq!(spec(&|object| object["metadata"]["annotations"]["x"] = json!("2")), same);
        assert_ne!(spec(&|object| object["spec"]["size"] = json!(2)), same);
        assert_ne!(spec(&|object| object["metadata"]["annotations"]["kaos.tools/x"] = json!("2")), same);
    }
}
