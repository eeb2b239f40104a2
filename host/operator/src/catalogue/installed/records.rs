//! Reads and writes PolicyRevisions. The operator records the state of a revision before it acts on this state.
//!
//! Only the operator writes the status, so it uses its own copy of the status and does not read the PolicyRevisions
//! again. Users annotate a PolicyRevision, for example to request another attempt, or delete it. The watch reports
//! these changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_crds::{API_VERSION, GROUP, PolicyRevisionSpec, PolicyRevisionStatus, RevisionState, VERSION};
use kaos_policy::contract::ResourceType;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::{ApiResource, Object, ObjectMeta},
    runtime::{reflector::Store, watcher},
};
use serde_json::json;
use tokio::{sync::Notify, task::JoinSet};

pub(crate) use super::observed::NOT_LOADED;
use super::{
    StepError,
    observed::{Definition, OLD_DEFINITION, is_unknown_state, observed},
    sources::{is_listed, keep, whole},
};
use crate::{
    error_text::is_misfit,
    watch::{ForeignWatch, Watch},
};

/// The annotation with which a user requests another attempt. Any new value is a new request.
pub(crate) const RETRY: &str = "kaos.tools/retry";

/// The annotation with which a person approves a revision. The value is the name of the user. The chart's admission
/// policy makes sure that the user has the right to approve, and that the name is their own.
pub(crate) const APPROVED_BY: &str = "kaos.tools/approved-by";

/// The annotation that says which hold a person approves: the value of `status.since` that the person saw. Without this
/// annotation, an old approval would also count when the operator holds the same revision again.
pub(crate) const APPROVED_FOR: &str = "kaos.tools/approved-for";

/// The annotation with which a person steers a rollout: `pause`, `resume`, `promote` or `return`. The chart's admission
/// policy guards this annotation in the same way as an approval.
pub(crate) const ROLLOUT: &str = "kaos.tools/rollout";

/// The annotation with the name of the person who steers a rollout.
pub(crate) const ROLLOUT_BY: &str = "kaos.tools/rollout-by";

/// The annotation that identifies a request about a rollout: its value is the start of the rollout, and the number of
/// the request. The operator handles each request once, and ignores requests about earlier rollouts.
pub(crate) const ROLLOUT_FOR: &str = "kaos.tools/rollout-for";

/// Returns the command with which a user requests another attempt. `last` is the last value of the annotation. The
/// command uses a different value, because an old value has no effect.
pub(crate) fn retry_command(name: &str, namespace: &str, last: Option<&str>) -> String {
    let next = last.and_then(|last| last.parse::<u64>().ok()).unwrap_or_default().saturating_add(1);
    format!("kubectl annotate policyrevision {name} -n {namespace} --overwrite {RETRY}={next}")
}

/// The field manager of the PolicyRevisions.
pub(super) const MANAGER: &str = "kaos-operator-policies";

/// A PolicyRevision.
pub(crate) type Revision = Object<PolicyRevisionSpec, PolicyRevisionStatus>;

/// The PolicyRevisions: the operator's own copy, and the watch on the objects in the cluster.
///
/// The copy has the content that the operator wrote last.
pub(super) struct Records {
    api: Api<Revision>,
    seen: Store<Revision>,
    changed: Arc<Notify>,
    book: BTreeMap<String, Revision>,
    /// The last content of the PolicyRevisions that a user deleted. A deleted PolicyRevision stays in `book` until the
    /// operator creates it again or forgets it.
    deleted: BTreeMap<String, Revision>,
    /// For each PolicyRevision whose status could not be written yet, the error of the write. The status in `book` is
    /// in effect already.
    owed: BTreeMap<String, StepError>,
    confirmed: BTreeSet<String>,
    opened: bool,
    /// PolicyRevisions of an earlier version of the operator whose status still lacks the conditions.
    unobserved: BTreeSet<String>,
    /// The version of PolicyRevision's definition in the cluster. The definition can be older than the operator.
    definition: Definition,
    followed: Arc<ForeignWatch>,
    _watches: JoinSet<()>,
}

/// Returns the API resource of PolicyRevisions.
pub(crate) fn revision_resource() -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: "PolicyRevision".to_owned(),
        plural: "policyrevisions".to_owned(),
    }
}

