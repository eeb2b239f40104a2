//! PolicyRevisions: what became of each package, written down before it matters.
//!
//! Nobody but the operator writes them, so what was written is known without being read again; from the watch come the
//! wishes of people, who annotate a revision to have it tried again, or delete it.

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

use super::{
    StepError,
    sources::{is_listed, keep, whole},
};
use crate::watch::Watch;

/// The annotation by which a person has a revision tried again: any value that it did not have before.
pub(crate) const RETRY: &str = "kaos.tools/retry";

/// What a person types to have a revision tried again, after this value of the annotation was: one that it had before asks
/// for nothing.
pub(crate) fn retry_command(name: &str, namespace: &str, last: Option<&str>) -> String {
    let next = last.and_then(|last| last.parse::<u64>().ok()).unwrap_or_default().saturating_add(1);
    format!("kubectl annotate policyrevision {name} -n {namespace} --overwrite {RETRY}={next}")
}

/// Why a revision that serves does not answer now.
pub(crate) const NOT_LOADED: &str = "NotLoaded";

/// As whom records are written.
pub(super) const MANAGER: &str = "kaos-operator-policies";

/// A PolicyRevision.
pub(super) type Revision = Object<PolicyRevisionSpec, PolicyRevisionStatus>;

/// What was written down.
pub(super) struct Records {
    api: Api<Revision>,
    seen: Store<Revision>,
    changed: Arc<Notify>,
    book: BTreeMap<String, Revision>,
    /// What somebody deleted, as it was. It stays in the book until it is written again, or left deleted.
    erased: BTreeMap<String, Revision>,
    /// What counts and could not be written yet, and why.
    owed: BTreeMap<String, StepError>,
    confirmed: BTreeSet<String>,
    opened: bool,
    _watches: JoinSet<()>,
}

