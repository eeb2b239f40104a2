//! Tests the choice of the revision to restore.

use kaos_crds::{PolicyRevisionSpec, PolicyRevisionStatus};
use kube::core::ObjectMeta;

use super::*;
use crate::catalogue::installed;

/// Returns a revision with this name, state and predecessor. `answers` is the digest of the revision's answers.
fn revision(of: &str, state: RevisionState, answers: Option<&str>, predecessor: Option<&str>) -> Revision {
    let spec = PolicyRevisionSpec { package_digest: of.to_owned(), ..PolicyRevisionSpec::default() };
    let status = PolicyRevisionStatus {
        state,
        answers_digest: answers.map(str::to_owned),
        predecessor: predecessor.map(str::to_owned),
        ..PolicyRevisionStatus::default()
    };
    let mut revision = Revision::new(of, &installed::revision_resource(), spec);
    revision.metadata = ObjectMeta { name: Some(of.to_owned()), ..ObjectMeta::default() };
    revision.status = Some(status);
    revision
}

fn chosen(all: &[Revision]) -> Option<String> {
    let of_source: Vec<&Revision> = all.iter().collect();
    let holds = SourceContent::Package(all.last()?.spec.package_digest.clone());
    target(&of_source, &holds, None).ok().map(|revision| name(revision).to_owned())
}

const PAST: RevisionState = RevisionState::Superseded;
const NOW: RevisionState = RevisionState::Active;

#[test]
fn a_rollback_skips_other_builds_of_the_active_revision() {
    let of = |answers: [Option<&str>; 3]| {
        let [a, b, c] = answers;
        chosen(&[revision("a", PAST, a, None), revision("b", PAST, b, Some("a")), revision("c", NOW, c, Some("b"))])
    };
    assert_eq!(of([Some("good"), Some("bad"), Some("bad")]).as_deref(), Some("a"));
    assert_eq!(of([Some("good"), Some("other"), Some("bad")]).as_deref(), Some("b"));
    assert_eq!(of([None, None, Some("bad")]).as_deref(), Some("b"), "an earlier operator recorded no digests");
    assert_eq!(of([None, None, None]).as_deref(), Some("b"));
    assert_eq!(of([Some("same"); 3]).as_deref(), Some("b"), "the samples do not show which build is good");
}

#[test]
fn a_circle_of_predecessors_ends_the_search() {
    let same = Some("same");
    let all = [revision("a", PAST, same, Some("b")), revision("b", NOW, same, Some("a"))];
    assert_eq!(chosen(&all).as_deref(), Some("a"));
}
