//! How much an object may say: more is refused with its place, before anything expensive is made of it.
//!
//! What a pass may cost is bounded, and an object that takes more would end it half-way, as if the policy were broken.
//! Here it is the user who is told: where, how much there is, how much there may be, and what to do. What is too much to
//! be read at all, the host refuses.

use alloc::vec::Vec;
use kaos_policy_sdk::types::Refusal;
use kaos_policy_sdk::{Object, refusal};
use serde_json::Value;

/// Where a list is, and how many entries it may have.
pub type List = (&'static [&'static str], usize);

/// What every kind has. The host bounds containers, too, those of the policy among them.
const EVERYWHERE: [List; 4] = [
    (&["spec", "container", "env"], 12_000),
    (&["spec", "podSpec", "containers"], 100),
    (&["spec", "podSpec", "initContainers"], 100),
    (&["spec", "podSpec", "volumes"], 2_000),
];

/// Bytes of a file in a ConfigMap, which has a mebibyte for everything.
const FILE: usize = 1_000_000;

/// Refuses an object whose lists have more entries than a pass can work on; `lists` are those of the kind.
pub fn check(object: &Object, lists: &[List]) -> Result<(), Refusal> {
    lists.iter().chain(&EVERYWHERE).try_for_each(|(path, most)| {
        let count = object.at(path).and_then(Value::as_array).map_or(0, Vec::len);
        let remedy = "divide the object, or keep what is long in ConfigMaps or Secrets";
        within(&path.join("."), count, "entries", *most, remedy)
    })
}

/// Refuses a file for a ConfigMap that holds no such file.
pub fn check_file(path: &str, text: &str) -> Result<(), Refusal> {
    within(path, text.len(), "bytes", FILE, "a ConfigMap holds no more; make it shorter")
}

/// Refuses `count` of something at `path` where there may be `most`.
pub fn within(path: &str, count: usize, what: &str, most: usize, remedy: &str) -> Result<(), Refusal> {
    if count <= most {
        return Ok(());
    }
    Err(refusal::invalid(path, format!("{count} {what} are too many, at most {most}: {remedy}")))
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
    fn ten_thousand_variables_are_not_too_many_and_the_list_of_more_is_named() {
        assert_eq!(refused(&json!({"container": {"env": variables(10_000)}})), None);
        let (path, message) = refused(&json!({"container": {"env": variables(12_001)}, "a": 1})).unwrap();
        assert_eq!(path, "spec.container.env");
        assert!(message.starts_with("12001 entries are too many, at most 12000: "), "{message}");
    }

    #[test]
    fn a_list_of_more_containers_than_a_pod_may_have_is_named() {
        let many = |count: usize| (0..count).map(|n| json!({"name": format!("c{n}"), "image": "i"})).collect::<Value>();
        assert_eq!(refused(&json!({"podSpec": {"containers": many(100), "initContainers": many(100)}})), None);
        let (path, message) =
            refused(&json!({"podSpec": {"containers": many(50), "initContainers": many(101)}})).unwrap();
        assert_eq!(path, "spec.podSpec.initContainers");
        assert!(message.starts_with("101 entries are too many, at most 100: "), "{message}");
    }

    #[test]
    fn the_lists_of_a_kind_have_limits_of_their_own() {
        assert_eq!(refused(&json!({"models": ["a", "b", "c"]})), None);
        let (path, message) = refused(&json!({"models": ["a", "b", "c", "d"]})).unwrap();
        assert_eq!(path, "spec.models");
        assert!(message.starts_with("4 entries are too many, at most 3: "), "{message}");
    }

    #[test]
    fn nothing_there_is_nothing_wrong() {
        assert_eq!(check(&Object::new(json!({})), &[]), Ok(()));
        for spec in [json!(null), json!("text"), json!({"podSpec": {"containers": 5}})] {
            assert_eq!(refused(&spec), None);
        }
    }
}