/// The type of revisions.
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
    /// The records of a namespace.
    pub(super) fn follow(client: &Client, watch: &Watch, namespace: &str) -> Self {
        let api: Api<Revision> = Api::namespaced_with(client.clone(), namespace, &revision_resource());
        let (changed, mut watches) = (Arc::new(Notify::new()), JoinSet::new());
        let of = ResourceType::new(API_VERSION, "PolicyRevision");
        let told = (watch.beside(of, "what became of packages"), &changed);
        let seen = keep(api.clone(), watcher::Config::default(), revision_resource(), whole, told, &mut watches);
        let (book, erased, confirmed) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let owed = BTreeMap::new();
        Self { api, seen, changed, book, erased, owed, confirmed, opened: false, _watches: watches }
    }

    /// Waits for the next change.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Whether everything was listed.
    pub(super) fn are_known(&self) -> bool {
        is_listed(&self.seen)
    }

    /// Takes in what people did since the last time; what was written before this process began, the first time.
    pub(super) fn refresh(&mut self) {
        let seen: BTreeMap<String, Arc<Revision>> = self
            .seen
            .state()
            .into_iter()
            .map(|revision| (revision.metadata.name.clone().unwrap_or_default(), revision))
            .collect();
        if !self.opened {
            self.opened = true;
            self.book = seen.iter().map(|(name, revision)| (name.clone(), (**revision).clone())).collect();
        }
        // One that was there and is not any more was deleted by somebody; one that was just written may not be seen yet.
        let is_gone = |name: &&String| !seen.contains_key(*name) && self.confirmed.contains(*name);
        for (name, revision) in self.book.iter().filter(|(name, _)| is_gone(name)) {
            self.erased.entry(name.clone()).or_insert_with(|| revision.clone());
        }
        for (name, revision) in &seen {
            if let Some(known) = self.book.get_mut(name) {
                known.metadata.annotations.clone_from(&revision.metadata.annotations);
            }
        }
        self.confirmed = seen.into_keys().collect();
    }

    /// What somebody deleted, as it was.
    pub(super) fn erased(&self) -> Vec<Revision> {
        self.erased.values().cloned().collect()
    }

    /// Leaves deleted what somebody deleted.
    pub(super) fn forget(&mut self, name: &str) {
        self.erased.remove(name);
        self.owed.remove(name);
        self.book.remove(name);
    }

    /// Writes again what somebody deleted, as it was, and says whether that was done. Until it is, it counts as it was.
    pub(super) async fn write_again(&mut self, name: &str) -> Result<bool, StepError> {
        let Some(mut erased) = self.erased.get(name).cloned() else { return Ok(false) };
        // The wishes of people went with the record, and may be said in the same words again.
        erased.metadata.annotations = None;
        if let Some(status) = &mut erased.status {
            status.retried = None;
        }
        let written = self.make_again(name, &erased).await;
        if matches!(written, Ok(true)) {
            self.erased.remove(name);
        } else {
            self.book.insert(name.to_owned(), erased);
        }
        written
    }

    async fn make_again(&mut self, name: &str, erased: &Revision) -> Result<bool, StepError> {
        self.create(name, erased.spec.clone()).await?;
        self.write(name, erased.status.clone().unwrap_or_default()).await
    }

    /// All of them, by name.
    pub(super) fn all(&self) -> &BTreeMap<String, Revision> {
        &self.book
    }

    /// One of them.
    pub(super) fn get(&self, name: &str) -> Option<&Revision> {
        self.book.get(name)
    }

    /// Its status; an empty one for what there is none of.
    pub(super) fn status(&self, name: &str) -> PolicyRevisionStatus {
        self.get(name).and_then(|revision| revision.status.clone()).unwrap_or_default()
    }

    /// Kinds that recorded revisions answered for.
    pub(super) fn answered(&self) -> BTreeSet<ResourceType> {
        let answered = |status: &&PolicyRevisionStatus| {
            matches!(status.state, RevisionState::Active | RevisionState::Superseded | RevisionState::Quarantined)
        };
        self.book.values().filter_map(|revision| revision.status.as_ref()).filter(answered).flat_map(kinds_of).collect()
    }

    /// Makes a record.
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

    /// Writes a status, if it says something new. Says whether the record says it now: somebody may have deleted it.
    pub(super) async fn write(&mut self, name: &str, status: PolicyRevisionStatus) -> Result<bool, StepError> {
        let Some(known) = self.book.get_mut(name) else { return Ok(false) };
        if known.status.as_ref() == Some(&status) && !self.owed.contains_key(name) {
            return Ok(true);
        }
        let body =
            json!({"apiVersion": API_VERSION, "kind": "PolicyRevision", "metadata": {"name": name}, "status": status});
        let parameters = PatchParams::apply(MANAGER).force();
        match self.api.patch_status(name, &parameters, &Patch::Apply(&body)).await {
            Ok(_) => {
                known.status = Some(status);
                // What was written last is what counts, also of what somebody deleted.
                self.erased.remove(name);
                self.owed.remove(name);
                Ok(true)
            }
            // The watch is about to tell of it: it is made anew if there is still reason to.
            Err(kube::Error::Api(answer)) if answer.code == 404 => {
                self.confirmed.insert(name.to_owned());
                self.owed.remove(name);
                Ok(false)
            }
            Err(error) => Err(StepError::new(format!("write the status of PolicyRevision {name}"), &error)),
        }
    }

    /// Writes a status that counts whether or not it can be written now: it can be derived again, and nothing else is to wait
    /// for this record. Says whether there is a record to write it into.
    pub(super) async fn write_or_owe(&mut self, name: &str, status: PolicyRevisionStatus) -> bool {
        // An API server that answers nothing is not asked about each record in turn.
        let silent = self.owed.values().find(|error| !error.is_answered).cloned();
        let written = match silent {
            Some(error) if self.get(name).is_some() && self.status(name) != status => Err(error),
            _ => self.write(name, status.clone()).await,
        };
        match (written, self.book.get_mut(name)) {
            (Ok(written), _) => written,
            (Err(error), Some(known)) => {
                tracing::warn!(revision = name, %error, "its state counts, and is written as soon as it can be");
                known.status = Some(status);
                self.owed.insert(name.to_owned(), error);
                true
            }
            (Err(_), None) => false,
        }
    }

    /// Writes what could not be written before, as far as it can be now.
    pub(super) async fn settle(&mut self) {
        for name in self.owed.keys().cloned().collect::<Vec<_>>() {
            if let Err(error) = self.write(&name, self.status(&name)).await {
                let is_answered = error.is_answered;
                self.owed.insert(name, error);
                if !is_answered {
                    return;
                }
            }
        }
    }

    /// Fails while something that counts could not be written.
    pub(super) fn settled(&self) -> Result<(), StepError> {
        self.owed.values().next().cloned().map_or(Ok(()), Err)
    }

    /// Removes a record; what it owns goes with it.
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

/// The kinds that a status says a revision claims.
pub(super) fn kinds_of(status: &PolicyRevisionStatus) -> impl Iterator<Item = ResourceType> {
    let kinds = status.kinds.iter().filter_map(|kind| kind.split_once(' '));
    kinds.map(|(api_version, kind)| ResourceType::new(api_version, kind))
}

/// Whether a revision that serves was not loaded, as far as its record tells.
pub(super) fn was_not_loaded(revision: &Revision) -> bool {
    revision.status.as_ref().and_then(|status| status.reason.as_deref()) == Some(NOT_LOADED)
}
