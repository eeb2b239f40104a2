//! Tests overlays over a default policy, with the steps of an overlay's author: build the overlay for Wasm, convert it
//! to a component, check the component, and pass it to `render`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

use crate::support::{Folder, run};
use serde_json::{Value, json};

const OBJECTS: &str = "apiVersion: kaos.tools/v1alpha1
kind: ModelAPI
metadata: {name: llm}
spec: {mode: Proxy, proxyConfig: {models: ['*']}}
status: {phase: Ready, ready: true, endpoint: 'http://llm.example:8000'}
---
apiVersion: kaos.tools/v1alpha1
kind: Agent
metadata: {name: writer}
spec: {modelAPI: llm, model: gpt}
";

/// Builds the SDK's overlay `loglevel` into the component that an author would ship.
pub(crate) fn component(folder: &Folder) -> String {
    example(folder, "loglevel")
}

/// Builds an example of the SDK into the component that an author would ship.
pub(crate) fn example(folder: &Folder, name: &str) -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-policies");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-unknown-unknown"])
        .args(["--package", "kaos-policy-sdk", "--example", name, "--target-dir"])
        .arg(&target)
        .current_dir(workspace)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(built.success(), "{name} does not build: is the target wasm32-unknown-unknown installed?");
    let module = target.join(format!("wasm32-unknown-unknown/release/examples/{name}.wasm"));
    let component = format!("{}/{name}.wasm", folder.path());
    let ran = run(["policy", "build", &module.to_string_lossy(), "-o", &component], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    component
}

fn entries(more: &[&str]) -> Vec<Value> {
    let ran = run(["render", "-f", "-", "-o", "json"].iter().chain(more), OBJECTS);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json().as_array().expect("a list").clone()
}

/// Removes a variable from an object's entry, and returns the variable.
fn taken(entry: &mut Value, name: &str) -> Value {
    let list = entry["env"].as_array_mut().expect("a list");
    let at = list.iter().position(|variable| variable["name"] == name).expect("the variable is mapped");
    list.remove(at)
}

/// Removes the value of a variable from a manifest, and the hashes that depend on this value.
fn without(mut manifest: Value, name: &str) -> Value {
    let annotations = ["/metadata/annotations", "/spec/template/metadata/annotations"];
    for annotations in annotations {
        if let Some(annotations) = manifest.pointer_mut(annotations).and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !["kaos.tools/applied-digest", "kaos.tools/pod-spec-hash"].contains(&&**key));
        }
    }
    let containers = manifest.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for variable in containers.into_iter().flatten().filter_map(|it| it["env"].as_array_mut()).flatten() {
        if variable["name"] == name {
            variable["value"] = json!(null);
        }
    }
    manifest
}

#[test]
fn overlay_changes_only_its_variable() {
    let folder = Folder::new("overlay");
    let overlay = component(&folder);
    let checked = run(["policy", "check", &overlay], "");
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
    let (mut below, mut above) = (entries(&[]), entries(&["--policy", &overlay, "--set", "log-level.level=DEBUG"]));
    assert_eq!((below.len(), above.len()), (2, 2));
    assert_eq!(below[0], above[0], "an overlay changes only objects of its kind");

    let (was, is) = (taken(&mut below[1], "LOG_LEVEL"), taken(&mut above[1], "LOG_LEVEL"));
    assert_eq!((&was["value"], &is["value"]), (&json!("INFO"), &json!("DEBUG")));
    assert!(is["origin"].as_str().is_some_and(|origin| origin.contains("settings.level")), "{is}");
    assert_eq!(below[1]["env"], above[1]["env"]);
    let manifests = |entry: &Value| entry["manifests"].as_array().expect("a list").clone();
    let (was, is) = (manifests(&below[1]), manifests(&above[1]));
    assert_ne!(was, is);
    let plain = |manifests: Vec<Value>| manifests.into_iter().map(|it| without(it, "LOG_LEVEL")).collect::<Vec<_>>();
    assert_eq!(plain(was), plain(is));
}

#[test]
fn settings_for_an_overlay_are_checked_and_planned_with_it() {
    let folder = Folder::new("overlay-plan");
    let (overlay, objects) = (component(&folder), folder.write("objects.yaml", OBJECTS));
    let plan = |settings: &str, more: &[&str]| {
        let settings = folder.write("settings.yaml", settings);
        let plan = ["policy", "plan", "--settings", &settings, "--for", "log-level", "-f", &objects];
        run(plan.iter().copied().chain(more.iter().copied()), "")
    };
    let with = ["--policy", overlay.as_str()];
    let ran = plan("level: DEBUG\n", &with);
    assert!(ran.code == 2 && !ran.stderr.contains("is not a default policy"), "{}{}", ran.stdout, ran.stderr);
    let ran = plan("level: 3\n", &with);
    assert!(ran.code == 1 && ran.stderr.contains("settings.yaml, is 3, but"), "{}{}", ran.stdout, ran.stderr);
    let ran = plan("level: DEBUG\n", &[]);
    assert!(ran.code == 1 && ran.stderr.contains("there is no policy log-level"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn env_table_names_the_policy_whose_setting_gave_the_variable() {
    let folder = Folder::new("overlay-origins");
    let overlay = component(&folder);
    // Both the policy and the overlay have a setting whose name contains `level`.
    let ran = run(["render", "-f", "-", "--env", "--policy", &overlay, "--set", "log-level.level=DEBUG"], OBJECTS);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let from = |name: &str| ran.stdout.lines().rfind(|line| line.contains(name)).unwrap_or_default();
    assert!(from(" LOG_LEVEL ").ends_with("settings.level (policy log-level), --set"), "{}", ran.stdout);
    assert!(from(" AGENT_NAME ").ends_with(" (policy agent)"), "{}", ran.stdout);
}