impl Records {
    /// Starts a watch on the PolicyRevisions of a namespace.
    pub(super) fn follow(client: &Client, watch: &Watch, namespace: &str) -> Self {
        let api: Api<Revision> = Api::namespaced_with(client.clone(), namespace, &revision_resource());
        let (changed, mut watches) = (Arc::new(Notify::new()), JoinSet::new());
        let of = ResourceType::new(API_VERSION, "PolicyRevision");
        let followed = Arc::new(watch.beside(of, "the states of packages"));
        let told = (Arc::clone(&followed), &changed);
        let seen = keep(api.clone(), watcher::Config::default(), revision_resource(), whole, told, &mut watches);
        let (book, deleted, confirmed) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self {
            api,
            seen,
            changed,
            book,
            deleted,
            owed: BTreeMap::new(),
            confirmed,
            opened: false,
            unobserved: BTreeSet::new(),
            definition: Definition::Current,
            followed,
            _watches: watches,
        }
    }

    /// Waits until the watch reports a change of a PolicyRevision.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns whether the watch has listed all PolicyRevisions.
    pub(super) fn are_known(&self) -> bool {
        is_listed(&self.seen)
    }

    /// Returns whether the API server does not serve PolicyRevisions, so that no process has recorded any.
    pub(super) fn are_unserved(&self) -> bool {
        self.followed.is_unserved()
    }

    /// Returns whether the operator lacks the right to read the PolicyRevisions.
    pub(super) fn are_forbidden(&self) -> bool {
        self.followed.is_forbidden()
    }

    /// Returns the PolicyRevisions as the watch reports them, without the operator's own copy. This suffices for a
    /// replica without the Lease, which writes no PolicyRevisions.
    pub(super) fn seen(&self) -> BTreeMap<String, Arc<Revision>> {
        let named = |revision: Arc<Revision>| (revision.metadata.name.clone().unwrap_or_default(), revision);
        self.seen.state().into_iter().map(named).collect()
    }

    /// Reads the changes of users since the last call. The first call reads the PolicyRevisions of earlier processes.
    pub(super) fn refresh(&mut self) {
        let seen = self.seen();
        if !self.opened {
            self.opened = true;
            self.book = seen.iter().map(|(name, revision)| (name.clone(), (**revision).clone())).collect();
            let is_unobserved =
                |revision: &Revision| revision.status.as_ref().is_some_and(|it| it.observed_generation.is_none());
            let unobserved = self.book.iter().filter(|(_, revision)| is_unobserved(revision));
            self.unobserved = unobserved.map(|(name, _)| name.clone()).collect();
        }
        // If the watch reported a PolicyRevision earlier and no longer contains it, a user deleted it. Keep a
        // PolicyRevision that the watch never reported, because it may be new.
        let is_gone = |name: &&String| !seen.contains_key(*name) && self.confirmed.contains(*name);
        for (name, revision) in self.book.iter().filter(|(name, _)| is_gone(name)) {
            self.deleted.entry(name.clone()).or_insert_with(|| revision.clone());
        }
        for (name, revision) in &seen {
            if let Some(known) = self.book.get_mut(name) {
                known.metadata.annotations.clone_from(&revision.metadata.annotations);
            }
        }
        self.confirmed = seen.into_keys().collect();
    }

    /// Returns the names of the PolicyRevisions that a user deleted.
    pub(super) fn deleted(&self) -> impl Iterator<Item = &String> {
        self.deleted.keys()
    }

    /// Forgets a PolicyRevision that a user deleted.
    pub(super) fn forget(&mut self, name: &str) {
        self.deleted.remove(name);
        self.owed.remove(name);
        self.book.remove(name);
    }

