//! Tests the plans for revisions that are rolled out and for their predecessors.

use super::*;

#[test]
fn a_rollout_without_its_predecessor_is_not_quarantined_and_a_record_that_yields_is_recreated() {
    let revision = |name: &str, state, predecessor: Option<&str>| {
        let mut revision = Revision::new(name, &revision_resource(), spec(source(0), name.len()));
        revision.status = Some(PolicyRevisionStatus {
            state,
            predecessor: predecessor.map(str::to_owned),
            rollout: predecessor.map(|_| PolicyRollout::default()),
            ..PolicyRevisionStatus::default()
        });
        (name.to_owned(), revision)
    };
    let (old, old_record) = revision("old", RevisionState::Yielding, None);
    let (new, new_record) = revision("newer", RevisionState::Active, Some("old"));
    let records = BTreeMap::from([(old.clone(), old_record), (new.clone(), new_record)]);
    let mut model = Model::of(records, &["old", "newer"], vec![(source(0), Some(new.clone()), at(0))]);
    let loaded = model.entries.clone();
    model.deleted.insert(old.clone());
    model.compiled.insert(old.clone());
    assert_eq!(model.plan(), [Action::Recreate(old.clone())]);
    model.deleted.clear();
    model.failed.insert(new.clone(), failure());
    model.entries.remove(&old);
    assert_eq!(model.plan(), [], "no other policy takes over the objects that wait for the predecessor");
    model.entries = loaded;
    assert_eq!(model.plan(), [Action::Quarantine { name: new, failure: failure() }]);
}

#[test]
fn a_revision_yields_exactly_as_long_as_the_rollout_of_its_successor_goes_on() {
    for seed in 0..SEEDS {
        let mut model = Model::random(&mut Random(seed));
        model.settle();
        let revisions = RevisionSet { own: Vec::new(), entries: model.entries.clone() };
        let facts = Facts { records: &model.records, revisions: &revisions };
        let yielding: BTreeSet<&String> = model.records.keys().filter_map(|by| facts.yielding_to(by)).collect();
        for (name, (state, _)) in model.states() {
            let yields = state == RevisionState::Yielding;
            let must = yielding.contains(name) && state != RevisionState::Yielding;
            assert!(!yields || yielding.contains(name), "seed {seed}: {name} yields to nothing");
            assert!(!must || state != RevisionState::Superseded, "seed {seed}: {name} must yield");
        }
    }
}
