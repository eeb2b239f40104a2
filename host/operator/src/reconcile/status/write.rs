//! Writes a status that differs from the live status, with one apply that keeps the fields of other writers.
//!
//! A server-side apply removes the fields that the operator no longer sets, and keeps the conditions of other writers.
//! With any other patch, the operator would have to read the status first.

use kaos_policy::contract::ResourceType;
use serde_json::{Map, Value, json};

use crate::reconcile::{
    access::Access,
    api::Calls,
    children::managed_fields::{self, entries_of},
    error::{CallError, Class},
    memory::Memory,
    status::{declared_fields::DeclaredFields, times},
};
use crate::{
    hashing::hash,
    status::{conditions::ACCEPTED, is_unwritten},
    watch::Served,
};

/// The difference between the live status and the computed status.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StatusDifference {
    None,
    /// The live status is as computed, but has additional fields. Contains the path of each additional field in the
    /// format of `fieldsV1`.
    More(Vec<Vec<String>>),
    Different,
}

/// Writes the status if the status differs from the live status. Returns whether the operator wrote the status.
pub(super) async fn write_status(
    access: &Access,
    declared_fields: &DeclaredFields,
    (of, served): (&ResourceType, &Served),
    object: &Value,
    status: &Value,
    memory: &mut Memory,
) -> Result<bool, CallError> {
    let before = &object["status"];
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let calls = access.calls(served, namespace);
    let pair = hash((status, before));
    if memory.status.settled == Some(pair) {
        return Ok(false);
    }
    match difference(status, before) {
        StatusDifference::None => return Ok(false),
        StatusDifference::More(paths) => {
            // Only the managed fields show whether the operator or another client wrote these fields.
            let Some(live) = calls.get(name).await? else { return Ok(false) };
            let entries = entries_of(&live);
            let ours = paths.iter().any(|path| {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                managed_fields::owned(entries, "status", &path)
            });
            if !ours && managed_fields::taken_over(entries, "status", &of.api_version).is_none() {
                memory.status.settled = Some(pair);
                return Ok(false);
            }
            take_over_status(access, of, &calls, &live).await?;
        }
        // The earlier operator may have written the status. Take over its fields before the first apply, because after
        // this apply they would look like fields of another controller.
        StatusDifference::Different if !is_unwritten(before) && !memory.status.is_ours && !has_ours(before) => {
            let Some(live) = calls.get(name).await? else { return Ok(false) };
            if live["metadata"]["uid"] == metadata["uid"] {
                take_over_status(access, of, &calls, &live).await?;
            }
        }
        StatusDifference::Different => {}
    }
    let body = json!({
        "apiVersion": of.api_version,
        "kind": of.kind,
        // Send the UID, so that the server does not write the status to another object of the same name.
        "metadata": {"name": name, "namespace": namespace, "uid": metadata["uid"]},
        "status": status,
    });
    let answer = apply_status(access, declared_fields, of, &calls, name, &body).await?;
    memory.status.is_ours = true;
    if difference(status, &answer["status"]) != StatusDifference::None {
        // Do not write this status again: another client writes it too, or the server stores it in another form.
        memory.status.settled = Some(hash((status, &answer["status"])));
    }
    Ok(true)
}

async fn apply_status(
    access: &Access,
    declared_fields: &DeclaredFields,
    of: &ResourceType,
    calls: &Calls<'_>,
    name: &str,
    body: &Value,
) -> Result<Value, CallError> {
    match calls.apply_status(name, body).await {
        Ok(answer) => {
            access.watch.wrote(&answer);
            Ok(answer)
        }
        Err(error) => {
            if error.is_final() {
                declared_fields.forget(of);
            }
            // Retry the pass: it reads the kind's schema again, and then the status may fit.
            let class = if error.is_misfit() { Class::Transient(None) } else { error.class };
            Err(CallError { class, ..error })
        }
    }
}

/// Makes the operator the field manager of all fields that an earlier operator wrote into the status.
async fn take_over_status(
    access: &Access,
    of: &ResourceType,
    calls: &Calls<'_>,
    live: &Value,
) -> Result<(), CallError> {
    let Some(entries) = managed_fields::taken_over(entries_of(live), "status", &of.api_version) else {
        return Ok(());
    };
    let answer = calls.manage(live, &entries).await?;
    access.watch.wrote(&answer);
    Ok(())
}

/// Returns whether this operator has written this status before. It always sets the field `policy` and the condition
/// `Accepted`, if the kind's schema declares them.
fn has_ours(status: &Value) -> bool {
    !status["policy"].is_null() || times::find(status, ACCEPTED).is_some()
}

fn difference(wanted: &Value, live: &Value) -> StatusDifference {
    let empty = Map::new();
    let (wanted, live) = (wanted.as_object().unwrap_or(&empty), live.as_object().unwrap_or(&empty));
    let mut more = Vec::new();
    let (conditions, live_conditions) = (by_type(wanted), by_type(live));
    for (of, live) in &live_conditions {
        match conditions.get(of) {
            Some(condition) if condition == live => {}
            Some(_) => return StatusDifference::Different,
            None => {
                more.push(vec!["f:status".to_owned(), "f:conditions".to_owned(), format!("k:{}", json!({"type": of}))]);
            }
        }
    }
    if conditions.keys().any(|of| !live_conditions.contains_key(of)) {
        return StatusDifference::Different;
    }
    for (field, value) in wanted {
        if field != "conditions" && live.get(field).unwrap_or(&Value::Null) != value {
            return StatusDifference::Different;
        }
    }
    let extra = live.keys().filter(|field| *field != "conditions" && !wanted.contains_key(*field));
    more.extend(extra.map(|field| vec!["f:status".to_owned(), format!("f:{field}")]));
    if more.is_empty() { StatusDifference::None } else { StatusDifference::More(more) }
}

fn by_type(status: &Map<String, Value>) -> std::collections::BTreeMap<&str, &Value> {
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.filter_map(|condition| Some((condition["type"].as_str()?, condition))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(conditions: &[(&str, &str)], more: Value) -> Value {
        let conditions: Vec<Value> =
            conditions.iter().map(|(of, status)| json!({"type": of, "status": status})).collect();
        let mut status = more;
        status["conditions"] = json!(conditions);
        status
    }

    #[test]
    fn the_order_of_conditions_is_no_difference() {
        let a = status(&[("A", "True"), ("B", "False")], json!({"phase": "x"}));
        let b = status(&[("B", "False"), ("A", "True")], json!({"phase": "x"}));
        assert_eq!(difference(&a, &b), StatusDifference::None);
    }

    #[test]
    fn additions_of_others_are_more_and_missing_fields_are_different() {
        let wanted = status(&[("A", "True")], json!({"phase": "x"}));
        let live = status(&[("A", "True"), ("Theirs", "True")], json!({"phase": "x", "old": 1}));
        let StatusDifference::More(paths) = difference(&wanted, &live) else { panic!("more") };
        assert_eq!(paths[0], ["f:status", "f:conditions", r#"k:{"type":"Theirs"}"#]);
        assert_eq!(paths[1], ["f:status", "f:old"]);
        assert_eq!(difference(&live, &wanted), StatusDifference::Different);
        assert_eq!(difference(&wanted, &Value::Null), StatusDifference::Different);
    }

    #[test]
    fn a_changed_condition_is_different() {
        let wanted = status(&[("A", "True")], json!({}));
        assert_eq!(difference(&wanted, &status(&[("A", "False")], json!({}))), StatusDifference::Different);
    }
}
