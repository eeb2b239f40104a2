//! Plays random histories of one package. A user changes, deletes and creates the package. The operator admits or
//! refuses each content, and rolls it out. If a content fails, the objects return to the predecessor. The tests check
//! that the last good revision serves while the package exists.

use super::*;

/// The number of contents of the package.
const CONTENTS: usize = 5;

/// A package with its history.
struct History {
    model: Model,
    /// The revisions that served and did not fail, the last one at the end. Empty after a deletion.
    good: Vec<String>,
    /// The predecessors of the revision that failed last.
    before_failed: Vec<String>,
    /// Whether no revision may serve: none was admitted since the last deletion, and the package contains no
    /// quarantined content. If the package contains quarantined content, a predecessor serves.
    is_vacant: bool,
}

impl History {
    fn new() -> Self {
        let model = Model::of(BTreeMap::new(), &[], Vec::new());
        Self { model, good: Vec::new(), before_failed: Vec::new(), is_vacant: true }
    }

    fn state(&self, name: &str) -> RevisionState {
        self.model.records[name].status.as_ref().map(|status| status.state).unwrap_or_default()
    }

    /// Returns the revision of the package's content, if it does not serve and can still serve.
    fn candidate(&self) -> Option<String> {
        let name = self.model.packages.first()?.1.clone()?;
        let may_serve = !matches!(self.state(&name), RevisionState::Active | RevisionState::Quarantined);
        (may_serve && self.state(&name) != RevisionState::Refused).then_some(name)
    }

    fn serving(&self) -> Vec<String> {
        self.model.states().into_iter().filter(|(_, (_, serves))| *serves).map(|(name, _)| name.clone()).collect()
    }

    fn status(&mut self, name: &str) -> &mut PolicyRevisionStatus {
        self.model.records.get_mut(name).unwrap().status.get_or_insert_default()
    }

    /// Changes the content of the package. Creates the package if it does not exist.
    fn put(&mut self, content: usize) {
        let name = format!("r{content}");
        self.model.create(&name, source(0), content);
        self.is_vacant &= self.state(&name) != RevisionState::Quarantined;
        let created = self.model.packages.first().map_or_else(|| at(self.model.time), |package| package.2.clone());
        self.model.packages = vec![(source(0), Some(name), created)];
    }

    fn delete(&mut self) {
        self.model.packages.clear();
        self.good.clear();
        self.is_vacant = true;
    }

    /// Lets the content of the package serve, in steps or at once, as the operator does.
    fn admit(&mut self, is_staged: bool) {
        let Some(name) = self.candidate() else { return };
        let before = self.serving().into_iter().next();
        let status = before.as_ref().map(|before| self.status(before).clone()).unwrap_or_default();
        let is_way_back = status.predecessor.as_ref() == Some(&name);
        let own = self.status(&name).predecessor.clone();
        let predecessor = match (&before, status.open_rollout()) {
            (Some(before), Some(_)) => {
                // The rollout of the revision `before` had not reached all objects. So the objects return to the
                // predecessor of `before`, and `before` does not count as a good revision.
                self.good.retain(|good| good != before);
                if is_way_back { own } else { status.predecessor }
            }
            _ => before,
        };
        self.model.enter(&name, RevisionState::Active);
        let predecessor = predecessor.filter(|before| *before != name);
        let status = self.status(&name);
        status.rollout = (is_staged && !is_way_back && predecessor.is_some()).then(PolicyRollout::default);
        status.predecessor = predecessor;
        let admitted = entry(&self.model.records[&name]);
        self.model.entries.insert(name.clone(), admitted);
        self.good.retain(|good| *good != name);
        self.good.push(name);
        self.is_vacant = false;
    }

    fn refuse(&mut self) {
        if let Some(name) = self.candidate() {
            self.model.enter(&name, RevisionState::Refused);
            self.good.retain(|good| *good != name);
        }
    }

    fn check(&mut self) {
        if let Some(name) = self.candidate() {
            self.model.enter(&name, RevisionState::Checking);
        }
    }

    /// Lets the serving revision fail.
    fn fail(&mut self) {
        let Some(name) = self.serving().pop() else { return };
        let revisions = RevisionSet { own: Vec::new(), entries: self.model.entries.clone() };
        self.before_failed = Facts { records: &self.model.records, revisions: &revisions }.before(&name);
        self.good.retain(|good| *good != name);
        self.model.failed = BTreeMap::from([(name, failure())]);
        self.model.settle();
        self.model.failed.clear();
    }

    fn end_rollout(&mut self) {
        if let Some(name) = self.serving().pop() {
            self.status(&name).rollout = None;
        }
    }

    fn step(&mut self, random: &mut Random) {
        self.model.time += u32::from(random.one_in(2));
        match random.below(12) {
            0..4 => self.put(random.index(CONTENTS)),
            4 => self.check(),
            5 | 6 => self.admit(random.one_in(2)),
            7 => self.refuse(),
            8 | 9 => self.fail(),
            10 => self.end_rollout(),
            _ if random.one_in(4) => self.delete(),
            _ => {}
        }
        self.model.settle();
    }
}

#[test]
fn while_a_source_exists_its_last_good_revision_serves() {
    for seed in 0..SEEDS {
        let (mut random, mut history) = (Random(seed), History::new());
        for step in 0..40 {
            history.step(&mut random);
            let (serving, told) =
                (history.serving(), || format!("seed {seed}, step {step}: {:?}", history.model.states()));
            if history.model.packages.is_empty() || history.is_vacant {
                assert!(serving.is_empty(), "a deleted package does not come back: {serving:?}; {}", told());
                continue;
            }
            let Some(last) = history.good.last() else { continue };
            assert_eq!(serving.len(), 1, "{last} is good: {}", told());
            let place = |name: &String| history.before_failed.iter().position(|before| before == name);
            // Also accept a revision that served all objects before, and whose second rollout another revision
            // interrupted.
            let is_known = serving[0] == *last
                || place(last).is_none_or(|last| place(&serving[0]).is_some_and(|place| place < last));
            assert!(is_known, "{last} served before {}: {}", serving[0], told());
        }
    }
}

#[test]
fn a_return_restores_the_predecessor_although_the_package_has_another_content() {
    for state in [RevisionState::Pending, RevisionState::Checking, RevisionState::Held, RevisionState::Refused] {
        let mut history = History::new();
        history.put(1);
        history.admit(true);
        history.put(2);
        history.admit(true);
        history.model.settle();
        assert_eq!(history.state("r1"), RevisionState::Yielding);
        history.put(3);
        history.model.enter("r3", state);
        history.fail();
        assert_eq!((history.state("r2"), history.state("r1")), (RevisionState::Quarantined, RevisionState::Active));
        assert_eq!(history.state("r3"), state);
    }
}

#[test]
fn a_return_restores_the_predecessor_that_the_package_already_has_again() {
    let mut history = History::new();
    for content in 0..3 {
        history.put(content);
        history.admit(true);
        history.model.settle();
        history.end_rollout();
        history.model.settle();
    }
    history.put(1);
    history.check();
    history.fail();
    assert_eq!(history.serving(), ["r1"], "not r0, which served before");
}

#[test]
fn a_package_that_was_deleted_after_a_failure_does_not_come_back() {
    let mut history = History::new();
    history.put(3);
    for content in [1, 2] {
        history.put(content);
        history.admit(false);
        history.model.settle();
    }
    history.fail();
    assert_eq!(history.serving(), ["r1"]);
    history.delete();
    history.model.settle();
    history.put(3);
    history.model.settle();
    assert!(history.serving().is_empty(), "the new package decides alone");
}
