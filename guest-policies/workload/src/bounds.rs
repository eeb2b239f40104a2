//! Limits the size of an object. The policy refuses a larger object before it does expensive work. The refusal gives
//! the path of the field that is too large.
//!
//! A pass has limits for fuel and memory. An oversized object would exceed these limits during the pass, and the host
//! would report a failure of the policy. The refusal tells the user the field, its size, the limit, and how to fix the
//! object. If an object is too large to read, the host itself refuses it.

use alloc::vec::Vec;
use kaos_policy_sdk::types::Refusal;
use kaos_policy_sdk::{Object, refusal};
use serde_json::Value;

/// The path of a list in an object, and the maximum number of entries in this list.
pub type List = (&'static [&'static str], usize);

/// The lists that every kind has. The host also limits the number of containers, including the policy's containers.
const EVERYWHERE: [List; 4] = [
    (&["spec", "container", "env"], 12_000),
    (&["spec", "podSpec", "containers"], 100),
    (&["spec", "podSpec", "initContainers"], 100),
    (&["spec", "podSpec", "volumes"], 2_000),
];

/// The maximum size of one file in a ConfigMap, in bytes. A ConfigMap can contain one mebibyte in total.
const FILE: usize = 1_000_000;

/// Refuses an object with a list that has more entries than a pass can process. `lists` contains the limits for lists
/// that only this kind has.
pub fn check(object: &Object, lists: &[List]) -> Result<(), Refusal> {
    lists.iter().chain(&EVERYWHERE).try_for_each(|(path, most)| {
        let count = object.at(path).and_then(Value::as_array).map_or(0, Vec::len);
        let remedy = "split the object, or move long content to ConfigMaps or Secrets";
        within(&path.join("."), count, "entries", *most, remedy)
    })
}

/// Refuses a file that is too large for a ConfigMap.
pub fn check_file(path: &str, text: &str) -> Result<(), Refusal> {
    within(path, text.len(), "bytes", FILE, "a ConfigMap cannot contain more; make the file shorter")
}

/// Refuses a `count` at `path` that is larger than `most`.
pub fn within(path: &str, count: usize, what: &str, most: usize, remedy: &str) -> Result<(), Refusal> {
    if count <= most {
        return Ok(());
    }
    Err(refusal::invalid(path, format!("has {count} {what}, but the limit is {most}: {remedy}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(spec: &Value) -> Option<(String, String)> {
        match check(&Object::new(json!({"spec": spec})), &[(&["spec", "models"], 3)]) {
            Ok(()) => None,
            Err(Refusal::Invalid(mut wrong)) => wrong.pop().map(|wrong| (wrong.path, wrong.message)),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn variables(count: usize) -> Value {
        (0..count).map(|n| json!({"name": format!("V{n}"), "value": "v"})).collect()
    }

    #[test]
    fn ten_thousand_variables_pass_and_a_longer_list_is_refused_by_name() {
        assert_eq!(refused(&json!({"container": {"env": variables(10_000)}})), None);
        let (path, message) = refused(&json!({"container": {"env": variables(12_001)}, "a": 1})).unwrap();
        assert_eq!(path, "spec.container.env");
        assert!(message.starts_with("has 12001 entries, but the limit is 12000: "), "{message}");
    }

    #[test]
    fn a_list_of_more_containers_than_a_pod_may_have_is_named() {
        let many = |count: usize| (0..count).map(|n| json!({"name": format!("c{n}"), "image": "i"})).collect::<Value>();
        assert_eq!(refused(&json!({"podSpec": {"containers": many(100), "initContainers": many(100)}})), None);
        let (path, message) =
            refused(&json!({"podSpec": {"containers": many(50), "initContainers": many(101)}})).unwrap();
        assert_eq!(path, "spec.podSpec.initContainers");
        assert!(message.starts_with("has 101 entries, but the limit is 100: "), "{message}");
    }

    #[test]
    fn the_lists_of_a_kind_have_limits_of_their_own() {
        assert_eq!(refused(&json!({"models": ["a", "b", "c"]})), None);
        let (path, message) = refused(&json!({"models": ["a", "b", "c", "d"]})).unwrap();
        assert_eq!(path, "spec.models");
        assert!(message.starts_with("has 4 entries, but the limit is 3: "), "{message}");
    }

    #[test]
    fn absent_lists_are_within_the_limits() {
        assert_eq!(check(&Object::new(json!({})), &[]), Ok(()));
        for spec in [json!(null), json!("text"), json!({"podSpec": {"containers": 5}})] {
            assert_eq!(refused(&spec), None);
        }
    }
}