    /// Creates a PolicyRevision again after a user deleted it. Returns whether the PolicyRevision exists now. If the
    /// write fails, the operator continues to use its own copy of the PolicyRevision.
    pub(super) async fn write_again(&mut self, name: &str) -> Result<bool, StepError> {
        let Some(mut deleted) = self.deleted.get(name).cloned() else { return Ok(false) };
        // The new PolicyRevision has no annotations. So also forget the last retry request: if a user sets the retry
        // annotation to an old value, this is a new request.
        deleted.metadata.annotations = None;
        if let Some(status) = &mut deleted.status {
            status.retried = None;
        }
        let written = self.make_again(name, &deleted).await;
        if matches!(written, Ok(true)) {
            self.deleted.remove(name);
        } else {
            self.book.insert(name.to_owned(), deleted);
        }
        written
    }

    async fn make_again(&mut self, name: &str, deleted: &Revision) -> Result<bool, StepError> {
        self.create(name, deleted.spec.clone()).await?;
        self.write(name, deleted.status.clone().unwrap_or_default()).await
    }

    /// Returns all PolicyRevisions, by name.
    pub(super) fn all(&self) -> &BTreeMap<String, Revision> {
        &self.book
    }

    /// Returns the PolicyRevision of this name, or `None` if it does not exist.
    pub(super) fn get(&self, name: &str) -> Option<&Revision> {
        self.book.get(name)
    }

    /// Returns the status of a PolicyRevision. Returns an empty status if the PolicyRevision does not exist.
    pub(super) fn status(&self, name: &str) -> PolicyRevisionStatus {
        self.get(name).and_then(|revision| revision.status.clone()).unwrap_or_default()
    }

    /// Returns the kinds for which recorded revisions answered.
    pub(super) fn answered(&self) -> BTreeSet<ResourceType> {
        let answered = |status: &&PolicyRevisionStatus| {
            status.state.is_replaced() || matches!(status.state, RevisionState::Active | RevisionState::Quarantined)
        };
        self.book.values().filter_map(|revision| revision.status.as_ref()).filter(answered).flat_map(kinds_of).collect()
    }

    /// Creates a PolicyRevision.
    pub(super) async fn create(&mut self, name: &str, spec: PolicyRevisionSpec) -> Result<(), StepError> {
        let mut revision = Revision::new(name, &revision_resource(), spec);
        revision.metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let what = || format!("write PolicyRevision {name}");
        let made = match self.api.create(&PostParams::default(), &revision).await {
            Err(kube::Error::Api(status)) if status.code == 409 => self.api.get(name).await,
            made => made,
        };
        let made = made.map_err(|error| StepError::new(what(), &error))?;
        self.book.insert(name.to_owned(), made);
        Ok(())
    }

    /// Writes a status if it differs from the recorded status. Returns true if the PolicyRevision now has this status,
    /// and false if a user deleted the PolicyRevision. Returns an error if the definition in the cluster has no field
    /// for the revision's rollout.
    pub(super) async fn write(&mut self, name: &str, status: PolicyRevisionStatus) -> Result<bool, StepError> {
        let status = self.completed(name, status);
        let Some(known) = self.book.get_mut(name) else { return Ok(false) };
        if known.status.as_ref() == Some(&status) && !self.owed.contains_key(name) {
            return Ok(true);
        }
        let what = || format!("write the status of PolicyRevision {name}");
        // Do not write a PolicyRevision without its rollout: the next process would let the revision serve all objects
        // at once.
        let is_lossy = |definition: Definition| !definition.has_rollouts() && status.open_rollout().is_some();
        let old = || StepError { what: what(), message: OLD_DEFINITION.to_owned(), is_answered: true };
        if is_lossy(self.definition) {
            return Err(old());
        }
        let allowed = self.definition.allowed(&status);
        let body =
            json!({"apiVersion": API_VERSION, "kind": "PolicyRevision", "metadata": {"name": name}, "status": allowed});
        let parameters = PatchParams::apply(MANAGER).force();
        match self.api.patch_status(name, &parameters, &Patch::Apply(&body)).await {
            Ok(_) => {
                known.status = Some(status);
                // The write succeeded, so the PolicyRevision exists, even if the watch reported a deletion.
                self.deleted.remove(name);
                self.owed.remove(name);
                Ok(true)
            }
            // The watch will report the deletion, and the operator then creates the PolicyRevision again if the
            // PolicyRevision is still needed.
            Err(kube::Error::Api(answer)) if answer.code == 404 => {
                self.confirmed.insert(name.to_owned());
                self.owed.remove(name);
                Ok(false)
            }
            Err(kube::Error::Api(answer)) if is_misfit(&answer.message) || is_unknown_state(&answer.message) => {
                let Some(older) = self.definition.older() else {
                    return Err(StepError::new(what(), &kube::Error::Api(answer)));
                };
                self.definition = older;
                tracing::warn!(
                    ?older,
                    "a part of the status of revisions is left out, because the definition of PolicyRevision in the \
                     cluster is older than the operator: apply the operator's definitions, and restart the operator"
                );
                if is_lossy(older) {
                    return Err(old());
                }
                Box::pin(self.write(name, status)).await
            }
            Err(error) => Err(StepError::new(what(), &error)),
        }
    }

