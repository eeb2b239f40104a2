//! Tests that plans converge: on random clusters, the actions lead to a state in which no further actions are due. If a
//! process ends after any action, the next process reaches the same final state.

mod histories;
mod rollouts;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kaos_crds::{PolicyRevisionSpec, PolicyRevisionStatus, PolicyRollout};
use kaos_policy::{manifest::OnRefusal, rollout::Rollout};
use serde_json::json;

use super::*;
use crate::catalogue::installed::lifecycle::{random::Random, transition::SOURCE_DELETED};
use crate::catalogue::{
    Age, Reach,
    installed::{
        AdmittedRevision, Content, RevisionSet,
        records::{Revision, revision_resource},
    },
};

/// The number of random clusters.
const SEEDS: u64 = 3000;
const STATES: [RevisionState; 11] = [
    RevisionState::Pending,
    RevisionState::Checking,
    RevisionState::Previewing,
    RevisionState::Held,
    RevisionState::Active,
    RevisionState::Yielding,
    RevisionState::Superseded,
    RevisionState::Refused,
    RevisionState::NotPermitted,
    RevisionState::Conflict,
    RevisionState::Quarantined,
];

/// A model of the cluster and of a process.
#[derive(Clone)]
struct Model {
    records: BTreeMap<String, Revision>,
    entries: BTreeMap<String, AdmittedRevision>,
    packages: Vec<ModelPackage>,
    deleted: BTreeSet<String>,
    failed: BTreeMap<String, ServiceFailure>,
    compiled: BTreeSet<String>,
    /// Revisions that the operator cannot load because their bytes are gone.
    lost: BTreeSet<String>,
    due: BTreeMap<String, Instant>,
    now: Instant,
    /// The current time, in seconds. A revision that changes its state now records this time.
    time: u32,
}

/// A package: its source, the revision of its content, and the time of its creation.
type ModelPackage = (PolicySource, Option<String>, String);

