//! Decides since when a revision claims its place. If two revisions claim the same place, the revision with the earlier
//! claim serves.
//!
//! A claim begins when the gate admits a revision. An empty or refused ConfigMap has no claim, even if it is old. If a
//! user later writes valid content into this ConfigMap, and another policy already has the place, the content waits
//! until that policy gives up the place. The operator writes the time into the PolicyRevision, so that later processes
//! and the command line use the same time.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kaos_policy::contract::ResourceType;

use super::RevisionSet;
use crate::{
    catalogue::{Age, Conflict, Offer, Reach, installed::records::Revision},
    timestamps::parsed,
};

/// The minimum time between two claims. Each claim begins after all existing claims, even if the clock of this process
/// is behind.
const APART: SignedDuration = SignedDuration::from_micros(1);

/// Returns the age of a revision. Older versions of the operator did not record claims. Without a recorded claim, the
/// age starts at `created`, the creation of the ConfigMap. If the ConfigMap is gone, the age starts at the creation of
/// the PolicyRevision.
pub(crate) fn age_of(revision: &Revision, created: Option<String>) -> Age {
    let recorded = || revision.metadata.creation_timestamp.as_ref().map(|time| time.0.to_string());
    let created = created.or_else(recorded).unwrap_or_default();
    let claimed = revision.status.as_ref().and_then(|status| parsed(status.claimed.as_deref()));
    let source = revision.spec.source.clone();
    Age {
        claimed: claimed.or_else(|| parsed(Some(&created))),
        created,
        namespace: source.namespace,
        name: source.config_map,
    }
}

impl RevisionSet {
    /// Returns the policies of the process that answer together with these revisions. If a default policy answers as a
    /// revision, leaves out the policy of the process for the same kind.
    pub(super) fn own_beside(&self, offers: &[Offer]) -> Vec<Offer> {
        let taken: BTreeSet<&ResourceType> =
            offers.iter().filter(|offer| offer.reach == Reach::Process).map(|offer| &offer.of).collect();
        self.own.iter().filter(|own| own.is_overlay() || !taken.contains(&own.of)).cloned().collect()
    }

    /// Starts the claim of a revision that is admitted now. `earlier` is the time at which the claim of the replaced
    /// revision began, or `None` without a replaced revision. The new claim begins at `earlier` if this early begin
    /// takes no place from a serving revision. Otherwise it begins now. `serving` contains the new revision, but not
    /// the replaced revision. `waiting` are revisions that already wait for a place.
    pub(crate) fn claim(
        &mut self,
        name: &str,
        earlier: Option<Timestamp>,
        serving: &BTreeSet<String>,
        waiting: &BTreeSet<String>,
        now: Timestamp,
    ) {
        let others = self.entries.iter().filter(|(it, _)| *it != name);
        let newest = others.filter_map(|(_, entry)| entry.age.claimed).max();
        let next = newest.and_then(|newest| newest.checked_add(APART).ok());
        // Round to microseconds, because the PolicyRevision has no higher precision.
        let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        let begins = next.map_or(now, |next| next.max(now));
        self.claims_since(name, earlier.unwrap_or(begins));
        if earlier.is_some() && self.kept_waiting(serving).iter().any(|it| it != name && !waiting.contains(it)) {
            self.claims_since(name, begins);
        }
    }

    /// Returns the revisions that do not serve because other revisions claimed their places first.
    pub(crate) fn kept_waiting(&self, serving: &BTreeSet<String>) -> BTreeSet<String> {
        let arranged = self.arrange_all(serving, &BTreeSet::new(), &[]);
        arranged.conflicts.keys().map(ToString::to_string).collect()
    }

    /// Returns why a revision gets no place, or `None` if it gets its place.
    pub(crate) fn conflict_of(&self, name: &str, serving: &BTreeSet<String>) -> Option<Conflict> {
        self.arrange_all(serving, &BTreeSet::new(), &[]).conflicts.remove(name)
    }

    /// Returns the time of the earliest claim of these revisions, or `None` if none of the revisions has a claim.
    pub(crate) fn claimed(&self, revisions: &[String]) -> Option<Timestamp> {
        revisions.iter().filter_map(|it| self.entries.get(it)?.age.claimed).min()
    }