    /// Adds the conditions and the observed generation that follow from the state.
    fn completed(&self, name: &str, status: PolicyRevisionStatus) -> PolicyRevisionStatus {
        let generation = self.get(name).and_then(|revision| revision.metadata.generation);
        observed(status, generation.unwrap_or(1))
    }

    /// Writes a status. The status is in effect even if the write fails, because other revisions must not wait for this
    /// write. A later process can compute the status again. Returns whether the PolicyRevision exists.
    pub(super) async fn write_or_owe(&mut self, name: &str, status: PolicyRevisionStatus) -> bool {
        let status = self.completed(name, status);
        // If the API server did not answer an earlier write, do not send this write: otherwise the operator would wait
        // for the timeout once for each PolicyRevision.
        let silent = self.owed.values().find(|error| !error.is_answered).cloned();
        let written = match silent {
            Some(error) if self.get(name).is_some() && self.status(name) != status => Err(error),
            _ => self.write(name, status.clone()).await,
        };
        match (written, self.book.get_mut(name)) {
            (Ok(written), _) => written,
            (Err(error), Some(known)) => {
                tracing::warn!(revision = name, %error, "could not write the status of a revision; its new state is in \
                    effect; retrying the write");
                known.status = Some(status);
                self.owed.insert(name.to_owned(), error);
                true
            }
            (Err(_), None) => false,
        }
    }

    /// Writes the statuses that could not be written before. Adds the missing conditions to statuses of an earlier
    /// version.
    pub(super) async fn settle(&mut self) {
        let due: BTreeSet<String> = self.unobserved.iter().chain(self.owed.keys()).cloned().collect();
        for name in due {
            let written = self.write(&name, self.status(&name)).await;
            self.unobserved.remove(&name);
            if let Err(error) = written {
                let is_answered = error.is_answered;
                self.owed.insert(name, error);
                if !is_answered {
                    return;
                }
            }
        }
    }

    /// Returns whether the definition of PolicyRevision in the cluster has fields for rollouts, as far as the operator
    /// knows.
    pub(super) fn has_rollouts(&self) -> bool {
        self.definition.has_rollouts()
    }

    /// Returns the error of the last write of a status that is still not written, or `Ok` if all statuses are written.
    pub(super) fn settled(&self) -> Result<(), StepError> {
        self.owed.values().next().cloned().map_or(Ok(()), Err)
    }

    /// Deletes a PolicyRevision. The garbage collector deletes the ConfigMaps that the PolicyRevision owns.
    pub(super) async fn delete(&mut self, name: &str) -> Result<(), StepError> {
        match self.api.delete(name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(answer)) if answer.code == 404 => {}
            Err(error) => return Err(StepError::new(format!("delete PolicyRevision {name}"), &error)),
        }
        self.owed.remove(name);
        self.book.remove(name);
        Ok(())
    }
}

/// Returns the kinds that a revision claims according to its status.
pub(super) fn kinds_of(status: &PolicyRevisionStatus) -> impl Iterator<Item = ResourceType> {
    let kinds = status.kinds.iter().filter_map(|kind| kind.split_once(' '));
    kinds.map(|(api_version, kind)| ResourceType::new(api_version, kind))
}

/// Returns whether the PolicyRevision says that the operator could not load the revision.
pub(super) fn was_not_loaded(revision: &Revision) -> bool {
    revision.status.as_ref().and_then(|status| status.reason.as_deref()) == Some(NOT_LOADED)
}
