//! Handles managed fields: finds the managers of fields, and assigns the fields of an earlier operator to this
//! operator.
//!
//! The earlier operator wrote the children with update requests. A server-side apply removes only fields of the
//! applying manager, so unplanned fields of the earlier operator would stay forever. So this operator assigns the
//! entries of the earlier operator to itself before the first apply.

use std::collections::BTreeSet;

use kaos_policy::stamp::MANAGER;
use serde_json::{Map, Value, json};

/// The field manager of the earlier operator, which writes with update requests. Many other controllers have this name
/// too, because it is the default of kubebuilder. So only before this operator's first apply, this module takes an
/// entry with this name as the earlier operator's entry.
const EARLIER: &str = "manager";

/// Returns whether an entry comes from an apply of this operator, to the object itself or to a subresource.
fn is_applied(entry: &Value, subresource: &str) -> bool {
    entry["manager"] == MANAGER && entry["operation"] == "Apply" && is_of(entry, subresource)
}

fn is_of(entry: &Value, subresource: &str) -> bool {
    entry["subresource"].as_str().unwrap_or_default() == subresource
}

/// Returns the managers whose fields the operator treats as its own. Before the operator's first apply, the manager of
/// the earlier operator is one of them.
fn own_managers(entries: &[Value], subresource: &str) -> &'static [&'static str] {
    let is_first = !entries.iter().any(|entry| is_applied(entry, subresource));
    if is_first { &[MANAGER, EARLIER] } else { &[MANAGER] }
}

fn is_by(entry: &Value, managers: &[&str]) -> bool {
    entry["manager"].as_str().is_some_and(|manager| managers.contains(&manager))
}

/// Returns the managed fields of an object. The object must come from the API server, because the watch does not keep
/// these fields.
pub(crate) fn entries_of(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the managed fields after a takeover. The takeover turns entries for updates, by the earlier operator or by
/// this operator, into entries for applies of this operator. After the first apply, the takeover includes only this
/// operator's own updates. Returns `None` if there is no entry to take over. `subresource` is empty for the object
/// itself.
pub(crate) fn taken_over(entries: &[Value], subresource: &str, api_version: &str) -> Option<Vec<Value>> {
    let managers = own_managers(entries, subresource);
    let is_ours = |entry: &Value| is_applied(entry, subresource);
    let is_before =
        |entry: &Value| entry["operation"] == "Update" && is_of(entry, subresource) && is_by(entry, managers);
    if !entries.iter().any(is_before) {
        return None;
    }
    let mut fields = Map::new();
    for entry in entries.iter().filter(|entry| is_before(entry) || is_ours(entry)) {
        if let Value::Object(more) = &entry["fieldsV1"] {
            unite(&mut fields, more);
        }
    }
    let latest = entries.iter().filter(|entry| is_before(entry)).filter_map(|entry| entry["time"].as_str()).max();
    let mut ours = json!({
        "manager": MANAGER, "operation": "Apply", "apiVersion": api_version,
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    });
    if let Some(time) = latest {
        ours["time"] = json!(time);
    }
    if !subresource.is_empty() {
        ours["subresource"] = json!(subresource);
    }
    let kept = entries.iter().filter(|entry| !is_before(entry) && !is_ours(entry)).cloned();
    Some(kept.chain([ours]).collect())
}

/// Returns the managed fields after the operator stops managing `field`. The value of the field does not change.
/// Returns `None` if the operator does not own the field.
pub(crate) fn released(entries: &[Value], field: &[&str]) -> Option<Vec<Value>> {
    let mut entries = entries.to_vec();
    let mut found = false;
    for entry in entries.iter_mut().filter(|entry| entry["manager"] == MANAGER && entry["subresource"].is_null()) {
        if let Some(fields) = entry["fieldsV1"].as_object_mut() {
            found |= remove(fields, field);
        }
    }
    found.then_some(entries)
}

/// Returns the managed fields after a takeover of the whole spec. Other managers keep their labels, annotations and
/// entries of subresources. Returns `None` if no other manager owns a part of the spec.
pub(crate) fn seized(entries: &[Value], api_version: &str) -> Option<Vec<Value>> {
    let mut entries = entries.to_vec();
    let mut spec = Map::new();
    for entry in entries.iter_mut().filter(|entry| entry["manager"] != MANAGER && entry["subresource"].is_null()) {
        if let Some(Value::Object(theirs)) =
            entry["fieldsV1"].as_object_mut().and_then(|fields| fields.remove("f:spec"))
        {
            unite(&mut spec, &theirs);
        }
    }
    if spec.is_empty() {
        return None;
    }
    entries.retain(|entry| entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()));
    give(&mut entries, &Map::from_iter([("f:spec".to_owned(), Value::Object(spec))]), api_version);
    Some(entries)
}