/// Returns a time after all times of a random cluster.
fn at(seconds: u32) -> String {
    format!("2026-01-01T{:02}:{:02}:{:02}Z", 1 + seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Returns a time in a random cluster.
fn early(random: &mut Random) -> String {
    format!("2026-01-01T00:00:0{}Z", random.index(10))
}

fn time(text: &str) -> Time {
    Time(text.parse().unwrap())
}

fn source(name: usize) -> PolicySource {
    PolicySource { namespace: "home".to_owned(), config_map: format!("c{name}") }
}

fn spec(source: PolicySource, digest: usize) -> PolicyRevisionSpec {
    PolicyRevisionSpec { source, package_digest: format!("d{digest}"), ..PolicyRevisionSpec::default() }
}

/// Returns a failure in service.
fn failure() -> ServiceFailure {
    ServiceFailure { reason: "FailedInService", why: "it failed".to_owned() }
}

fn entry(revision: &Revision) -> AdmittedRevision {
    let status = revision.status.clone().unwrap_or_default();
    AdmittedRevision {
        source: revision.spec.source.clone(),
        age: Age::default(),
        reach: Reach::Cluster,
        pinned: false,
        content: Content::Settings("p".to_owned(), json!({})),
        on_refusal: OnRefusal::default(),
        rollout: Rollout::default(),
        stage: None,
        since: crate::timestamps::parsed(status.since.as_deref()),
        predecessor: status.predecessor,
    }
}

impl Model {
    fn of(records: BTreeMap<String, Revision>, loaded: &[&str], packages: Vec<ModelPackage>) -> Self {
        let entries = loaded.iter().map(|name| ((*name).to_owned(), entry(&records[*name]))).collect();
        Self {
            records,
            entries,
            packages,
            deleted: BTreeSet::new(),
            failed: BTreeMap::new(),
            compiled: BTreeSet::new(),
            lost: BTreeSet::new(),
            due: BTreeMap::new(),
            now: Instant::now(),
            time: 0,
        }
    }

    /// Returns a random cluster with up to three sources, and up to three revisions of each source.
    fn random(random: &mut Random) -> Self {
        let (mut records, mut packages) = (BTreeMap::new(), Vec::new());
        let all: Vec<String> = (0..9).map(|at| format!("c{}-{}", at / 3, at % 3)).collect();
        for (at, name) in all.iter().enumerate() {
            if random.one_in(3) {
                continue;
            }
            let mut revision = Revision::new(name, &revision_resource(), spec(source(at / 3), random.index(5)));
            let predecessor = (!random.one_in(3)).then(|| all[random.index(9)].clone());
            revision.status = Some(PolicyRevisionStatus {
                state: STATES[random.index(11)],
                since: Some(early(random)),
                predecessor: predecessor.filter(|before| before != name),
                rollout: random.one_in(3).then(PolicyRollout::default),
                ..PolicyRevisionStatus::default()
            });
            revision.metadata.creation_timestamp = Some(time(&early(random)));
            if random.one_in(8) {
                revision.metadata.annotations = Some(BTreeMap::from([(RETRY.to_owned(), "1".to_owned())]));
            }
            records.insert(name.clone(), revision);
        }
        for number in 0..3 {
            if !random.one_in(4) {
                let name = (!random.one_in(6)).then(|| format!("c{number}-{}", random.index(3)));
                packages.push((source(number), name, early(random)));
            }
        }
        let mut some =
            |limit: u64| -> BTreeSet<String> { records.keys().filter(|_| random.one_in(limit)).cloned().collect() };
        let (deleted, failed, compiled, lost, absent) = (some(8), some(4), some(2), some(4), some(6));
        let admitted = records.iter().filter(|(name, revision)| {
            let state = revision.status.as_ref().map(|status| status.state).unwrap_or_default();
            let was_let_in = state == RevisionState::Checking && compiled.contains(*name);
            (state.is_let_in() || state == RevisionState::Yielding || was_let_in) && !absent.contains(*name)
        });
        let entries = admitted.map(|(name, revision)| (name.clone(), entry(revision))).collect();
        let failed = failed.into_iter().map(|name| (name, failure())).collect();
        let now = Instant::now();
        Self { records, entries, packages, deleted, failed, compiled, lost, due: BTreeMap::new(), now, time: 0 }
    }

    fn plan(&self) -> Vec<Action> {
        let revisions = RevisionSet { own: Vec::new(), entries: self.entries.clone() };
        let is_compiled = |name: &str| self.compiled.contains(name);
        plan(&Observed {
            facts: Facts { records: &self.records, revisions: &revisions },
            packages: self
                .packages
                .iter()
                .map(|(source, revision, created)| {
                    let revision = revision.clone();
                    SourceRevision { source, revision, created, is_of_process: false }
                })
                .collect(),
            deleted: self.deleted.iter().collect(),
            failed: self.failed.clone(),
            is_compiled: &is_compiled,
            due: &self.due,
            now: self.now,
        })
    }

    fn enter(&mut self, name: &str, state: RevisionState) {
        self.time += 1;
        if let Some(revision) = self.records.get_mut(name) {
            let status = revision.status.get_or_insert_default();
            (status.state, status.reason, status.since) = (state, None, Some(at(self.time)));
        }
    }

    fn create(&mut self, name: &str, source: PolicySource, digest: usize) {
        let mut revision = Revision::new(name, &revision_resource(), spec(source, digest));
        revision.metadata.creation_timestamp = Some(time(&at(self.time)));
        self.records.entry(name.to_owned()).or_insert(revision);
    }

    fn execute(&mut self, action: &Action) {
        match action {
            Action::Recreate(name) => drop(self.deleted.remove(name)),
            Action::Forget(name) => {
                self.deleted.remove(name);
                self.records.remove(name);
            }
            Action::Create(at, name) => {
                let source = self.packages[*at].0.clone();
                self.create(name, source, 9);
            }
            Action::Replace { name, .. } | Action::Retire(name) | Action::Yielded { name, .. } => {
                self.enter(name, RevisionState::Superseded);
                if let Some(status) = self.records.get_mut(name).and_then(|revision| revision.status.as_mut()) {
                    status.rollout = None;
                    let is_deleted = matches!(action, Action::Retire(_));
                    status.reason = is_deleted.then(|| SOURCE_DELETED.to_owned());
                }
            }
            Action::Yield { name, .. } => self.enter(name, RevisionState::Yielding),
            Action::Quarantine { name, .. } | Action::QuarantineAgain { name, .. } => {
                self.enter(name, RevisionState::Quarantined);
            }
            Action::Compile { name, .. } => drop(self.compiled.insert(name.clone())),
            Action::Restore { name, .. } if self.lost.contains(name) && !self.entries.contains_key(name) => {
                self.enter(name, RevisionState::Refused);
            }
            Action::Restore { name, .. } => {
                let restored = entry(&self.records[name]);
                self.entries.insert(name.clone(), restored);
                self.enter(name, RevisionState::Active);
            }
            Action::Delete(name) => {
                self.entries.remove(name);
                self.records.remove(name);
                self.deleted.remove(name);
            }
        }
    }

    /// Plans and executes until nothing is due, as the executor does.
    fn settle(&mut self) {
        for _ in 0..200 {
            let Some(action) = self.plan().into_iter().next() else { return };
            self.execute(&action);
        }
        panic!("the plans do not converge: {:?}", self.plan());
    }

    /// Returns the state of each revision, and whether it is admitted.
    fn states(&self) -> BTreeMap<&String, (RevisionState, bool)> {
        let state = |revision: &Revision| revision.status.as_ref().map(|status| status.state).unwrap_or_default();
        self.records
            .iter()
            .map(|(name, revision)| {
                let is_admitted = state(revision).is_let_in() && self.entries.contains_key(name);
                (name, (state(revision), is_admitted))
            })
            .collect()
    }

    /// Returns the number of admitted revisions of a source.
    fn serving(&self, source: &PolicySource) -> usize {
        let states = self.states();
        self.entries.iter().filter(|(name, it)| it.source == *source && states.get(name).is_some_and(|it| it.1)).count()
    }
}

#[test]
fn plans_converge_and_leave_one_serving_revision_of_a_source() {
    for seed in 0..SEEDS {
        let mut model = Model::random(&mut Random(seed));
        model.settle();
        // Ignore revisions that are recorded as admitted but are not loaded: they take effect only when they are
        // loaded.
        let states = model.states();
        let decides =
            |name: &String| states.get(name).is_none_or(|(state, is_admitted)| !state.is_let_in() || *is_admitted);
        let decided = model.packages.iter().filter(|(_, revision, _)| revision.as_ref().is_some_and(decides));
        for (source, ..) in decided {
            assert!(model.serving(source) <= 1, "seed {seed}: {:?}", model.states());
        }
        let serving = model.states().into_iter().filter(|(_, state)| state.1);
        let revisions = RevisionSet { own: Vec::new(), entries: model.entries.clone() };
        let facts = Facts { records: &model.records, revisions: &revisions };
        let failed = serving.filter(|(name, _)| model.failed.contains_key(*name) && !facts.lacks_predecessor(name));
        let failed: Vec<_> = failed.collect();
        assert!(failed.is_empty(), "seed {seed}: {failed:?}");
    }
}

#[test]
fn a_process_that_ends_after_any_action_leaves_the_rest_to_the_next() {
    for seed in 0..SEEDS {
        let model = Model::random(&mut Random(seed));
        let mut whole = model.clone();
        whole.settle();
        let mut ended = model;
        while let Some(action) = ended.plan().into_iter().next() {
            ended.execute(&action);
            // The next process does not have the compilations of the previous process.
            let mut next = Model { compiled: BTreeSet::new(), ..ended.clone() };
            next.settle();
            assert_eq!(next.states(), whole.states(), "seed {seed}: after {action:?}");
        }
    }
}

#[test]
fn an_action_that_fails_holds_up_no_other_source() {
    for seed in 0..SEEDS {
        let mut model = Model::random(&mut Random(seed));
        let Some(fails) = model.plan().into_iter().next() else { continue };
        for _ in 0..200 {
            let next = model.plan().into_iter().find(|action| *action != fails);
            let Some(action) = next else { break };
            model.execute(&action);
        }
        assert!(model.plan().iter().all(|action| *action == fails), "seed {seed}: {:?}", model.plan());
    }
}

#[test]
fn a_restoration_that_is_not_due_waits_and_says_for_how_long() {
    let mut random = Random(7);
    let restoring = std::iter::repeat_with(|| Model::random(&mut random)).find_map(|mut model| {
        model.compiled = model.records.keys().cloned().collect();
        let name = model.plan().into_iter().find_map(|it| match it {
            Action::Restore { name, .. } => Some(name),
            _ => None,
        })?;
        Some((model, name))
    });
    let (mut model, name) = restoring.unwrap();
    model.due.insert(name.clone(), model.now + std::time::Duration::from_mins(1));
    let restores =
        |model: &Model| model.plan().iter().any(|it| matches!(it, Action::Restore { name: it, .. } if *it == name));
    assert!(!restores(&model));
    model.now += std::time::Duration::from_mins(1);
    assert!(restores(&model));
}

#[test]
fn a_revision_of_a_deleted_source_serves_until_its_successor_serves_or_cannot_serve() {
    let revision = |name: &str, number: usize, state, policy: Option<&str>| {
        let mut revision = Revision::new(name, &revision_resource(), spec(source(number), number));
        let policy = policy.map(str::to_owned);
        revision.status = Some(PolicyRevisionStatus { state, policy, ..PolicyRevisionStatus::default() });
        (name.to_owned(), revision)
    };
    let due = |state, policy: Option<&str>| {
        let (old, old_record) = revision("old", 0, RevisionState::Active, Some("p"));
        let (new, new_record) = revision("new", 1, state, policy);
        let records = BTreeMap::from([(old, old_record), (new.clone(), new_record)]);
        let model = Model::of(records, &["old"], vec![(source(1), Some(new), at(0))]);
        model.plan()
    };
    for state in [RevisionState::Pending, RevisionState::Checking, RevisionState::Previewing, RevisionState::Held] {
        assert_eq!(due(state, Some("p")), [], "{state:?}");
        assert_eq!(due(state, None), [], "the name of the policy is not known yet: {state:?}");
    }
    let retired = [Action::Retire("old".to_owned())];
    for state in [RevisionState::Refused, RevisionState::NotPermitted, RevisionState::Superseded] {
        assert_eq!(due(state, Some("p")), retired, "{state:?}");
    }
    assert_eq!(due(RevisionState::Held, Some("other")), retired);
}
