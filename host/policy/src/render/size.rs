//! Limits the size of an object before a policy sees it.
//!
//! The policy reads its object in every pass, and the fuel of a pass is limited. A very large object would use up the
//! fuel in the middle of the pass, and this would look like a failure of the policy. So the host checks the size first,
//! and the user gets a message with the path, the size, the limit and a remedy. A policy can have lower limits of its
//! own.

use serde_json::{Value, json};

use crate::{
    contract::{Answer, Found, Reference, Violation},
    origins::{PathStep, written},
    units::{bytes, count as grouped},
};

/// The maximum number of JSON values in a Kubernetes object: texts, numbers, lists and JSON objects. Ten thousand
/// variables are thirty thousand values.
const VALUES: usize = 40_000;
/// The maximum number of fields of one JSON object within a Kubernetes object.
const FIELDS: usize = 10_000;
/// The minimum size in bytes of an object that a message calls large. Ordinary objects have a few kilobytes.
const LARGE: usize = 64 << 10;

/// Refuses an object that is too large, and names the largest part.
pub(super) fn check(object: &Value) -> Result<(), Violation> {
    let count = values(object);
    if most_fields(object) > FIELDS
        && let Some((path, part)) = widest(object)
    {
        let (all, most) = (grouped(fields(part)), grouped(FIELDS));
        let message = format!("has {all} fields, but the limit is {most}: {REMEDY}");
        return Err(Violation { path: written(&path), message });
    }
    if count > VALUES {
        let (path, part) = heaviest(object, values);
        let (all, here) = (grouped(count), grouped(values(part)));
        let most = grouped(VALUES);
        let message = format!(
            "has {here} of the {all} values (texts, numbers, lists and objects) of the whole object, but the limit is \
             {most}: {REMEDY}"
        );
        return Err(Violation { path: written(&path), message });
    }
    Ok(())
}

const REMEDY: &str = "split the object, or move long content to ConfigMaps or Secrets";

/// Describes the largest part of the policy's input, with a remedy. Returns `None` if no text is large. `text` is the
/// object for which the policy answers, and `found` contains the other objects that the policy sees.
pub(super) fn largest(text: &str, found: &[Found]) -> Option<String> {
    let shown = found.iter().flat_map(|found| match &found.answer {
        Answer::Objects(objects) => objects.as_slice(),
        _ => &[],
    });
    let beside = shown.max_by_key(|text| text.len()).filter(|beside| beside.len() > text.len());
    let large = beside.map_or(text, String::as_str);
    if large.len() < LARGE {
        return None;
    }
    let object: Value = serde_json::from_str(large).ok()?;
    let (path, part) = heaviest(&object, weight);
    let (path, size, values) = (written(&path), bytes(part.to_string().len()), grouped(values(part)));
    if beside.is_none() {
        return Some(format!("{path} of the object has {size} in {values} values: make it shorter, or {REMEDY}"));
    }
    let on = Reference::of_object(&object);
    Some(format!("{path} of {on}, which the policy sees, has {size} in {values} values: make it shorter"))
}

/// Returns the approximate size of a value as text, in bytes.
fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + 4 + weight(value)).sum(),
        Value::String(text) => text.len() + 2,
        _ => 4,
    }
}

/// Returns a copy of an object with only its type and its identifying metadata.
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

fn below(value: &Value) -> Vec<(PathStep, &Value)> {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (PathStep::Name(name.clone()), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (PathStep::Index(at), value)).collect(),
        _ => Vec::new(),
    }
}

/// Returns the number of JSON values in a JSON value. The outermost value counts too.
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

/// Returns the first JSON object with too many fields, and its path. `None` if no JSON object has too many fields.
fn widest(value: &Value) -> Option<(Vec<PathStep>, &Value)> {
    if fields(value) > FIELDS {
        return Some((Vec::new(), value));
    }
    below(value).into_iter().find_map(|(step, value)| {
        let (mut path, found) = widest(value)?;
        path.insert(0, step);
        Some((path, found))
    })
}

