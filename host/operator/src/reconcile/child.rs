//! One child: look, decide, and do what was decided.

use kaos_policy::contract::Reference;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    api::{Calls, named},
    context::Context,
    decide::{Decision, Owner, decide, owner},
    drift,
    error::{CallError, Class},
    fields::{self, entries_of},
    memory::{Mark, Memory, Stored, child_mark},
    wanted::Wanted,
};
use crate::hashing::hash;

/// What became of a child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    /// There was nothing to do.
    Same,
    /// It was written, for this reason; the server's answer.
    Written(String, Value),
    /// It is somebody else's; who that is.
    Foreign(String),
    /// It is being deleted.
    Going,
}

/// Where a pass looks for a child.
pub(crate) struct Sight {
    /// The child as it is.
    pub(crate) live: Option<Value>,
    /// Whether it was read just now, with its managed fields.
    pub(crate) fresh: bool,
    /// Whether somebody else is known to own a part of its spec.
    pub(crate) shared: bool,
}

impl Context {
    /// The child as the watch knows it; one that it does not know is read, since an apply without a look would take over
    /// a stranger's object.
    pub(crate) async fn sight(&self, child: &Reference, uid: &str, memory: &Memory) -> Result<Sight, CallError> {
        let namespace = child.namespace.as_deref().unwrap_or_default();
        let of = child.of();
        if let Some(seen) = self.watch.live(&of, namespace, &child.name)
            && let Some(live) = seen.object()
        {
            return Ok(Sight { live: Some(live), fresh: false, shared: seen.shared });
        }
        // A name that somebody else has is followed until it is free.
        if memory.conflicts.contains(child)
            && let Some(live) = self.watch.rival(child)
            && matches!(owner(&live, uid), Owner::Other(_))
        {
            return Ok(Sight { live: Some(live), fresh: false, shared: false });
        }
        let served = self.served(&of)?;
        let live = self.calls(&served, namespace).get(&child.name).await?;
        Ok(Sight { live, fresh: true, shared: false })
    }

    /// Makes one child as it should be.
    pub(crate) async fn make(
        &self,
        wanted: &Wanted,
        sight: Sight,
        uid: &str,
        memory: &mut Memory,
    ) -> Result<Done, CallError> {
        let served = self.served(&wanted.of)?;
        let calls = self.calls(&served, &wanted.namespace);
        let Some(live) = sight.live else {
            return self.apply(&calls, wanted, memory, "it was not there").await;
        };
        match decide(wanted, &live, uid, sight.shared) {
            Decision::Same => Ok(Done::Same),
            Decision::Extended => self.reduce(&calls, wanted, memory).await,
            Decision::Foreign(owner) => Ok(Done::Foreign(owner)),
            Decision::Left(owner) => match self.clear_away(&calls, wanted, &live, uid).await {
                Ok(true) => {
                    self.apply(&calls, wanted, memory, "what was there belonged to an owner that is gone").await
                }
                Ok(false) => Ok(Done::Going),
                // Whoever may not delete it waits for the collector.
                Err(error) if error.class == Class::Forbidden => Ok(Done::Foreign(owner)),
                Err(error) => Err(error),
            },
            Decision::Going => Ok(Done::Going),
            Decision::Apply => {
                if wanted.releases_replicas {
                    release_replicas(&calls, wanted).await?;
                }
                self.force(&calls, wanted, memory, "the plan changed").await
            }
            Decision::TakeOver => {
                let live = if sight.fresh { Some(live) } else { calls.get(&wanted.name).await? };
                if let Some(live) = live {
                    take_over(&calls, &live).await?;
                    if wanted.releases_replicas {
                        release_replicas(&calls, wanted).await?;
                    }
                }
                self.apply(&calls, wanted, memory, "it was made by an earlier operator").await
            }
            Decision::Drifted(path) => self.repair(&calls, wanted, &live, &path, memory).await,
        }
    }

    /// A field is not as it was applied. Unless the server is known to store it as it was given, a dry run tells
    /// whether an apply would change anything.
    async fn repair(
        &self,
        calls: &Calls<'_>,
        wanted: &Wanted,
        live: &Value,
        path: &str,
        memory: &mut Memory,
    ) -> Result<Done, CallError> {
        let child = child_mark(&wanted.reference());
        let digest = hash(wanted.digest());
        let looks = looks_of(live);
        match memory.stored.get(&child) {
            Some(Stored::Exactly(known)) if *known == digest => {}
            Some(Stored::Otherwise(known, like)) if *known == digest && *like == looks => return Ok(Done::Same),
            _ => {
                // That the server does not take it says that it would change something.
                let tried = match calls.apply(&wanted.name, &wanted.body, true).await {
                    Err(error) if !is_final(&error) => return Err(error),
                    tried => tried.ok(),
                };
                if tried.is_some_and(|tried| looks_of(&tried) == looks) {
                    memory.stored.insert(child, Stored::Otherwise(digest, looks));
                    return Ok(Done::Same);
                }
            }
        }
        self.force(calls, wanted, memory, &format!("{path} was different")).await
    }