/// Returns the managed fields after the operator becomes the manager of fields in `groups` that had no manager. The
/// operator's next apply then removes these fields. If another manager owns a field of a group, the whole group stays
/// unchanged. Returns `None` if every group has a field that another manager owns.
pub(crate) fn claimed(entries: &[Value], groups: &[Vec<Vec<String>>], api_version: &str) -> Option<Vec<Value>> {
    let is_ours =
        |entry: &Value| entry["manager"] == MANAGER && entry["operation"] == "Apply" && entry["subresource"].is_null();
    let is_theirs = |path: &Vec<String>| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        entries.iter().any(|entry| !is_ours(entry) && reaches(&entry["fieldsV1"], &path))
    };
    let free = groups.iter().filter(|group| !group.iter().any(is_theirs)).flatten();
    let mut fields = Map::new();
    for path in free {
        let leaf = Value::Object(Map::new());
        let tree = path.iter().rev().fold(leaf, |below, step| Value::Object(Map::from_iter([(step.clone(), below)])));
        if let Value::Object(tree) = tree {
            unite(&mut fields, &tree);
        }
    }
    if fields.is_empty() {
        return None;
    }
    let mut entries = entries.to_vec();
    give(&mut entries, &fields, api_version);
    Some(entries)
}

/// Adds fields to the entry for the operator's applies, or adds such an entry.
fn give(entries: &mut Vec<Value>, fields: &Map<String, Value>, api_version: &str) {
    let is_ours = |entry: &&mut Value| {
        entry["manager"] == MANAGER && entry["operation"] == "Apply" && entry["subresource"].is_null()
    };
    match entries.iter_mut().find(is_ours).and_then(|entry| entry["fieldsV1"].as_object_mut()) {
        Some(ours) => unite(ours, fields),
        None => entries.push(json!({
            "manager": MANAGER, "operation": "Apply", "apiVersion": api_version,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })),
    }
}

/// Returns whether the operator manages a field, a field below it, or a whole list or object around it. The path has
/// the format of `fieldsV1`.
pub(crate) fn owned(entries: &[Value], subresource: &str, path: &[&str]) -> bool {
    entries
        .iter()
        .any(|entry| entry["manager"] == MANAGER && is_of(entry, subresource) && reaches(&entry["fieldsV1"], path))
}

/// Returns whether a manager other than this operator and the earlier operator wrote a field, directly or through a
/// subresource.
pub(crate) fn written_by_others(entries: &[Value], path: &[&str]) -> bool {
    let managers = own_managers(entries, "");
    entries.iter().any(|entry| {
        let is_theirs = !is_by(entry, managers) || !entry["subresource"].is_null();
        is_theirs && reaches(&entry["fieldsV1"], path)
    })
}

/// Returns the finalizers that this operator added to an object.
pub(crate) fn put_on(entries: &[Value]) -> BTreeSet<String> {
    let own = entries.iter().filter(|entry| entry["manager"] == MANAGER);
    let fields = own.filter_map(|entry| entry["fieldsV1"]["f:metadata"]["f:finalizers"].as_object());
    // In managed fields, the key for an item of a set is `v:`, followed by the item's value in JSON.
    fields.flat_map(Map::keys).filter_map(|item| serde_json::from_str(item.strip_prefix("v:")?).ok()).collect()
}

fn reaches(fields: &Value, path: &[&str]) -> bool {
    let Some((step, rest)) = path.split_first() else { return true };
    let whole = |fields: &Value| fields.as_object().is_some_and(Map::is_empty);
    fields.get(*step).is_some_and(|below| whole(below) || reaches(below, rest))
}

fn unite(into: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (step, below) in more {
        match (into.get_mut(step), below) {
            (Some(Value::Object(into)), Value::Object(below)) => unite(into, below),
            (Some(_), _) => {}
            (None, below) => {
                into.insert(step.clone(), below.clone());
            }
        }
    }
}