/// Returns the innermost value whose weight is more than half of the weight of `object`. Also returns the value's path.
fn heaviest(object: &Value, weigh: fn(&Value) -> usize) -> (Vec<PathStep>, &Value) {
    let half = weigh(object) / 2;
    let (mut path, mut here) = (Vec::new(), object);
    while let Some((step, value)) = below(here).into_iter().find(|(_, value)| weigh(value) > half) {
        path.push(step);
        here = value;
    }
    (path, here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        digest::Digest,
        failure::{Failure, Verb},
        policy::PolicyId,
        render::PolicyFailure,
    };

    fn refused(spec: &Value) -> Option<(String, String)> {
        let violation = check(&json!({"metadata": {"name": "a"}, "spec": spec})).err()?;
        Some((violation.path, violation.message))
    }

    fn variables(count: usize) -> Value {
        (0..count).map(|n| json!({"name": format!("V{n}"), "value": "v"})).collect()
    }

    #[test]
    fn ten_thousand_variables_pass_and_a_longer_list_is_named() {
        assert_eq!(refused(&json!({"container": {"env": variables(10_000)}})), None);
        let (path, message) = refused(&json!({"podSpec": {"containers": [{"env": variables(14_000)}]}})).unwrap();
        assert_eq!(path, "spec.podSpec.containers[0].env");
        let told = "has 42,001 of the 42,008 values (texts, numbers, lists and objects) of the whole object, but the \
                    limit is 40,000: ";
        assert!(message.starts_with(told), "{message}");
        let (path, _) = refused(&json!({"a": variables(7_000), "b": variables(7_000)})).unwrap();
        assert_eq!(path, "spec", "two equal parts are named by the path above both");
    }

    #[test]
    fn an_object_with_too_many_fields_is_named() {
        let fields: Value = (0..10_001).map(|n| (format!("f{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        let (path, message) = refused(&json!({"list": [0, {"labels": fields}]})).unwrap();
        assert_eq!(path, "spec.list[1].labels");
        assert!(message.starts_with("has 10,001 fields, but the limit is 10,000: "), "{message}");
    }

    #[test]
    fn the_largest_part_of_the_policys_input_is_named_with_its_size() {
        let object = |env: usize| json!({"metadata": {"name": "a"}, "spec": {"container": {"env": variables(env)}}});
        assert_eq!(largest(&object(10).to_string(), &[]), None);
        let told = largest(&object(5_000).to_string(), &[]).unwrap();
        assert!(
            told.starts_with("spec.container.env of the object has 140.6 KiB in 15,001 values: make it shorter"),
            "{told}"
        );
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"},
            "data": {"long": "x".repeat(200 << 10), "short": "y"}});
        let found = [Found { id: "c".to_owned(), answer: Answer::Objects(vec![config.to_string()]) }];
        let told = largest(&object(10).to_string(), &found).unwrap();
        assert!(told.starts_with("data.long of ConfigMap n/c, which the policy sees, has 200.1 KiB"), "{told}");
    }

    #[test]
    fn only_the_name_is_left_of_an_object_that_is_too_large() {
        let object =
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "labels": {}}, "spec": {"a": 1}});
        let left = name_alone(&object);
        assert_eq!((&left["kind"], &left["metadata"]["name"], &left["spec"]), (&json!("K"), &json!("a"), &json!(null)));
    }

    #[test]
    fn only_a_failure_for_lack_of_room_names_the_largest_part() {
        let policy = PolicyId { name: "p".into(), version: "1.0.0".into(), digest: Digest::of(b"p") };
        let object = json!({"spec": {"env": variables(5_000)}}).to_string();
        let told = |failure| PolicyFailure::new(&policy, failure, &object, &[]).to_string();
        let lack = told(Failure::OutOfMemory { verb: Verb::MapEnv, at: None, wanted: 38_076_416, limit: 32 << 20 });
        assert!(lack.contains("variables, but a pass has 32 MiB: spec.env of the object has 140.6 KiB"), "{lack}");
        let other = told(Failure::NotUtf8 { verb: Verb::MapEnv });
        assert!(other.ends_with("the answer of map-env is not UTF-8"), "{other}");
    }
}
