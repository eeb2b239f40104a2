//! Handles one child: decides what to do with the child, and executes the decision.

use kaos_policy::stamp::controller;
use serde_json::Value;

use crate::reconcile::{
    access::Access,
    children::decide::{Decision, Owner, decide, owner},
    children::final_manifest::Wanted,
    children::known::{ExistingChild, REPLICAS_FIELD, take_over},
    children::managed_fields::{self, entries_of},
    children::memory::ChildrenMemory,
    children::sight::{Done, Live, Made, Sight, found_is_news, read},
    children::stale_children::{clear_away, has_its_owner},
    children::{immutable, repair},
    error::{CallError, Class},
    mark::child_mark,
};

/// The reason for creating a child that the operator did not find.
const NOT_THERE: &str = "the child did not exist";

/// Creates or changes one child so that it matches the plan.
pub(crate) async fn make(
    access: &Access,
    wanted: &Wanted,
    sight: Sight,
    uid: &str,
    memory: &mut ChildrenMemory,
) -> Result<Made<Done>, CallError> {
    let live = match sight {
        Sight::There(live) => live,
        Sight::Unknown | Sight::Absent => return make_new(access, wanted, memory, NOT_THERE).await,
    };
    let decision = decide(wanted, &live.object, uid, live.shared);
    if let Decision::Left(owner) = decision {
        return match clear_away(access, wanted, &live.object, uid).await {
            Ok(true) => make_new(access, wanted, memory, "the child of this name belonged to a deleted owner").await,
            Ok(false) => Ok(Made::Done(Done::Going)),
            // Without the right to delete the old child, the operator waits until the garbage collector deletes it.
            Err(error) if error.class == Class::Forbidden => Ok(Made::Done(Done::Foreign(owner))),
            Err(error) => Err(error),
        };
    }
    if decision != Decision::Going && !is_kept(wanted) && owner(&live.object, uid) == Owner::Orphan {
        has_its_owner(access, wanted, uid).await?;
    }
    let changed = change(access, wanted, &live, decision, memory).await;
    changed.map_err(|error| immutable::explained(error, &wanted.body, &live.object))
}

/// Changes an existing child so that it matches the plan.
async fn change(
    access: &Access,
    wanted: &Wanted,
    live: &Live,
    decision: Decision,
    memory: &mut ChildrenMemory,
) -> Result<Made<Done>, CallError> {
    let served = access.served(&wanted.of)?;
    let Live { object: live, fresh, .. } = live;
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    let known = ExistingChild { calls: access.calls(&served, &wanted.namespace), wanted, uid };
    match decision {
        Decision::Same => Ok(Made::Done(Done::Same)),
        Decision::Extended => repair::reduce(access, &known, memory).await,
        Decision::Foreign(owner) | Decision::Left(owner) => Ok(Made::Done(Done::Foreign(owner))),
        Decision::Going => Ok(Made::Done(Done::Going)),
        Decision::Apply => {
            found_is_news!(known.release_replicas().await?);
            found_is_news!(known.claim_leftovers(live).await?);
            repair::force(access, &known, memory, "the plan changed").await
        }
        Decision::LeftOver(path) => repair::clear(access, &known, live, &path, memory).await,
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
            repair::apply(access, &known, memory, "an earlier operator created it").await
        }
        Decision::Drifted(path) => repair::repair(access, &known, live, &path, memory).await,
    }
}

/// Creates a child that the operator did not find.
async fn make_new(
    access: &Access,
    wanted: &Wanted,
    memory: &mut ChildrenMemory,
    reason: &str,
) -> Result<Made<Done>, CallError> {
    let child = child_mark(&wanted.reference());
    memory.spend(wanted, reason)?;
    let writing = access.watch.writing(&wanted.body);
    let made = apply_unseen(access, wanted, false).await;
    if !matches!(made, Ok(Made::Done(_))) {
        // Give back the write token. If the request created the child in spite of an error, the next read finds the
        // child, and the operator does not create it again.
        memory.write_limit.give_back(child);
    }
    Ok(match made? {
        Made::Done(answer) => Made::Done(repair::applied(wanted, memory, reason, answer, writing)),
        Made::Found(found) => Made::Found(found),
    })
}

/// Applies a child that the operator did not find, or runs a dry run of this apply. If the child exists after all,
/// reads it to get its owner.
pub(crate) async fn apply_unseen(access: &Access, wanted: &Wanted, dry_run: bool) -> Result<Made<Value>, CallError> {
    let served = access.served(&wanted.of)?;
    let applied = access.calls(&served, &wanted.namespace).apply_new(&wanted.name, &wanted.body, dry_run).await;
    match applied {
        Ok(Some(answer)) => Ok(Made::Done(answer)),
        Ok(None) => read(access, &wanted.reference()).await.map(Made::Found),
        // Read the child, because another owner's child may already have this name: the server can refuse the apply
        // before it notices that the child exists.
        Err(error) if matches!(error.class, Class::Permanent | Class::Forbidden) => {
            match read(access, &wanted.reference()).await {
                Ok(found @ Sight::There(_)) => Ok(Made::Found(found)),
                _ => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// Runs a dry run of the apply to an existing child. If another child has replaced this child, returns the other child.
/// This function changes the cluster only by making the operator the manager of leftover fields.
pub(crate) async fn try_change(access: &Access, wanted: &Wanted, live: &Value) -> Result<Option<Sight>, CallError> {
    let served = access.served(&wanted.of)?;
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    let known = ExistingChild { calls: access.calls(&served, &wanted.namespace), wanted, uid };
    // To become the manager of leftover fields does not change their values. Without this step, the server can refuse a
    // correct plan.
    if let Made::Found(found) = known.claim_leftovers(live).await? {
        return Ok(Some(found));
    }
    let tried = known.calls.apply(&wanted.name, &wanted.body, uid, true).await;
    match tried.map_err(|error| immutable::explained(error, &wanted.body, live))? {
        Some(_) => Ok(None),
        None => read(access, &wanted.reference()).await.map(Some),
    }
}

/// Returns whether the child gets no owner reference, so that it outlives the object.
fn is_kept(wanted: &Wanted) -> bool {
    controller(&wanted.body).is_none()
}
