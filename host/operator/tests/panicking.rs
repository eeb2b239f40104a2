//! Tests that commands, conditions and the log report the message and the position of a policy's panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs::File,
    time::{Duration, Instant},
};

use kaos_operator::package::{Package, PolicyCode};
use kaos_policy::manifest::PolicyFile;
use serde_json::{Value, json};

use crate::{
    overlay::example,
    stage::{HOME, Process, Stage},
    support::{Folder, run},
};

/// The two texts that each of them must contain: the position and the message of the panic.
const TOLD: [&str; 2] =
    ["translate trapped: panicked at sdk/examples/panics/policy.rs:", "the len is 0 but the index is 0"];

fn is_told(text: &str) -> bool {
    TOLD.iter().all(|told| text.contains(told))
}

fn assert_told(text: &str) {
    assert!(is_told(text), "{text}");
}

/// Adds the CRD of the kind that the panicking policy claims, and an object of this kind.
pub(crate) async fn fuse(stage: &Stage) {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fuses.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
        "names": {"plural": "fuses", "singular": "fuse", "kind": "Fuse", "listKind": "FuseList"}, "versions": [version]}});
    stage.cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
    stage.cluster.settled().await;
    let metadata = json!({"name": "f", "namespace": "team", "generation": 1});
    let object =
        json!({"apiVersion": "example.org/v1", "kind": "Fuse", "metadata": metadata, "spec": {"does": "indexes"}});
    stage.cluster.plant("example.org", "fuses", object);
}

#[test]
fn check_reports_a_panic_on_a_sample_with_message_and_place() {
    let folder = Folder::new("panicking-check");
    let component = example(&folder, "panics");
    assert_eq!(run(["policy", "check", &component], "").code, 0);
    folder.write("policy.yaml", "name: panics\nsettings: {does: indexes}\n");
    let ran = run(["policy", "check", &component], "");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert_told(&ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_reports_a_panic_with_message_and_place() {
    let stage = Stage::start("panicking-explain").await;
    fuse(&stage).await;
    let component = std::fs::read(example(&stage.folder, "panics")).unwrap();
    let (name, namespace, file) = ("fuses".into(), HOME.into(), PolicyFile::default());
    let package = Package { name, namespace, file, component: Some(PolicyCode::component(component)) };
    stage.revision("fuses-1", &package, 1, &json!({"state": "Active", "policy": "panics"}));
    let ran = stage.policy(&["explain", "fuse/f", "-n", "team"]).await;
    assert_told(&format!("{}{}", ran.stdout, ran.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn condition_and_log_have_the_message_and_the_place_of_a_panic() {
    let stage = Stage::start("panicking-run").await;
    fuse(&stage).await;
    let (component, log) = (example(&stage.folder, "panics"), stage.folder.write("log", ""));
    let _operator = Process::logging(&["--policy", &component], &stage, File::create(&log).unwrap());
    let condition = |object: &Value| {
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|condition| condition["type"] == "Accepted").unwrap_or_default()
    };
    let told = || {
        let object = stage.cluster.object("example.org", "fuses", "team", "f").unwrap();
        condition(&object)["message"].as_str().unwrap_or_default().to_owned()
    };
    let deadline = Instant::now() + Duration::from_mins(5);
    while !(is_told(&told()) && is_told(&std::fs::read_to_string(&log).unwrap())) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_told(&told());
    assert_told(&std::fs::read_to_string(&log).unwrap());
}
