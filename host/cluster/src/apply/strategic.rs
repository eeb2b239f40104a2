//! The strategic merge patch of built-in kinds. A strategic merge patch merges lists by key. Directives (`$patch`,
//! `$retainKeys`, `$deleteFromPrimitiveList`, `$setElementOrder`) express all other changes.

use serde_json::{Map, Value};

use crate::schema::{List, Node, Shape, Strategy};

/// Merges a patch into `live`.
pub(crate) fn patch(live: &Value, patch: &Value, node: &Node) -> Value {
    match (live, patch) {
        (Value::Object(live), Value::Object(patch)) => object(live, patch, Some(node)),
        (_, patch) => patch.clone(),
    }
}

fn object(live: &Map<String, Value>, patch: &Map<String, Value>, node: Option<&Node>) -> Value {
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => return clean(&Value::Object(patch.clone())),
        Some("delete") => return Value::Null,
        _ => {}
    }
    let mut out = live.clone();
    if let Some(keys) = patch.get("$retainKeys").and_then(Value::as_array) {
        out.retain(|name, _| keys.iter().any(|key| key == name));
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(Value::Array(items)) = out.get_mut(list) {
                items.retain(|item| !gone.contains(item));
            }
        }
        if name.starts_with('$') {
            continue;
        }
        let field = node.and_then(|node| node.field(name)).map(|field| &**field);
        let merged = match (out.get(name), value) {
            (_, Value::Null) => Value::Null,
            (Some(Value::Object(live)), Value::Object(patch)) => object(live, patch, field),
            (None, Value::Object(patch)) => object(&Map::new(), patch, field),
            (live, Value::Array(items)) => {
                let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let order = patch.get(&format!("$setElementOrder/{name}")).and_then(Value::as_array);
                match field.map(|field| &field.shape) {
                    Some(Shape::List(list)) if list.strategic != Strategy::Replace => {
                        Value::Array(list_items(live, items, order.map(Vec::as_slice), list))
                    }
                    _ => Value::Array(items.iter().map(clean).collect()),
                }
            }
            (_, value) => value.clone(),
        };
        if merged.is_null() {
            out.remove(name);
        } else {
            out.insert(name.clone(), merged);
        }
    }
    Value::Object(out)
}

fn list_items(live: &[Value], patch: &[Value], order: Option<&[Value]>, list: &List) -> Vec<Value> {
    if patch.iter().any(|item| item["$patch"] == "replace" && item.as_object().is_some_and(|item| item.len() == 1)) {
        return patch.iter().filter(|item| item["$patch"] != "replace").map(clean).collect();
    }
    let Strategy::MergeBy(key) = &list.strategic else {
        let mut out = live.to_vec();
        out.extend(patch.iter().filter(|item| !live.contains(item)).cloned());
        return sort(out, order, live, Value::clone);
    };
    let mut out = live.to_vec();
    for item in patch {
        let found = out.iter().position(|live| live.get(key).is_some() && live.get(key) == item.get(key));
        match (found, item["$patch"].as_str(), item) {
            (Some(at), Some("delete"), _) => drop(out.remove(at)),
            (None, Some("delete"), _) => {}
            (Some(at), _, Value::Object(change)) => {
                let empty = Map::new();
                out[at] = object(out[at].as_object().unwrap_or(&empty), change, Some(&list.item));
            }
            (None, _, Value::Object(change)) => out.push(object(&Map::new(), change, Some(&list.item))),
            (_, _, other) => out.push(other.clone()),
        }
    }
    let order = match order {
        Some(order) => Some(order.to_vec()),
        // Without a directive about the order, use the order of the items in the patch.
        None => Some(patch.to_vec()),
    };
    sort(out, order.as_deref(), live, |item| item.get(key).cloned().unwrap_or(Value::Null))
}

/// Sorts items. Items in the list `order` get the order of this list. The other items keep their own order. Such an
/// item comes before an item in `order` only if the live list has the same order.
fn sort(items: Vec<Value>, order: Option<&[Value]>, live: &[Value], identity: impl Fn(&Value) -> Value) -> Vec<Value> {
    let Some(order) = order else { return items };
    let rank = |item: &Value| order.iter().position(|wanted| identity(wanted) == identity(item));
    let (mut ranked, others): (Vec<Value>, Vec<Value>) = items.into_iter().partition(|item| rank(item).is_some());
    ranked.sort_by_key(|item| rank(item));
    let place = |item: &Value| live.iter().position(|known| identity(known) == identity(item));
    let mut out: Vec<Value> = Vec::new();
    let mut others = others.into_iter().peekable();
    for item in ranked {
        while let Some(other) = others.peek() {
            if place(&item).is_some_and(|at| place(other).is_some_and(|other| other < at)) {
                out.extend(others.next());
            } else {
                break;
            }
        }
        out.push(item);
    }
    out.extend(others);
    out
}

/// Returns a value without directives and nulls.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .filter(|(name, value)| !name.starts_with('$') && !value.is_null())
            .map(|(name, value)| (name.clone(), clean(value)))
            .collect(),
        Value::Array(items) => items.iter().map(clean).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::definitions;
    use serde_json::json;

    fn pod_spec(live: &Value, change: &Value) -> Value {
        patch(live, change, &definitions::read("io.k8s.api.core.v1.PodSpec"))
    }

    #[test]
    fn containers_and_their_environment_merge_by_name() {
        let live = json!({"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}]});
        let change = json!({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]});
        let merged = pod_spec(&live, &change);
        assert_eq!(merged["containers"][0]["image"], "1");
        let names: Vec<&Value> =
            merged["containers"][0]["env"].as_array().unwrap().iter().map(|e| &e["name"]).collect();
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn directives_delete_replace_and_order() {
        let live = json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "1"}, "tolerations": [{"key": "k"}]});
        let change = json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "c"}],
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}], "nodeSelector": {"x": null, "y": "2"}, "tolerations": []});
        let merged = pod_spec(&live, &change);
        assert_eq!(
            merged,
            json!({"containers": [{"name": "c"}, {"name": "b"}], "nodeSelector": {"y": "2"}, "tolerations": []})
        );
    }
}
