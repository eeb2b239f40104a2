//! Tests names in arguments, in particular names of namespaces: an empty list in a flag must not mean all namespaces.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{binary, finish, run};
use serde_json::Value;

/// Returns the kinds and namespaces of the objects that `rbac` prints.
fn printed(namespaces: &str) -> Vec<(String, String)> {
    let ran = finish(binary().arg("rbac").env("WATCH_NAMESPACES", namespaces), "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let objects: Vec<Value> = serde_saphyr::from_multiple(&ran.stdout).expect("YAML");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    objects.iter().map(|object| (text(&object["kind"]), text(&object["metadata"]["namespace"]))).collect()
}

#[test]
fn empty_namespaces_flag_is_an_error_and_does_not_mean_all() {
    for verb in ["rbac", "release", "run"] {
        for named in ["", "a,,b", "Bad NS"] {
            let ran = run([verb, "--namespaces", named], "");
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{verb} {named:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("--namespaces"), "{verb} {named:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn namespaces_variable_may_be_empty_or_contain_spaces() {
    assert!(printed("").contains(&("ClusterRole".to_owned(), String::new())));
    let roles = printed("a, b");
    for namespace in ["a", "b"] {
        assert!(roles.contains(&("Role".to_owned(), namespace.to_owned())), "{roles:?}");
    }
    assert!(roles.iter().all(|(kind, _)| kind != "ClusterRole"), "{roles:?}");
}

#[test]
fn invalid_object_names_in_flags_are_refused() {
    for arguments in [&["rbac", "--name"][..], &["policy", "pack", "a.wasm", "--service-account"]] {
        let ran = run(arguments.iter().chain(&["bad name!"]), "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("not the name of an object"), "{arguments:?}: {}", ran.stderr);
    }
}
