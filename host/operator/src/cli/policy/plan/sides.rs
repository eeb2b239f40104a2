//! Builds the two sides of a comparison: the policy tables before and after a change.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context as _, bail};
use kaos_policy::{
    contract::{ResourceType, Scopes},
    render::Renderer,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::super::{
    answering::{Installed, PLANNED, PolicySet, Shipped},
    compatibility::Compatibility,
    left_settings,
    output::complain,
};
use crate::{
    catalogue::{Catalogue, Kind, Snapshot},
    input::Document,
    offline::{Answering, At, Bound, Started, StoredObjects, answer, named_in_vain},
    plan::{Comparison, Unstored, compare},
    policies::Loader,
};

/// The policy tables before and after a change.
pub(in crate::cli::policy) struct Sides {
    before: Arc<Snapshot>,
    after: Arc<Snapshot>,
    /// The revisions that the user installs or removes. `None` if the change concerns all revisions.
    meant: Option<BTreeSet<Arc<str>>>,
    /// The policy table in which the revisions of the field `meant` answer: the table after an installation, or before
    /// a removal.
    at: Arc<Snapshot>,
}

impl Sides {
    /// Builds the policy tables before and after the installation of the package `new`. Fails if the operator would
    /// refuse the package. Prints notes about other revisions that would start or stop serving.
    pub(super) fn of(standing: &PolicySet, new: Shipped, loader: &Loader) -> anyhow::Result<Self> {
        standing.has_policy_for(&new)?;
        standing.accepts(&new)?;
        let catalogue = Catalogue::default();
        let before = standing.install(&catalogue).context("cannot combine the active policies")?;
        if let Some((from, to)) = standing.moved_by(&new) {
            let (namespace, name) = &new.source;
            let remedy = "choose another name with --name to keep both packages, or push with --move";
            complain(
                "note",
                format_args!(
                    "ConfigMap {namespace}/{name} applies in {from}, but would then apply in {to} instead: {remedy}"
                ),
            );
        }
        left_settings::tell(standing, &new);
        let then = standing.with(new);
        let after = then.install(&catalogue).context("cannot combine the policies with the planned package")?;
        then.try_package(PLANNED, loader).context("cannot combine the policies with the planned package")?;
        tell_conflicts(&before, &after, &then);
        let (meant, at) = (Some(BTreeSet::from([PLANNED.into()])), Arc::clone(&after.snapshot));
        Ok(Self { before: before.snapshot, after: after.snapshot, meant, at })
    }

    /// Builds the policy tables before and after the removal of the revisions in `gone`. Prints notes about other
    /// revisions that would start serving.
    pub(in crate::cli::policy) fn without(standing: &PolicySet, gone: BTreeSet<Arc<str>>) -> anyhow::Result<Self> {
        let catalogue = Catalogue::default();
        let before = standing.install(&catalogue).context("cannot combine the active policies")?;
        let then = standing.without(&gone);
        let after = then.install(&catalogue).context("cannot combine the policies that remain")?;
        tell_conflicts(&before, &after, &then);
        let at = Arc::clone(&before.snapshot);
        Ok(Self { before: before.snapshot, after: after.snapshot, meant: Some(gone), at })
    }

    /// Builds the policy tables before and after a change of the preset.
    pub(super) fn with_preset(standing: &PolicySet, compatibility: &Compatibility) -> anyhow::Result<Self> {
        let catalogue = Catalogue::default();
        let before = standing.install(&catalogue).context("cannot combine the active policies")?;
        let then = standing.under(compatibility.over(standing.shared().to_vec())?);
        let after = then.install(&catalogue).context("cannot combine the policies with the preset")?;
        tell_conflicts(&before, &after, &then);
        let at = Arc::clone(&after.snapshot);
        Ok(Self { before: before.snapshot, after: after.snapshot, meant: None, at })
    }

    /// Returns a line for each kind for which one of the removed revisions answers now. The line names the policy that
    /// will answer after the removal. `place` is a namespace, or `None` for the whole cluster.
    pub(in crate::cli::policy) fn then_answers(&self, place: Option<&str>) -> Vec<String> {
        let namespace = place.unwrap_or_default();
        let is_concerned = |kind: &Arc<Kind>| self.is_meant(kind);
        let concerned = self.before.kinds().filter(|(_, now)| now.usual(namespace).is_some_and(is_concerned));
        let told = concerned.map(|(of, _)| {
            let then = self.after.of(of).and_then(|answers| answers.usual(namespace));
            let place = place.map_or_else(String::new, |place| format!(" in {place}"));
            let Some(then) = then else {
                return format!("no policy answers for {of}{place}: existing children stay, and no longer change");
            };
            let policies: Vec<String> = then.policies().map(|policy| policy.id().to_string()).collect();
            let revisions: Vec<&str> = then.revisions().map(|revision| &**revision).collect();
            let from = match &*revisions {
                [] => "from the operator's own policies".to_owned(),
                some => format!("with PolicyRevision {}", some.join(", ")),
            };
            format!("{} answers for {of}{place}, {from}", policies.join(" under "))
        });
        told.collect()
    }

    /// Returns every kind for which a policy answers before or after the change.
    pub(super) fn kinds(&self) -> Vec<&ResourceType> {
        let mut kinds: Vec<_> = self.snapshots().flat_map(|snapshot| snapshot.kinds().map(|(of, _)| of)).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Returns the types that the policies of both sides read, and the optional types that these policies use if the
    /// cluster serves them.
    pub(super) fn looked_at(&self) -> (Vec<&ResourceType>, Vec<&ResourceType>) {
        let claims =
            || self.snapshots().flat_map(|snapshot| snapshot.kinds().flat_map(|(_, answers)| answers.claims()));
        (claims().flat_map(|claim| &claim.reads).collect(), claims().flat_map(|claim| &claim.wishes).collect())
    }

    /// Returns whether a policy answers for any of the objects before or after the change.
    pub(super) fn answer_for(&self, documents: &[Document]) -> bool {
        let answers = |document: &Document| self.snapshots().any(|side| answer(side, &document.object).is_some());
        documents.iter().any(answers)
    }

    /// Renders the objects on both sides and compares the results. `scopes` contains the scopes of types that have no
    /// object in `documents`.
    pub(super) fn compare(
        &self,
        documents: &[Document],
        scopes: &Scopes,
        started: &Started,
        unstored: &Unstored<'_>,
    ) -> anyhow::Result<Comparison> {
        self.compare_until(&CancellationToken::new(), documents, scopes, started, unstored)
    }

    /// Like [`Self::compare`], but ends early with an error if the caller cancels the token `stop`.
    pub(super) fn compare_until(
        &self,
        stop: &CancellationToken,
        documents: &[Document],
        scopes: &Scopes,
        started: &Started,
        unstored: &Unstored<'_>,
    ) -> anyhow::Result<Comparison> {
        let stored = StoredObjects::new(documents, scopes);
        let mut bound = Bound::default();
        for snapshot in self.snapshots() {
            let objects = documents.iter().map(|document| &document.object);
            bound.bind(snapshot, objects, started, |of| (unstored.hidden)(of).is_none())?;
        }
        let before = At { snapshot: &self.before, bound: &bound, before: None };
        let after = At { snapshot: &self.after, bound: &bound, before: Some(&self.before) };
        let [before, after] = [before, after].map(|at| Stoppable { at, stop });
        let compared = compare(&stored, &before, &after, unstored)?;
        if stop.is_cancelled() {
            bail!("nobody waits for the comparison any more");
        }
        Ok(compared)
    }

    /// Returns the objects for which one of the installed or removed revisions answers.
    pub(super) fn answered<'a>(&self, documents: &'a [Document]) -> impl Iterator<Item = &'a Document> {
        documents.iter().filter(|document| {
            let is_held = named_in_vain(&self.at, &document.object).is_some();
            let kind = answer(&self.at, &document.object).filter(|_| !is_held);
            kind.is_some_and(|kind| self.is_meant(&kind))
        })
    }

    fn is_meant(&self, kind: &Kind) -> bool {
        self.meant.as_ref().is_none_or(|meant| kind.revisions().any(|revision| meant.contains(revision)))
    }

    /// Prints a note for each object that pins a policy that the change would remove. The operator would leave these
    /// objects and their children unchanged.
    pub(super) fn tell_held(&self, documents: &[Document]) {
        for Document { identity, object, .. } in documents {
            if named_in_vain(&self.before, object).is_none() && named_in_vain(&self.after, object).is_some() {
                let what = "names a policy that would no longer exist: the operator would leave the children unchanged";
                complain("note", format_args!("{identity}: {what}"));
            }
        }
    }

    fn snapshots(&self) -> impl Iterator<Item = &Arc<Snapshot>> {
        [&self.before, &self.after].into_iter()
    }
}

/// Wraps policies. After `stop` is cancelled, no policy answers for any object, so that a comparison ends soon.
struct Stoppable<'a> {
    at: At<'a>,
    stop: &'a CancellationToken,
}

impl Answering for Stoppable<'_> {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        if self.stop.is_cancelled() { None } else { self.at.renderer(object) }
    }

    fn left_as_is(&self, object: &Value) -> Option<String> {
        self.at.left_as_is(object)
    }
}

/// Prints the conflicts before the change, and the conflicts that the change would add or end.
fn tell_conflicts(before: &Installed, after: &Installed, then: &PolicySet) {
    for (revision, why) in &before.conflicts {
        complain("note", format_args!("PolicyRevision {revision} does not serve: {why}"));
    }
    for (revision, why) in after.conflicts.iter().filter(|(other, _)| !before.conflicts.contains_key(*other)) {
        complain("note", format_args!("PolicyRevision {revision} would no longer serve: {why}"));
    }
    let is_there = |other: &&Arc<str>| then.shipped.iter().any(|shipped| shipped.revision == **other);
    for revision in before.conflicts.keys().filter(is_there).filter(|other| !after.conflicts.contains_key(*other)) {
        complain("note", format_args!("PolicyRevision {revision} would serve after the change"));
    }
}
