//! Handles one child: look, decide, and act on the decision.

use kaos_policy::{contract::Reference, stamp::controller};
use serde_json::Value;

use crate::reconcile::{
    api::{Calls, named},
    children::decide::{Decision, Owner, decide, owner},
    children::drift,
    children::final_manifest::Wanted,
    children::immutable,
    children::leftover_fields::leftovers,
    children::managed_fields::{self, entries_of},
    context::Context,
    error::{CallError, Class},
    mark::{Mark, child_mark},
    memory::{Memory, Stored},
};
use crate::{hashing::hash, watch::Writing};

/// The reason for creating a child that no look has found.
const NOT_THERE: &str = "it was not there";
/// The field path of a workload's replicas in managed fields.
const REPLICAS_FIELD: [&str; 2] = ["f:spec", "f:replicas"];

/// Result of handling a child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    /// Nothing to do.
    Same,
    /// The operator wrote the child, for this reason. Holds the server's answer.
    Written(String, Value),
    /// The child belongs to another owner, named here.
    Foreign(String),
    /// The child is being deleted.
    Going,
    /// Nothing yet: a child of an earlier operator has a number of replicas that another writer set.
    Scaled(Value),
}

/// Result of an operation on a child.
pub(crate) enum Made<T> {
    /// The operation is done.
    Done(T),
    /// Nothing was done: the cluster has this instead of the known child.
    Found(Sight),
}

/// Returns the result of an operation. If it found another child instead, leaves the function, so that the pass decides
/// again.
macro_rules! found_is_news {
    ($made:expr) => {
        match $made {
            Made::Done(done) => done,
            Made::Found(found) => return Ok(Made::Found(found)),
        }
    };
}

/// The pass's knowledge of a child before it applies the child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sight {
    /// The watch knows no such child. It does not follow children of other owners, so one of those may exist.
    Unknown,
    /// A read found no child.
    Absent,
    /// The child exists.
    There(Live),
}

/// An existing child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Live {
    pub(crate) object: Value,
    /// Whether the pass read it just now, with its managed fields.
    fresh: bool,
    /// Whether another field manager is known to own a part of its spec.
    pub(crate) shared: bool,
}

impl Sight {
    /// Wraps the result of a read.
    pub(crate) fn found(object: Option<Value>) -> Self {
        object.map_or(Self::Absent, |object| Self::There(Live { object, fresh: true, shared: false }))
    }

    /// Returns the child's object, if the child is known to exist.
    pub(crate) fn live(&self) -> Option<&Value> {
        if let Self::There(live) = self { Some(&live.object) } else { None }
    }
}

impl Context {
    /// Returns the child from the watches.
    pub(crate) fn sight(&self, child: &Reference, uid: &str, memory: &Memory) -> Sight {
        let namespace = child.namespace.as_deref().unwrap_or_default();
        if let Some(seen) = self.watch.live(&child.of(), namespace, &child.name)
            && let Some(object) = seen.object()
        {
            return Sight::There(Live { object, fresh: false, shared: seen.shared });
        }
        // The watch follows a name that another owner has, until the name is free.
        if memory.conflicts.contains(child)
            && let Some(object) = self.watch.rival(child)
            && matches!(owner(&object, uid), Owner::Other(_))
        {
            return Sight::There(Live { object, fresh: false, shared: false });
        }
        Sight::Unknown
    }

    /// Reads the child from the API server.
    pub(crate) async fn read(&self, child: &Reference) -> Result<Sight, CallError> {
        let served = self.served(&child.of())?;
        let calls = self.calls(&served, child.namespace.as_deref().unwrap_or_default());
        Ok(Sight::found(calls.get(&child.name).await?))
    }

    /// Creates or changes one child so that it is as planned.
    pub(crate) async fn make(
        &self,
        wanted: &Wanted,
        sight: Sight,
        uid: &str,
        memory: &mut Memory,
    ) -> Result<Made<Done>, CallError> {
        let live = match sight {
            Sight::There(live) => live,
            Sight::Unknown | Sight::Absent => return self.make_new(wanted, memory, NOT_THERE).await,
        };
        let decision = decide(wanted, &live.object, uid, live.shared);
        if let Decision::Left(owner) = decision {
            return match self.clear_away(wanted, &live.object, uid).await {
                Ok(true) => self.make_new(wanted, memory, "what was there belonged to an owner that is gone").await,
                Ok(false) => Ok(Made::Done(Done::Going)),
                // Without the right to delete it, the operator waits for the garbage collector.
                Err(error) if error.class == Class::Forbidden => Ok(Made::Done(Done::Foreign(owner))),
                Err(error) => Err(error),
            };
        }
        if decision != Decision::Going && !is_kept(wanted) && owner(&live.object, uid) == Owner::Orphan {
            self.has_its_owner(wanted, uid).await?;
        }
        let changed = self.change(wanted, &live, decision, memory).await;
        changed.map_err(|error| immutable::explained(error, &wanted.body, &live.object))
    }

