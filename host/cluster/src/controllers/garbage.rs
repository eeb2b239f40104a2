//! Garbage collection by owner references, with background, foreground and orphan propagation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Moment, served};
use crate::{
    api::{self, Deletion},
    state::State,
    storage::{ObjectId, meta, owners},
};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

pub(super) fn sync(state: &mut State, place: &ObjectId, moment: &Moment<'_>) {
    let Some(object) = state.store.get(&place.resource, &place.key).cloned() else { return };
    if meta(&object, "deletionTimestamp").is_empty() {
        return judge(state, place, &object, moment);
    }
    if has_finalizer(&object, ORPHAN) {
        let uid = meta(&object, "uid").to_owned();
        for dependent in state.store.dependents(&uid) {
            forget_owners(state, &dependent, &|owner| owner["uid"] == *uid, moment);
        }
        drop_finalizer(state, place, ORPHAN, moment);
    } else if has_finalizer(&object, FOREGROUND) {
        foreground(state, place, &object, moment);
    }
}

/// Deletes the dependents of an owner. If no remaining dependent blocks the owner's deletion, removes the owner's
/// finalizer.
fn foreground(state: &mut State, place: &ObjectId, owner: &Value, moment: &Moment<'_>) {
    let uid = meta(owner, "uid");
    let mut blocked = false;
    for dependent in state.store.dependents(uid) {
        let Some(object) = state.store.get(&dependent.resource, &dependent.key).cloned() else { continue };
        judge(state, &dependent, &object, moment);
        let blocks = |object: &Arc<Value>| {
            owners(object).iter().any(|reference| reference["uid"] == *uid && reference["blockOwnerDeletion"] == true)
        };
        blocked |= state.store.get(&dependent.resource, &dependent.key).is_some_and(blocks);
    }
    if !blocked {
        drop_finalizer(state, place, FOREGROUND, moment);
    }
}

/// Deletes an object that has owner references but no remaining owner. An owner in foreground deletion, which waits for
/// its dependents, does not count as remaining. If some owners remain, removes the references to the missing owners
/// instead.
fn judge(state: &mut State, place: &ObjectId, object: &Value, moment: &Moment<'_>) {
    let references = owners(object);
    if references.is_empty() || !meta(object, "deletionTimestamp").is_empty() {
        return;
    }
    let (mut solid, mut dangling, mut waiting) = (0, 0, 0);
    for reference in references {
        match state.store.by_uid(reference["uid"].as_str().unwrap_or_default()) {
            // A reference to an owner in another namespace is not valid.
            Some((owner, _)) if !owner.key.namespace.is_empty() && owner.key.namespace != place.key.namespace => {
                dangling += 1;
            }
            Some((_, owner)) if !meta(owner, "deletionTimestamp").is_empty() && has_finalizer(owner, FOREGROUND) => {
                waiting += 1;
            }
            Some(_) => solid += 1,
            None => dangling += 1,
        }
    }
    if solid > 0 {
        if dangling > 0 {
            let present: Vec<String> = references
                .iter()
                .filter_map(|reference| reference["uid"].as_str())
                .filter(|uid| state.store.by_uid(uid).is_some())
                .map(str::to_owned)
                .collect();
            forget_owners(state, place, &|owner| !present.iter().any(|uid| owner["uid"] == **uid), moment);
        }
        return;
    }
    let dependents = !state.store.dependents(meta(object, "uid")).is_empty();
    let policy = if waiting > 0 && dependents { "Foreground" } else { "Background" };
    let Some(resource) = served(state, &place.resource) else { return };
    let deletion =
        Deletion { propagation: Some(policy.into()), uid: Some(meta(object, "uid").to_owned()), ..Deletion::default() };
    // An object with finalizers remains until its finalizers are removed.
    let _left = api::delete(state, &resource, &place.key, &deletion, &moment.text());
}

fn has_finalizer(object: &Value, name: &str) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == name))
}

fn drop_finalizer(state: &mut State, place: &ObjectId, name: &str, moment: &Moment<'_>) {
    edit(state, place, moment, |metadata| {
        if let Some(finalizers) = metadata["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| finalizer != name);
        }
        if metadata["finalizers"] == json!([])
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.remove("finalizers");
        }
    });
}

fn forget_owners(state: &mut State, place: &ObjectId, gone: &dyn Fn(&Value) -> bool, moment: &Moment<'_>) {
    edit(state, place, moment, |metadata| {
        if let Some(references) = metadata["ownerReferences"].as_array_mut() {
            references.retain(|owner| !gone(owner));
        }
        if metadata["ownerReferences"] == json!([])
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.remove("ownerReferences");
        }
    });
}

fn edit(state: &mut State, place: &ObjectId, moment: &Moment<'_>, change: impl FnOnce(&mut Value)) {
    let Some(resource) = served(state, &place.resource) else { return };
    let Some(object) = state.store.get(&place.resource, &place.key).cloned() else { return };
    api::controller_update(state, &resource, "", &object, &moment.text(), |object| change(&mut object["metadata"]));
}
