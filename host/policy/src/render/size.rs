//! How much an object may say before any policy is asked about it, or shown it.
//!
//! To read an object is a part of a pass that no policy can spare, and what a pass may cost is bounded: an object that
//! takes longer to read would end it half-way, as if the policy were broken. Here it is the user who is told: where, how
//! much there is, how much there may be, and what to do. Policies have limits of their own on what they work on.

use serde_json::{Value, json};

use crate::{
    contract::Violation,
    guard::{Step, written},
};

/// Values in an object: texts, numbers, lists and objects. Ten thousand variables are thirty thousand.
const VALUES: usize = 40_000;
/// Fields of one object within it.
const FIELDS: usize = 10_000;

/// Refuses an object that says too much, and names the part that does.
pub(super) fn check(object: &Value) -> Result<(), Violation> {
    let count = values(object);
    if most_fields(object) > FIELDS
        && let Some((path, part)) = widest(object)
    {
        return Err(too_much(&path, fields(part), "fields", FIELDS));
    }
    if count > VALUES {
        let (path, part) = heaviest(object, count);
        return Err(too_much(&path, values(part), "values", VALUES));
    }
    Ok(())
}

/// Who an object is, and nothing of what it says.
pub(super) fn name_alone(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "generation": metadata["generation"],
        },
    })
}

fn too_much(path: &[Step], count: usize, what: &str, most: usize) -> Violation {
    let remedy = "divide the object, or keep what is long in ConfigMaps or Secrets";
    Violation { path: written(path), message: format!("{count} {what} are too many, at most {most}: {remedy}") }
}

fn below(value: &Value) -> Vec<(Step, &Value)> {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (Step::Name(name.clone()), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (Step::Index(at), value)).collect(),
        _ => Vec::new(),
    }
}

/// How many values there are in one, itself among them.
pub(super) fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(fields) => fields.values().map(values).sum(),
        _ => 0,
    }
}

fn fields(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

fn most_fields(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(most_fields).max(),
        Value::Object(fields) => fields.values().map(most_fields).max(),
        _ => None,
    };
    below.unwrap_or_default().max(fields(value))
}

/// The first part that has too many fields.
fn widest(value: &Value) -> Option<(Vec<Step>, &Value)> {
    if fields(value) > FIELDS {
        return Some((Vec::new(), value));
    }
    below(value).into_iter().find_map(|(step, value)| {
        let (mut path, found) = widest(value)?;
        path.insert(0, step);
        Some((path, found))
    })
}

/// The innermost part that has more than half of all values.
fn heaviest(object: &Value, count: usize) -> (Vec<Step>, &Value) {
    let (mut path, mut here) = (Vec::new(), object);
    while let Some((step, value)) = below(here).into_iter().find(|(_, value)| values(value) > count / 2) {
        path.push(step);
        here = value;
    }
    (path, here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(spec: &Value) -> Option<(String, String)> {
        let violation = check(&json!({"metadata": {"name": "a"}, "spec": spec})).err()?;
        Some((violation.path, violation.message))
    }

    fn variables(count: usize) -> Value {
        (0..count).map(|n| json!({"name": format!("V{n}"), "value": "v"})).collect()
    }

    #[test]
    fn ten_thousand_variables_are_not_too_many_and_the_list_of_more_is_named() {
        assert_eq!(refused(&json!({"container": {"env": variables(10_000)}})), None);
        let (path, message) = refused(&json!({"podSpec": {"containers": [{"env": variables(14_000)}]}})).unwrap();
        assert_eq!(path, "spec.podSpec.containers[0].env");
        assert!(message.starts_with("42001 values are too many, at most 40000: "), "{message}");
        let (path, _) = refused(&json!({"a": variables(7_000), "b": variables(7_000)})).unwrap();
        assert_eq!(path, "spec", "what is spread is named by what has it all");
    }

    #[test]
    fn an_object_of_very_many_fields_is_named() {
        let fields: Value = (0..10_001).map(|n| (format!("f{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        let (path, message) = refused(&json!({"list": [0, {"labels": fields}]})).unwrap();
        assert_eq!(path, "spec.list[1].labels");
        assert!(message.starts_with("10001 fields are too many, at most 10000: "), "{message}");
    }

    #[test]
    fn of_an_object_that_says_too_much_its_name_is_left() {
        let object =
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "labels": {}}, "spec": {"a": 1}});
        let left = name_alone(&object);
        assert_eq!((&left["kind"], &left["metadata"]["name"], &left["spec"]), (&json!("K"), &json!("a"), &json!(null)));
    }
}
