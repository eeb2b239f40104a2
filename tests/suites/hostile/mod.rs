//! Tests that the policies answer every object, whatever it contains. The answer must be a plan that passes the guard
//! and fits Kubernetes' types, or a refusal that names a path. The tests ask native policies about many objects, and
//! policies in a sandbox about fewer objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../guest-policies/sdk/tests/support/anything.rs"]
mod anything;
mod costs;
mod large;
mod open;
mod panics;

use std::sync::LazyLock;

use anything::anything;
use kaos_tests::hostile::{Subject, places, subjects, told};
use kaos_tests::policies;
use proptest::prelude::*;
use serde_json::{Value, json};

static NATIVE: LazyLock<Vec<Subject>> = LazyLock::new(|| subjects(&policies::native().unwrap()).unwrap());
static SANDBOXED: LazyLock<Vec<Subject>> = LazyLock::new(|| subjects(&policies::wasm().unwrap()).unwrap());

const WORDS: [&str; 4] = ["Proxy", "Hosted", "python-string", "pi"];

/// Generates a change: an index of a sample, an index of a path in this sample, and the new value at this path.
fn change() -> impl Strategy<Value = (prop::sample::Index, prop::sample::Index, Value)> {
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), anything(&WORDS))
}

fn answered(subjects: &[Subject], (which, place, value): (prop::sample::Index, prop::sample::Index, Value)) {
    let subject = which.get(subjects);
    let mut all = places(&subject.object);
    all.retain(|path| path[0] == "spec");
    let path = place.get(&all);
    told(subject.answers_with(path, value.clone()), path, &value).map_err(|error| format!("{error:#}")).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_in_any_field_is_answered_natively(change in change()) {
        answered(&NATIVE, change);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_in_any_field_is_answered_in_the_sandbox(change in change()) {
        answered(&SANDBOXED, change);
    }
}

/// Returns the largest sample of each kind.
fn one_of_each_kind(subjects: &[Subject]) -> Vec<&Subject> {
    let said = |subject: &&Subject| subject.object.to_string().len();
    let kinds = ["Agent", "MCPServer", "MemoryStore", "ModelAPI"];
    let of = |kind: &str| subjects.iter().filter(|subject| subject.object["kind"] == kind).max_by_key(said);
    kinds.map(|kind| of(kind).unwrap_or_else(|| panic!("no sample of {kind} becomes a plan"))).into()
}

#[test]
fn every_field_of_a_wrong_type_is_answered() {
    let mut wrong = Vec::new();
    for subject in one_of_each_kind(&NATIVE) {
        for path in places(&subject.object["spec"]) {
            let path = [vec!["spec".to_owned()], path].concat();
            for value in [json!(null), json!(1.5), json!("text"), json!([1]), json!({"a": 1})] {
                if let Err(error) = told(subject.answers_with(&path, value.clone()), &path, &value) {
                    wrong.push(format!("{} {error:#}", subject.object["kind"]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn values_that_no_pod_can_have_are_refused_at_the_users_field() {
    let cases = [
        ("/spec/podSpec/volumes", json!("x"), "spec.podSpec.volumes"),
        ("/spec/podSpec/containers/0/resources", json!(3), "spec.podSpec.containers[0].resources"),
        ("/spec/podSpec/tolerations/0/key", json!(3), "spec.podSpec.tolerations[0].key"),
        ("/spec/podSpec/nodeSelector", json!(["a"]), "spec.podSpec.nodeSelector"),
        ("/spec/podSpec/terminationGracePeriodSeconds", json!("5"), "spec.podSpec.terminationGracePeriodSeconds"),
        ("/spec/container/resources", json!(3), "spec.container.resources"),
        ("/spec/container/resources/limits/memory", json!([1]), "spec.container.resources.limits.memory"),
        ("/spec/container/volumeMounts/0/readOnly", json!("yes"), "spec.container.volumeMounts[0].readOnly"),
        ("/spec/container/args", json!("--fast"), "spec.container.args"),
        ("/spec/container/command/0", json!(1), "spec.container.command[0]"),
    ];
    // Leave out AccessGrants and AuthorizationPolicies, because they have no pods.
    let is_without = |kind: &Value| kind == "AccessGrant" || kind == "AuthorizationPolicy";
    for subject in NATIVE.iter().filter(|subject| !is_without(&subject.object["kind"])) {
        // A MemoryStore has no `podSpec`.
        let has_pod_spec = subject.object["kind"] != "MemoryStore";
        for (pointer, value, path) in cases.iter().filter(|it| has_pod_spec || !it.2.starts_with("spec.podSpec")) {
            let mut object = subject.object.clone();
            *object.pointer_mut(pointer).unwrap() = value.clone();
            let told = subject.refusal(&object);
            assert!(told.iter().any(|it| it.path == *path), "{}: {path}: {told:?}", subject.object["kind"]);
        }
    }
}