    /// Changes an existing child so that it is as planned.
    async fn change(
        &self,
        wanted: &Wanted,
        live: &Live,
        decision: Decision,
        memory: &mut Memory,
    ) -> Result<Made<Done>, CallError> {
        let served = self.served(&wanted.of)?;
        let Live { object: live, fresh, .. } = live;
        let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
        let known = Known { calls: self.calls(&served, &wanted.namespace), wanted, uid };
        match decision {
            Decision::Same => Ok(Made::Done(Done::Same)),
            Decision::Extended => self.reduce(&known, memory).await,
            Decision::Foreign(owner) | Decision::Left(owner) => Ok(Made::Done(Done::Foreign(owner))),
            Decision::Going => Ok(Made::Done(Done::Going)),
            Decision::Apply => {
                found_is_news!(known.release_replicas().await?);
                found_is_news!(known.claim_leftovers(live).await?);
                self.force(&known, memory, "the plan changed").await
            }
            Decision::LeftOver(path) => self.clear(&known, live, &path, memory).await,
            Decision::TakeOver => {
                let read;
                let live = if *fresh {
                    live
                } else {
                    read = found_is_news!(known.read().await?);
                    &read
                };
                if wanted.has_one_replica() && managed_fields::written_by_others(entries_of(live), &REPLICAS_FIELD) {
                    return Ok(Made::Done(Done::Scaled(live.clone())));
                }
                take_over(&known.calls, live).await?;
                found_is_news!(known.release_replicas().await?);
                found_is_news!(known.claim_leftovers(live).await?);
                self.apply(&known, memory, "it was made by an earlier operator").await
            }
            Decision::Drifted(path) => self.repair(&known, live, &path, memory).await,
        }
    }

    /// Creates a child that no look has found.
    async fn make_new(&self, wanted: &Wanted, memory: &mut Memory, reason: &str) -> Result<Made<Done>, CallError> {
        let child = child_mark(&wanted.reference());
        memory.spend(wanted, reason)?;
        let writing = self.watch.writing(&wanted.body);
        let made = self.apply_unseen(wanted, false).await;
        if !matches!(made, Ok(Made::Done(_))) {
            // Nothing was written, or the next look finds the child.
            memory.effort.give_back(child);
        }
        Ok(match made? {
            Made::Done(answer) => Made::Done(applied(wanted, memory, reason, answer, writing)),
            Made::Found(found) => Made::Found(found),
        })
    }