    /// Takes out of the spec what somebody else put into it.
    async fn reduce(&self, calls: &Calls<'_>, wanted: &Wanted, memory: &mut Memory) -> Result<Done, CallError> {
        let reason = "somebody else added to it";
        let Some(live) = calls.get(&wanted.name).await? else { return Ok(Done::Same) };
        match fields::seized(entries_of(&live), &wanted.of.api_version) {
            Some(entries) => drop(calls.manage(&live, &entries).await?),
            None => return Ok(Done::Same),
        }
        self.apply(calls, wanted, memory, reason).await
    }

    /// Applies, also where what others wrote beside it does not go with it: a port that was given another number is to
    /// the server one that is theirs, and ours is missing. Then the whole spec is ours.
    async fn force(
        &self,
        calls: &Calls<'_>,
        wanted: &Wanted,
        memory: &mut Memory,
        reason: &str,
    ) -> Result<Done, CallError> {
        let error = match self.apply(calls, wanted, memory, reason).await {
            Err(error) if is_final(&error) => error,
            done => return done,
        };
        let Some(live) = calls.get(&wanted.name).await? else { return Err(error) };
        let Some(entries) = fields::seized(entries_of(&live), &wanted.of.api_version) else { return Err(error) };
        calls.manage(&live, &entries).await?;
        if wanted.releases_replicas {
            release_replicas(calls, wanted).await?;
        }
        self.apply(calls, wanted, memory, reason).await
    }

    async fn apply(
        &self,
        calls: &Calls<'_>,
        wanted: &Wanted,
        memory: &mut Memory,
        reason: &str,
    ) -> Result<Done, CallError> {
        if let Err(wait) = memory.effort.spend(child_mark(&wanted.reference()), Instant::now()) {
            let message = format!(
                "it was written again and again, and somebody undoes that: {reason}; see who else writes or deletes it"
            );
            return Err(CallError {
                what: format!("apply {}", named(&wanted.reference())),
                class: Class::Transient(Some(wait)),
                message,
            });
        }
        let answer = calls.apply(&wanted.name, &wanted.body, false).await?;
        self.watch.wrote(&answer);
        let digest = hash(wanted.digest());
        let stored = match drift::missing(&wanted.body, &answer) {
            None => Stored::Exactly(digest),
            Some(path) => {
                tracing::debug!(child = %named(&wanted.reference()), path, "the server stores this in its own way");
                Stored::Otherwise(digest, looks_of(&answer))
            }
        };
        memory.stored.insert(child_mark(&wanted.reference()), stored);
        Ok(Done::Written(reason.to_owned(), answer))
    }
}

/// How an object looks, apart from what changes with every write and from what others report in it.
fn looks_of(object: &Value) -> Mark {
    let without = |fields: &Value, left_out: &[&str]| -> Vec<Mark> {
        let fields = fields.as_object().into_iter().flatten();
        fields.filter(|(field, _)| !left_out.contains(&field.as_str())).map(hash).collect()
    };
    let metadata = ["managedFields", "resourceVersion", "generation", "creationTimestamp"];
    hash((without(object, &["status", "metadata"]), without(&object["metadata"], &metadata)))
}

/// What an earlier operator wrote through updates becomes what we applied, so that our next apply removes what is no
/// longer wanted.
async fn take_over(calls: &Calls<'_>, live: &Value) -> Result<(), CallError> {
    let api_version = live["apiVersion"].as_str().unwrap_or_default();
    match fields::taken_over(entries_of(live), "", api_version) {
        Some(entries) => calls.manage(live, &entries).await.map(drop),
        None => Ok(()),
    }
}

/// Gives up our claim on the replicas. An apply that just leaves the field out would reset it.
async fn release_replicas(calls: &Calls<'_>, wanted: &Wanted) -> Result<(), CallError> {
    let Some(live) = calls.get(&wanted.name).await? else { return Ok(()) };
    match fields::released(entries_of(&live), &["f:spec", "f:replicas"]) {
        Some(entries) => calls.manage(&live, &entries).await.map(drop),
        None => Ok(()),
    }
}

/// Whether trying again without a change is of no use.
pub(crate) fn is_final(error: &CallError) -> bool {
    error.class == Class::Permanent
}