fn remove(fields: &mut Map<String, Value>, path: &[&str]) -> bool {
    match path {
        [] => false,
        [last] => fields.remove(*last).is_some(),
        [first, rest @ ..] => {
            let Some(Value::Object(below)) = fields.get_mut(*first) else { return false };
            let removed = remove(below, rest);
            // Remove an empty set of fields: the server would read it as the parent field itself.
            if removed && below.is_empty() {
                fields.remove(*first);
            }
            removed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
               "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    #[test]
    fn updates_of_the_earlier_operator_become_our_apply() {
        let entries = [
            entry("manager", "Update", &json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})),
            entry("kubectl-edit", "Update", &json!({"f:metadata": {"f:labels": {"f:x": {}}}})),
            entry(MANAGER, "Update", &json!({"f:spec": {"f:replicas": {}, "f:selector": {}}})),
        ];
        let after = taken_over(&entries, "", "apps/v1").unwrap();
        assert_eq!(after.len(), 2);
        assert_eq!(after[0]["manager"], "kubectl-edit");
        assert_eq!(after[1]["operation"], "Apply");
        assert_eq!(after[1]["fieldsV1"], json!({"f:spec": {"f:paused": {}, "f:replicas": {}, "f:selector": {}}}));
        assert_eq!(taken_over(&after, "", "apps/v1"), None);
    }

    #[test]
    fn after_our_first_apply_only_our_own_updates_are_taken_over() {
        let ours = entry(MANAGER, "Apply", &json!({"f:spec": {"f:selector": {}}}));
        let theirs = entry("manager", "Update", &json!({"f:spec": {"f:paused": {}}}));
        assert_eq!(
            taken_over(&[theirs.clone(), ours.clone()], "", "apps/v1"),
            None,
            "another controller owns the \
            field by now"
        );
        let update = entry(MANAGER, "Update", &json!({"f:spec": {"f:replicas": {}}}));
        let after = taken_over(&[theirs.clone(), ours, update], "", "apps/v1").unwrap();
        assert_eq!(after[0], theirs);
        assert_eq!(after[1]["fieldsV1"], json!({"f:spec": {"f:replicas": {}, "f:selector": {}}}));
    }

    #[test]
    fn the_earlier_operator_counts_as_us_until_we_apply() {
        let theirs = entry("manager", "Update", &json!({"f:spec": {"f:replicas": {}}}));
        let replicas = ["f:spec", "f:replicas"];
        assert!(!written_by_others(std::slice::from_ref(&theirs), &replicas));
        let ours = entry(MANAGER, "Apply", &json!({"f:spec": {"f:selector": {}}}));
        assert!(written_by_others(&[theirs, ours], &replicas), "another controller owns the field by now");
        let mut scaled = entry("manager", "Update", &json!({"f:spec": {"f:replicas": {}}}));
        scaled["subresource"] = json!("scale");
        assert!(written_by_others(&[scaled], &replicas), "an autoscaler writes through the subresource");
    }

    #[test]
    fn subresources_and_other_writers_are_left_alone() {
        let mut status = entry("manager", "Update", &json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let entries = [status, entry("kube-controller-manager", "Update", &json!({}))];
        assert_eq!(taken_over(&entries, "", "apps/v1"), None);
        let after = taken_over(&entries, "status", "apps/v1").unwrap();
        assert_eq!(after[1]["subresource"], "status");
        assert_eq!(after[0]["manager"], "kube-controller-manager");
    }

    #[test]
    fn a_field_is_released_and_its_empty_parents_with_it() {
        let entries = [
            entry(MANAGER, "Apply", &json!({"f:spec": {"f:replicas": {}}, "f:metadata": {}})),
            entry("hpa", "Update", &json!({"f:spec": {"f:replicas": {}}})),
        ];
        let after = released(&entries, &["f:spec", "f:replicas"]).unwrap();
        assert_eq!(after[0]["fieldsV1"], json!({"f:metadata": {}}));
        assert_eq!(after[1], entries[1]);
        assert_eq!(released(&after, &["f:spec", "f:replicas"]), None);
    }

    #[test]
    fn the_operator_takes_over_the_spec_and_other_managers_keep_their_labels() {
        let entries = [
            entry(MANAGER, "Apply", &json!({"f:spec": {"f:selector": {}}})),
            entry("edit", "Update", &json!({"f:spec": {"f:ports": {}}, "f:metadata": {"f:labels": {}}})),
            entry("other", "Update", &json!({"f:spec": {"f:type": {}}})),
        ];
        let after = seized(&entries, "v1").unwrap();
        assert_eq!(after.len(), 2);
        assert_eq!(after[0]["fieldsV1"], json!({"f:spec": {"f:ports": {}, "f:selector": {}, "f:type": {}}}));
        assert_eq!(after[1]["fieldsV1"], json!({"f:metadata": {"f:labels": {}}}));
        assert_eq!(seized(&after, "v1"), None);
    }

    #[test]
    fn managed_fields_tell_which_finalizers_we_put_on() {
        let held = |names: &[&str]| {
            let items: Map<String, Value> =
                names.iter().map(|name| (format!("v:{}", json!(name)), json!({}))).collect();
            json!({"f:metadata": {"f:finalizers": items}})
        };
        let entries = [
            entry(MANAGER, "Update", &held(&["a.io/ours"])),
            entry(MANAGER, "Apply", &json!({"f:spec": {}})),
            entry("kubectl", "Update", &held(&["b.io/theirs"])),
            json!({"manager": MANAGER, "operation": "Update"}),
        ];
        assert_eq!(put_on(&entries), ["a.io/ours".to_owned()].into());
    }

    #[test]
    fn ownership_is_read_by_path() {
        let entries = [entry(MANAGER, "Apply", &json!({"f:metadata": {"f:labels": {"f:x": {}}}}))];
        assert!(owned(&entries, "", &["f:metadata", "f:labels"]));
        assert!(!owned(&entries, "status", &["f:metadata"]));
        assert!(!owned(&entries, "", &["f:spec"]));
    }
}