    fn claims_since(&mut self, name: &str, claimed: Timestamp) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.age.claimed = Some(claimed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kaos_crds::{PolicyRevisionSpec, PolicyRevisionStatus, PolicySource};
    use kaos_policy::{manifest::OnRefusal, rollout::Rollout};
    use serde_json::{Value, json};

    use super::*;
    use crate::catalogue::installed::{
        records::revision_resource,
        revision_set::{AdmittedRevision, Content},
    };

    /// Returns an entry with settings for a policy. The settings come from a ConfigMap with the name `name` that was
    /// created in the year `created`.
    fn entry(name: &str, created: u16, scope: &[&str], settings: Value) -> AdmittedRevision {
        let created = format!("{created}-01-01T00:00:00Z");
        AdmittedRevision {
            source: PolicySource { namespace: "home".to_owned(), config_map: name.to_owned() },
            age: Age { created, namespace: "home".to_owned(), name: name.to_owned(), ..Age::default() },
            reach: Reach::Namespaces(scope.iter().map(|place| (*place).to_owned()).collect()),
            pinned: false,
            content: Content::Settings("widget".to_owned(), settings),
            on_refusal: OnRefusal::default(),
            rollout: Rollout::default(),
            stage: None,
            since: None,
            predecessor: None,
        }
    }

    /// The revision set and the serving revisions. The test admits each revision at a given second.
    struct Let(RevisionSet, BTreeSet<String>);

    impl Let {
        fn none() -> Self {
            Self(RevisionSet { own: Vec::new(), entries: BTreeMap::new() }, BTreeSet::new())
        }

        fn in_at(&mut self, second: i64, revision: &str, entry: AdmittedRevision) {
            let Self(revisions, serving) = self;
            let replaces: Vec<String> =
                serving.iter().filter(|it| revisions.entries[*it].source == entry.source).cloned().collect();
            let waiting = revisions.kept_waiting(serving);
            revisions.entries.insert(revision.to_owned(), entry);
            serving.retain(|it| !replaces.contains(it));
            serving.insert(revision.to_owned());
            let now = Timestamp::from_second(second).unwrap();
            revisions.claim(revision, revisions.claimed(&replaces), serving, &waiting, now);
        }

        fn waiting(&self) -> Vec<String> {
            self.0.kept_waiting(&self.1).into_iter().collect()
        }
    }

    #[test]
    fn an_older_config_map_that_is_let_in_later_waits_also_where_the_clock_went_back() {
        for (first, second) in [(10, 20), (10, 10), (20, 10)] {
            let mut all = Let::none();
            all.in_at(first, "new-1", entry("new", 2026, &["a"], json!({"size": 1})));
            all.in_at(second, "old-1", entry("old", 2020, &["a"], json!({"size": 2})));
            assert_eq!(all.waiting(), ["old-1"], "{first} and {second}");
        }
    }

    #[test]
    fn the_next_version_of_a_config_map_keeps_its_claim_if_no_serving_revision_loses_a_place() {
        let mut all = Let::none();
        all.in_at(1, "one-1", entry("one", 2026, &["a"], json!({"size": 1})));
        all.in_at(2, "two-1", entry("two", 2026, &["a"], json!({"size": 2})));
        all.in_at(3, "one-2", entry("one", 2026, &["a", "b"], json!({"size": 3})));
        assert_eq!(all.waiting(), ["two-1"], "the waiting revision keeps waiting");
    }

    #[test]
    fn a_version_that_claims_the_place_of_a_serving_revision_claims_it_later() {
        for (scope, settings) in [(&["b"], json!({"size": 3})), (&["b"], json!({"size": 1, "colour": "red"}))] {
            let mut all = Let::none();
            all.in_at(1, "one-1", entry("one", 2026, &["a"], json!({"size": 1})));
            all.in_at(2, "two-1", entry("two", 2026, &["b"], json!({"size": 2})));
            all.in_at(3, "one-2", entry("one", 2026, scope, settings));
            assert_eq!(all.waiting(), ["one-2"]);
        }
    }

    #[test]
    fn a_claim_without_a_recorded_time_is_as_old_as_the_config_map_or_the_record() {
        let spec = PolicyRevisionSpec {
            source: PolicySource { namespace: "home".to_owned(), config_map: "one".to_owned() },
            ..PolicyRevisionSpec::default()
        };
        let mut revision = Revision::new("one-1", &revision_resource(), spec);
        let claimed = |revision: &Revision, created: Option<&str>| {
            let age = age_of(revision, created.map(str::to_owned));
            assert_eq!((age.namespace.as_str(), age.name.as_str()), ("home", "one"));
            age.claimed.map(|at| at.to_string()).unwrap_or_default()
        };
        assert_eq!(claimed(&revision, None), "");
        revision.metadata = serde_json::from_value(json!({"creationTimestamp": "2025-01-01T00:00:00Z"})).unwrap();
        assert_eq!(claimed(&revision, None), "2025-01-01T00:00:00Z");
        assert_eq!(claimed(&revision, Some("2020-01-01T00:00:00Z")), "2020-01-01T00:00:00Z");
        let written = "2026-01-01T00:00:00.000001Z";
        let status = PolicyRevisionStatus { claimed: Some(written.to_owned()), ..PolicyRevisionStatus::default() };
        revision.status = Some(status);
        assert_eq!(claimed(&revision, Some("2020-01-01T00:00:00Z")), written);
    }
}
