//! Applies a changed manifest to an existing child, and repairs a child that differs from the manifest applied last.

use serde_json::Value;

use crate::{
    hashing::hash,
    reconcile::{
        access::Access,
        api::named,
        children::drift,
        children::final_manifest::Wanted,
        children::known::ExistingChild,
        children::leftover_fields::{self, leftovers},
        children::managed_fields::{self, entries_of},
        children::memory::{ChildrenMemory, Stored},
        children::sight::{Done, Made, found_is_news, read},
        error::CallError,
        mark::{Mark, child_mark},
    },
    watch::WriteGuard,
};

/// Repairs a child whose field at `path` differs from the manifest applied last. If the server may store the manifest
/// in another form, a dry run first shows whether an apply would change anything. In either case, also removes leftover
/// fields of an earlier plan.
pub(super) async fn repair(
    access: &Access,
    known: &ExistingChild<'_>,
    live: &Value,
    path: &str,
    memory: &mut ChildrenMemory,
) -> Result<Made<Done>, CallError> {
    let ExistingChild { calls, wanted, uid } = known;
    let child = child_mark(&wanted.reference());
    let digest = hash(wanted.digest());
    let looks = looks_of(live);
    match memory.get(child).and_then(|child| child.stored) {
        Some(Stored::Exactly(known)) if known == digest => {}
        Some(Stored::Otherwise(known, like)) if known == digest && like == looks => {
            return Ok(Made::Done(Done::Same));
        }
        _ => {
            // If the server rejects the dry run, the apply would change something.
            let tried = match calls.apply(&wanted.name, &wanted.body, uid, true).await {
                Err(error) if !error.is_final() => return Err(error),
                tried => tried.ok().flatten(),
            };
            if tried.is_some_and(|tried| looks_of(&tried) == looks) {
                let left = leftover_fields::named(&leftovers(&wanted.body, live)).unwrap_or_default();
                return clear(access, known, live, &left, memory).await;
            }
        }
    }
    found_is_news!(known.claim_leftovers(live).await?);
    force(access, known, memory, &format!("{path} was different")).await
}

/// Removes leftover fields of an earlier plan. Does nothing if the operator already tried to remove these fields, or if
/// the fields belong to another field manager.
pub(super) async fn clear(
    access: &Access,
    known: &ExistingChild<'_>,
    live: &Value,
    path: &str,
    memory: &mut ChildrenMemory,
) -> Result<Made<Done>, CallError> {
    let child = child_mark(&known.wanted.reference());
    let (digest, looks) = (hash(known.wanted.digest()), looks_of(live));
    let is_known = memory.get(child).is_some_and(|child| child.stored == Some(Stored::Otherwise(digest, looks)));
    if is_known {
        return Ok(Made::Done(Done::Same));
    }
    if !found_is_news!(known.claim_leftovers(live).await?) {
        memory.of(child).stored = Some(Stored::Otherwise(digest, looks));
        return Ok(Made::Done(Done::Same));
    }
    apply(access, known, memory, &format!("an earlier plan left {path}")).await
}

/// Removes the fields that other field managers added to the spec.
pub(super) async fn reduce(
    access: &Access,
    known: &ExistingChild<'_>,
    memory: &mut ChildrenMemory,
) -> Result<Made<Done>, CallError> {
    let live = found_is_news!(known.read().await?);
    match managed_fields::seized(entries_of(&live), &known.wanted.of.api_version) {
        Some(entries) => drop(known.calls.manage(&live, &entries).await?),
        None => return Ok(Made::Done(Done::Same)),
    }
    apply(access, known, memory, "another client added fields to the child").await
}

/// Applies the child. If the server refuses the apply, takes over the whole spec from other field managers and applies
/// again, because their fields may be the reason. For example, if another manager changed a port number, the server
/// keeps this port next to the planned port. If the second apply fails too, the fields of other managers were not the
/// reason, so these managers get their fields back. Otherwise, the operator's next successful apply would remove these
/// fields.
pub(super) async fn force(
    access: &Access,
    known: &ExistingChild<'_>,
    memory: &mut ChildrenMemory,
    reason: &str,
) -> Result<Made<Done>, CallError> {
    let error = match apply(access, known, memory, reason).await {
        // If the manifest does not fit the schema, fields of other managers are not the reason.
        Err(error) if error.is_final() && !error.is_misfit() => error,
        done => return done,
    };
    let live = found_is_news!(known.read().await?);
    let before = entries_of(&live);
    let Some(entries) = managed_fields::seized(before, &known.wanted.of.api_version) else { return Err(error) };
    let seized = known.calls.manage(&live, &known.without_replicas(entries)).await?;
    let forced = apply(access, known, memory, reason).await;
    if forced.is_err()
        // A conflict here is harmless: it means that another client has written the child meanwhile, and so manages its
        // fields again.
        && let Err(error) = known.calls.manage(&seized, before).await
    {
        let child = named(&known.wanted.reference());
        tracing::warn!(%child, %error, "could not return fields to the other clients that managed them");
    }
    forced
}

pub(super) async fn apply(
    access: &Access,
    known: &ExistingChild<'_>,
    memory: &mut ChildrenMemory,
    reason: &str,
) -> Result<Made<Done>, CallError> {
    let ExistingChild { calls, wanted, uid } = known;
    memory.spend(wanted, reason)?;
    let writing = access.watch.writing(&wanted.body);
    if let Some(answer) = calls.apply(&wanted.name, &wanted.body, uid, false).await? {
        return Ok(Made::Done(applied(wanted, memory, reason, answer, writing)));
    }
    // The request wrote nothing.
    memory.write_limit.give_back(child_mark(&wanted.reference()));
    read(access, &wanted.reference()).await.map(Made::Found)
}

/// Records a successful apply, and how the server stores the child.
pub(super) fn applied(
    wanted: &Wanted,
    memory: &mut ChildrenMemory,
    reason: &str,
    answer: Value,
    writing: WriteGuard<'_>,
) -> Done {
    writing.answered(&answer);
    let digest = hash(wanted.digest());
    let left = || leftover_fields::named(&leftovers(&wanted.body, &answer));
    let stored = match drift::missing(&wanted.body, &answer).or_else(left) {
        None => Stored::Exactly(digest),
        Some(path) => {
            tracing::debug!(child = %named(&wanted.reference()), path, "the API server stores this field in its own \
                form");
            Stored::Otherwise(digest, looks_of(&answer))
        }
    };
    memory.of(child_mark(&wanted.reference())).stored = Some(stored);
    Done::Written(reason.to_owned(), answer)
}

/// Returns a hash of an object, without the status and without the metadata that changes with every write.
fn looks_of(object: &Value) -> Mark {
    let without = |fields: &Value, left_out: &[&str]| -> Vec<Mark> {
        let fields = fields.as_object().into_iter().flatten();
        fields.filter(|(field, _)| !left_out.contains(&field.as_str())).map(hash).collect()
    };
    let metadata = ["managedFields", "resourceVersion", "generation", "creationTimestamp"];
    hash((without(object, &["status", "metadata"]), without(&object["metadata"], &metadata)))
}
