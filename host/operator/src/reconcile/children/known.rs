//! Changes the managed fields of an existing child before an apply.

use serde_json::Value;

use crate::reconcile::{
    api::Calls,
    children::final_manifest::Wanted,
    children::leftover_fields::leftovers,
    children::managed_fields::{self, entries_of},
    children::sight::{Made, Sight, found_is_news},
    error::CallError,
};

/// The field path of a workload's replicas in managed fields.
pub(super) const REPLICAS_FIELD: [&str; 2] = ["f:spec", "f:replicas"];

/// A child that exists, as far as the operator knows. Every write contains the child's UID, because another child may
/// have the name already although the watch has not reported it yet.
pub(super) struct ExistingChild<'a> {
    pub(super) calls: Calls<'a>,
    pub(super) wanted: &'a Wanted,
    pub(super) uid: &'a str,
}

impl ExistingChild<'_> {
    /// Reads the child with its managed fields. If another child has replaced this child, returns the other child as
    /// [`Made::Found`].
    pub(super) async fn read(&self) -> Result<Made<Value>, CallError> {
        Ok(match self.calls.get(&self.wanted.name).await? {
            Some(live) if live["metadata"]["uid"] == *self.uid => Made::Done(live),
            other => Made::Found(Sight::found(other)),
        })
    }

    /// If another client sets the replicas, removes the field `replicas` from the fields that the operator manages.
    /// Otherwise, an apply that omits the field would reset it.
    pub(super) async fn release_replicas(&self) -> Result<Made<()>, CallError> {
        if !self.wanted.releases_replicas {
            return Ok(Made::Done(()));
        }
        let live = found_is_news!(self.read().await?);
        if let Some(entries) = managed_fields::released(entries_of(&live), &REPLICAS_FIELD) {
            self.calls.manage(&live, &entries).await?;
        }
        Ok(Made::Done(()))
    }

    /// Makes the operator the manager of the leftover fields of an earlier plan, so that the next apply removes these
    /// fields. Returns `false` if there are none, or if all of them have another field manager.
    pub(super) async fn claim_leftovers(&self, live: &Value) -> Result<Made<bool>, CallError> {
        if leftovers(&self.wanted.body, live).is_empty() {
            return Ok(Made::Done(false));
        }
        let live = found_is_news!(self.read().await?);
        let groups = leftovers(&self.wanted.body, &live);
        match managed_fields::claimed(entries_of(&live), &groups, &self.wanted.of.api_version) {
            Some(entries) => self.calls.manage(&live, &entries).await.map(|_| Made::Done(true)),
            None => Ok(Made::Done(false)),
        }
    }

    /// Returns the managed fields `entries`. If another client sets the replicas, the operator's own entry in the
    /// result lacks the field `replicas`.
    pub(super) fn without_replicas(&self, entries: Vec<Value>) -> Vec<Value> {
        let released = self.wanted.releases_replicas.then(|| managed_fields::released(&entries, &REPLICAS_FIELD));
        released.flatten().unwrap_or(entries)
    }
}

/// Makes this operator the field manager of all fields that an earlier operator wrote with updates. So the next apply
/// removes the fields that the plan no longer has.
pub(super) async fn take_over(calls: &Calls<'_>, live: &Value) -> Result<(), CallError> {
    let api_version = live["apiVersion"].as_str().unwrap_or_default();
    match managed_fields::taken_over(entries_of(live), "", api_version) {
        Some(entries) => calls.manage(live, &entries).await.map(drop),
        None => Ok(()),
    }
}
