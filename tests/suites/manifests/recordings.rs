//! Repeats the requests of the embedded cluster's recordings on a real API server, and compares the answers with the
//! recordings. With `UPDATE_GOLDEN=1`, writes new recordings instead.

#[path = "../../../host/cluster/tests/recorded/normal.rs"]
mod normal;
mod schemas;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use http::{HeaderMap, Request};
use kaos_tests::control_plane::{ControlPlane, Extent};
use kaos_tests::harness::{World, samples};
use kube::Client;
use kube::client::Body;
use serde_json::{Map, Value, json};

use normal::{content_type, normal, without_hash};

/// Returns the folder of the crate that contains the embedded cluster.
fn crate_of_the_cluster() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/cluster")
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes JSON in the form of the recordings: one space per level, keys sorted.
fn written(value: &Value) -> String {
    let mut text = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    serde::Serialize::serialize(value, &mut serde_json::Serializer::with_formatter(&mut text, format)).unwrap();
    String::from_utf8(text).unwrap() + "\n"
}

/// Sends the request of a step. Returns the server's response unchanged.
async fn send(client: &Client, step: &Value) -> Value {
    let (verb, path) = step["do"].as_object().unwrap().iter().next().unwrap();
    let (method, content_type) = content_type(verb);
    // Set a user agent: if a request names no field manager, the server uses the first word of the user agent as the
    // field manager.
    let mut request = Request::builder().method(method).uri(path.as_str().unwrap()).header("user-agent", "recorder");
    let body = step.get("body").map(Value::to_string);
    if body.is_some() {
        request = request.header("content-type", content_type);
    }
    let request = request.body(Body::from(body.unwrap_or_default().into_bytes())).unwrap();
    let response = client.send(request).await.unwrap();
    let (head, body) = response.into_parts();
    let text = String::from_utf8(body.collect_bytes().await.unwrap().to_vec()).unwrap();
    let mut answer = json!({"code": head.status.as_u16(), "body": serde_json::from_str(&text).unwrap_or(json!(text))});
    let warnings = warnings(&head.headers);
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
    answer
}

fn warnings(headers: &HeaderMap) -> Vec<&str> {
    headers.get_all("warning").iter().map(|warning| warning.to_str().unwrap()).collect()
}

/// Waits until the server serves the CustomResourceDefinition that a step created.
async fn until_established(client: &Client, definition: &str) {
    let world = World::over(client.clone(), "default");
    let at = format!("CustomResourceDefinition/{definition}");
    world.until("the definition is served", &at, |now| has_condition(now, |it| it["type"] == "Established")).await;
}

/// Returns whether an object of a built-in kind has a true condition that `is_it` accepts. Does not compare
/// generations, because conditions of built-in kinds contain no generation.
fn has_condition(object: &Value, is_it: impl Fn(&Value) -> bool) -> bool {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|condition| condition["status"] == "True" && is_it(condition))
}

/// Sends the requests of all scenarios. Returns the server's answers for each scenario.
async fn play(client: &Client, scenarios: &[Value]) -> Value {
    let mut answers = Map::new();
    for scenario in scenarios {
        let mut recorded = Vec::new();
        for step in scenario["steps"].as_array().unwrap() {
            recorded.push(send(client, step).await);
            if step["wait"] == true {
                until_established(client, step["body"]["metadata"]["name"].as_str().unwrap()).await;
            }
        }
        answers.insert(scenario["name"].as_str().unwrap().to_owned(), recorded.into());
    }
    answers.into()
}

/// Sorts the managed fields by manager. The server sorts the managed fields by the time of their last write, in whole
/// seconds. So on a slow machine, their order may differ.
fn with_sorted_managers(mut answer: Value) -> Value {
    let sort = |object: &mut Value| {
        if let Some(managers) = object["metadata"]["managedFields"].as_array_mut() {
            managers.sort_by_key(Value::to_string);
        }
    };
    if let Some(items) = answer["body"].get_mut("items").and_then(Value::as_array_mut) {
        items.iter_mut().for_each(sort);
    } else if answer["body"].is_object() {
        sort(&mut answer["body"]);
    }
    answer
}