    /// Applies a child that no look has found, or runs a dry run. If the child exists after all, only a read shows its
    /// owner.
    pub(crate) async fn apply_unseen(&self, wanted: &Wanted, dry_run: bool) -> Result<Made<Value>, CallError> {
        let served = self.served(&wanted.of)?;
        let applied = self.calls(&served, &wanted.namespace).apply_new(&wanted.name, &wanted.body, dry_run).await;
        match applied {
            Ok(Some(answer)) => Ok(Made::Done(answer)),
            Ok(None) => self.read(&wanted.reference()).await.map(Made::Found),
            // The server may refuse an apply to a stranger's child before it compares versions.
            Err(error) if matches!(error.class, Class::Permanent | Class::Forbidden) => {
                match self.read(&wanted.reference()).await {
                    Ok(found @ Sight::There(_)) => Ok(Made::Found(found)),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a dry run of the apply to an existing child. Returns the child found instead, if it is another one. The
    /// only lasting effect is a claim on leftover fields.
    pub(crate) async fn try_change(&self, wanted: &Wanted, live: &Value) -> Result<Option<Sight>, CallError> {
        let served = self.served(&wanted.of)?;
        let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
        let known = Known { calls: self.calls(&served, &wanted.namespace), wanted, uid };
        // The claim changes no value of the child. Without it the server may refuse a correct plan.
        if let Made::Found(found) = known.claim_leftovers(live).await? {
            return Ok(Some(found));
        }
        let tried = known.calls.apply(&wanted.name, &wanted.body, uid, true).await;
        match tried.map_err(|error| immutable::explained(error, &wanted.body, live))? {
            Some(_) => Ok(None),
            None => self.read(&wanted.reference()).await.map(Some),
        }
    }

    /// Repairs a field that differs from the last apply. If the server may store the field in another form, a dry run
    /// first shows whether an apply would change anything.
    async fn repair(
        &self,
        known: &Known<'_>,
        live: &Value,
        path: &str,
        memory: &mut Memory,
    ) -> Result<Made<Done>, CallError> {
        let Known { calls, wanted, uid } = known;
        let child = child_mark(&wanted.reference());
        let digest = hash(wanted.digest());
        let looks = looks_of(live);
        match memory.stored.get(&child) {
            Some(Stored::Exactly(known)) if *known == digest => {}
            Some(Stored::Otherwise(known, like)) if *known == digest && *like == looks => {
                return Ok(Made::Done(Done::Same));
            }
            _ => {
                // A rejection proves that the apply would change something.
                let tried = match calls.apply(&wanted.name, &wanted.body, uid, true).await {
                    Err(error) if !is_final(&error) => return Err(error),
                    tried => tried.ok().flatten(),
                };
                if tried.is_some_and(|tried| looks_of(&tried) == looks) {
                    memory.stored.insert(child, Stored::Otherwise(digest, looks));
                    return Ok(Made::Done(Done::Same));
                }
            }
        }
        self.force(known, memory, &format!("{path} was different")).await
    }

    /// Removes leftovers of an earlier plan, unless the operator tried it before or they belong to another field
    /// manager.
    async fn clear(
        &self,
        known: &Known<'_>,
        live: &Value,
        path: &str,
        memory: &mut Memory,
    ) -> Result<Made<Done>, CallError> {
        let child = child_mark(&known.wanted.reference());
        let (digest, looks) = (hash(known.wanted.digest()), looks_of(live));
        let is_known = memory.stored.get(&child).is_some_and(|stored| *stored == Stored::Otherwise(digest, looks));
        if is_known {
            return Ok(Made::Done(Done::Same));
        }
        if !found_is_news!(known.claim_leftovers(live).await?) {
            memory.stored.insert(child, Stored::Otherwise(digest, looks));
            return Ok(Made::Done(Done::Same));
        }
        self.apply(known, memory, &format!("an earlier plan left {path}")).await
    }

    /// Removes the additions of other field managers from the spec.
    async fn reduce(&self, known: &Known<'_>, memory: &mut Memory) -> Result<Made<Done>, CallError> {
        let live = found_is_news!(known.read().await?);
        match managed_fields::seized(entries_of(&live), &known.wanted.of.api_version) {
            Some(entries) => drop(known.calls.manage(&live, &entries).await?),
            None => return Ok(Made::Done(Done::Same)),
        }
        self.apply(known, memory, "somebody else added to it").await
    }

    /// Applies the child. If the server refuses because of fields of others, takes over the whole spec and applies
    /// again. Example: a changed port number. To the server the old port is theirs, and ours is missing. If the second
    /// apply fails too, their fields were not the reason, so the others get them back. Otherwise the next accepted
    /// apply would remove these fields.
    async fn force(&self, known: &Known<'_>, memory: &mut Memory, reason: &str) -> Result<Made<Done>, CallError> {
        let error = match self.apply(known, memory, reason).await {
            // A misfit, such as an undeclared field, does not come from the fields of others.
            Err(error) if is_final(&error) && !error.is_misfit() => error,
            done => return done,
        };
        let live = found_is_news!(known.read().await?);
        let before = entries_of(&live);
        let Some(entries) = managed_fields::seized(before, &known.wanted.of.api_version) else { return Err(error) };
        let seized = known.calls.manage(&live, &known.without_replicas(entries)).await?;
        let forced = self.apply(known, memory, reason).await;
        if forced.is_err()
            // A later writer has already claimed the fields that it wants.
            && let Err(error) = known.calls.manage(&seized, before).await
        {
            tracing::warn!(child = %named(&known.wanted.reference()), %error, "fields of others could not be given back");
        }
        forced
    }

    async fn apply(&self, known: &Known<'_>, memory: &mut Memory, reason: &str) -> Result<Made<Done>, CallError> {
        let Known { calls, wanted, uid } = known;
        memory.spend(wanted, reason)?;
        let writing = self.watch.writing(&wanted.body);
        if let Some(answer) = calls.apply(&wanted.name, &wanted.body, uid, false).await? {
            return Ok(Made::Done(applied(wanted, memory, reason, answer, writing)));
        }
        // Nothing was written.
        memory.effort.give_back(child_mark(&wanted.reference()));
        self.read(&wanted.reference()).await.map(Made::Found)
    }
}

/// Whether the child gets no owner, so that it outlives the object.
fn is_kept(wanted: &Wanted) -> bool {
    controller(&wanted.body).is_none()
}

/// A child that is known to exist. Every write names its UID, because the watch may not have reported a replacement
/// yet.
struct Known<'a> {
    calls: Calls<'a>,
    wanted: &'a Wanted,
    uid: &'a str,
}

impl Known<'_> {
    /// Reads the child with its managed fields, or returns the child that replaced it.
    async fn read(&self) -> Result<Made<Value>, CallError> {
        Ok(match self.calls.get(&self.wanted.name).await? {
            Some(live) if live["metadata"]["uid"] == *self.uid => Made::Done(live),
            other => Made::Found(Sight::found(other)),
        })
    }

    /// Gives up our claim on the replicas where another writer sets them. An apply that only omits the field would
    /// reset it.
    async fn release_replicas(&self) -> Result<Made<()>, CallError> {
        if !self.wanted.releases_replicas {
            return Ok(Made::Done(()));
        }
        let live = found_is_news!(self.read().await?);
        if let Some(entries) = managed_fields::released(entries_of(&live), &REPLICAS_FIELD) {
            self.calls.manage(&live, &entries).await?;
        }
        Ok(Made::Done(()))
    }

    /// Claims leftovers of an earlier plan, so that the next apply removes them. Returns whether any leftover had no
    /// other field manager.
    async fn claim_leftovers(&self, live: &Value) -> Result<Made<bool>, CallError> {
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

    /// Returns the managed fields without our claim on the replicas, where another writer sets them.
    fn without_replicas(&self, entries: Vec<Value>) -> Vec<Value> {
        let released = self.wanted.releases_replicas.then(|| managed_fields::released(&entries, &REPLICAS_FIELD));
        released.flatten().unwrap_or(entries)
    }
}

fn applied(wanted: &Wanted, memory: &mut Memory, reason: &str, answer: Value, writing: Writing<'_>) -> Done {
    writing.answered(&answer);
    let digest = hash(wanted.digest());
    let left = || crate::reconcile::children::leftover_fields::named(&leftovers(&wanted.body, &answer));
    let stored = match drift::missing(&wanted.body, &answer).or_else(left) {
        None => Stored::Exactly(digest),
        Some(path) => {
            tracing::debug!(child = %named(&wanted.reference()), path, "the server stores this in its own way");
            Stored::Otherwise(digest, looks_of(&answer))
        }
    };
    memory.stored.insert(child_mark(&wanted.reference()), stored);
    Done::Written(reason.to_owned(), answer)
}

/// A hash of an object without its status and without the metadata that changes with every write.
fn looks_of(object: &Value) -> Mark {
    let without = |fields: &Value, left_out: &[&str]| -> Vec<Mark> {
        let fields = fields.as_object().into_iter().flatten();
        fields.filter(|(field, _)| !left_out.contains(&field.as_str())).map(hash).collect()
    };
    let metadata = ["managedFields", "resourceVersion", "generation", "creationTimestamp"];
    hash((without(object, &["status", "metadata"]), without(&object["metadata"], &metadata)))
}

/// Makes us the field manager of everything that an earlier operator wrote through updates. So our next apply removes
/// the fields that the plan no longer has.
async fn take_over(calls: &Calls<'_>, live: &Value) -> Result<(), CallError> {
    let api_version = live["apiVersion"].as_str().unwrap_or_default();
    match managed_fields::taken_over(entries_of(live), "", api_version) {
        Some(entries) => calls.manage(live, &entries).await.map(drop),
        None => Ok(()),
    }
}

/// Whether a retry without a change cannot succeed.
pub(crate) fn is_final(error: &CallError) -> bool {
    error.class == Class::Permanent
}