/// Compares the answers to each step with the stored answers. Ignores the order of managed fields, and values that
/// differ between runs.
fn differences(scenarios: &[Value], stored: &Value, answers: &Value) -> String {
    let mut report = String::new();
    for scenario in scenarios {
        let name = scenario["name"].as_str().unwrap();
        for (at, step) in scenario["steps"].as_array().unwrap().iter().enumerate() {
            let [was, is] = [stored, answers].map(|all| with_sorted_managers(normal(&all[name][at])));
            for change in json_patch::diff(&was, &is).iter().take(8) {
                writeln!(report, "{name}, step {at}, {}: {change}", step["do"]).unwrap();
            }
        }
    }
    report
}

#[tokio::test]
async fn answers_and_schemas_of_the_embedded_cluster_are_those_of_this_api_server() {
    // Start no controllers, because only the recorded steps may write objects.
    let cluster = ControlPlane::of(Extent::Api).unwrap();
    let client = cluster.client().await.unwrap();
    let folder = crate_of_the_cluster();
    let scenarios: Vec<Value> = serde_saphyr::from_str(&read(&folder.join("tests/recorded/scenarios.yaml"))).unwrap();
    let answers = play(&client, &scenarios).await;
    let schemas = schemas::of(&client).await;
    let (answers_at, schemas_at) =
        (folder.join("tests/recorded/answers.json"), folder.join("schemas/definitions.json"));
    if is_update() {
        fs::write(answers_at, written(&answers)).unwrap();
        fs::write(schemas_at, schemas::written(&schemas)).unwrap();
        return;
    }
    let stored: Value = serde_json::from_str(&read(&answers_at)).unwrap();
    let report = differences(&scenarios, &stored, &answers);
    assert!(report.is_empty(), "answers differ from the recorded ones (UPDATE_GOLDEN=1 records them again):\n{report}");
    let stored: BTreeMap<String, Value> = serde_json::from_str(&read(&schemas_at)).unwrap();
    let names: BTreeSet<&String> = stored.keys().chain(schemas.keys()).collect();
    let other: Vec<_> = names.into_iter().filter(|name| stored.get(*name) != schemas.get(*name)).collect();
    assert!(other.is_empty(), "schemas differ from the recorded ones (UPDATE_GOLDEN=1 records them again): {other:?}");
}

#[tokio::test]
async fn a_ready_deployment_of_the_embedded_cluster_is_that_of_this_cluster() {
    let cluster = ControlPlane::start().unwrap();
    let world = World::over(cluster.client().await.unwrap(), "t");
    world.apply(&samples::namespace("t")).await;
    let folder = crate_of_the_cluster().join("tests/recorded");
    let web: Value = serde_saphyr::from_str(&read(&folder.join("web.yaml"))).unwrap();
    world.apply_as("one", &web).await.unwrap();
    // Wait for this condition, because the controller reports the end of the rollout later than the last pod is ready.
    let is_complete = |now: &Value| has_condition(now, |it| it["reason"] == "NewReplicaSetAvailable");
    let deployment = world.until("the rollout is complete", "Deployment/web", is_complete).await;
    let set = world.owned("Deployment/web", "ReplicaSet").await.remove(0);
    let record = json!({"deployment": deployment, "replicaset": set});
    let at = folder.join("ready.json");
    if is_update() {
        fs::write(at, written(&record)).unwrap();
        return;
    }
    let stored: Value = serde_json::from_str(&read(&at)).unwrap();
    for part in ["deployment", "replicaset"] {
        let (was, is) = (without_hash(&stored[part]), without_hash(&record[part]));
        assert!(
            was == is,
            "{part} differs from the recorded one (UPDATE_GOLDEN=1 records it again):\n{:#}",
            json_patch::diff(&was, &is)
        );
    }
}
