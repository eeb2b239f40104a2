//! Compares the embedded cluster with a real API server: sends the steps of `recorded/scenarios.yaml`, and compares the
//! answers with `recorded/answers.json`. Values that cannot be equal (UIDs, times, revisions, addresses, the order of a
//! Go map) are masked on both sides.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use std::{collections::BTreeMap, fmt::Write as _};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kaos_cluster::{Cluster, ClusterService, TokioClock};
use serde_json::{Value, json};
use tower_service::Service as _;

fn content_type(verb: &str) -> (&'static str, &'static str) {
    match verb {
        "apply" => ("PATCH", "application/apply-patch+yaml"),
        "merge" => ("PATCH", "application/merge-patch+json"),
        "json" => ("PATCH", "application/json-patch+json"),
        "strategic" => ("PATCH", "application/strategic-merge-patch+json"),
        "get" => ("GET", ""),
        "post" => ("POST", "application/json"),
        "put" => ("PUT", "application/json"),
        "delete" => ("DELETE", "application/json"),
        other => panic!("unknown verb {other}"),
    }
}

async fn send(service: &mut ClusterService, step: &Value) -> Value {
    let (verb, path) = step["do"].as_object().unwrap().iter().next().unwrap();
    let (method, content_type) = content_type(verb);
    let mut request = Request::builder().method(method).uri(path.as_str().unwrap()).header("user-agent", "recorder");
    let body = step.get("body").map(Value::to_string);
    if body.is_some() {
        request = request.header("content-type", content_type);
    }
    let request = request.body(Full::new(Bytes::from(body.unwrap_or_default()))).unwrap();
    let response = service.call(request).await.unwrap();
    let code = response.status().as_u16();
    let warnings: Vec<String> =
        response.headers().get_all("warning").iter().map(|warning| warning.to_str().unwrap().to_owned()).collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let mut answer = json!({"code": code, "body": serde_json::from_str(&text).unwrap_or(json!(text))});
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
    answer
}

/// Masks values that differ between runs.
fn mask(value: &mut Value) {
    const VARYING: [&str; 9] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "time",
        "clusterIP",
        "lastTransitionTime",
        "lastUpdateTime",
        "continue",
    ];
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                if VARYING.contains(&name.as_str()) && value.is_string() {
                    *value = json!("*");
                } else if name == "clusterIPs" && value.is_array() {
                    *value = json!(["*"]);
                } else if name != "fieldsV1" {
                    mask(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

/// Returns an answer in comparable form.
fn normal(answer: &Value) -> Value {
    let mut answer = answer.clone();
    mask(&mut answer);
    let body = &mut answer["body"];
    if body["kind"] == "Status" {
        if let Some(causes) = body["details"]["causes"].as_array_mut() {
            causes.sort_by_key(Value::to_string);
            causes.dedup();
        }
        let message = body["message"].as_str().unwrap_or_default().to_owned();
        // The message repeats the causes in the order of a Go map, so remove them.
        if let Some((head, _)) = message.split_once("is invalid: ") {
            body["message"] = json!(head);
        } else if let Some((head, fields)) = message.split_once("strict decoding error: ") {
            let mut fields: Vec<&str> = fields.split(", ").collect();
            fields.sort_unstable();
            body["message"] = json!(format!("{head}{}", fields.join(", ")));
        } else if let Some((head, tail)) = message.split_once("in record (") {
            body["message"] = json!(format!("{head}{}", tail.split_once(')').unwrap().1));
        }
    }
    answer
}

// Managers are sorted by the second of their last write. All recorded writes happened within one second, and all writes
// here do too, because time is paused.
#[tokio::test(start_paused = true)]
async fn answers_equal_those_of_a_real_server() {
    let scenarios: Vec<Value> = serde_saphyr::from_str(include_str!("recorded/scenarios.yaml")).unwrap();
    let recorded: BTreeMap<String, Vec<Value>> = serde_json::from_str(include_str!("recorded/answers.json")).unwrap();
    let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::builder().clock(clock).without_controllers().start();
    let mut service = cluster.service();
    let mut report = String::new();
    for scenario in &scenarios {
        let name = scenario["name"].as_str().unwrap();
        for (at, step) in scenario["steps"].as_array().unwrap().iter().enumerate() {
            let ours = normal(&send(&mut service, step).await);
            cluster.settled().await;
            let theirs = normal(&recorded[name][at]);
            if ours != theirs {
                writeln!(report, "\n{name}, step {at}: {}", step["do"]).unwrap();
                for change in json_patch::diff(&theirs, &ours).iter().take(8) {
                    let path = change.path();
                    let was = theirs.pointer(path.as_str()).unwrap_or(&Value::Null);
                    writeln!(report, "  {change}\n    was {was}").unwrap();
                }
            }
        }
    }
    assert!(report.is_empty(), "answers that differ (patches lead from the recorded answer to ours):{report}");
}

/// Removes the hash from the names of `ReplicaSet`s, because implementations compute different hashes.
fn without_hash(value: &Value) -> Value {
    let hash = value["metadata"]["labels"]["pod-template-hash"].as_str().map(str::to_owned).or_else(|| {
        let message = value["status"]["conditions"][1]["message"].as_str()?;
        Some(message.split('"').nth(1)?.trim_start_matches("web-").to_owned())
    });
    let text = value.to_string().replace(&hash.unwrap(), "<hash>");
    let owner = value["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or("<owner>");
    let mut value = serde_json::from_str(&text.replace(owner, "<owner>")).unwrap();
    mask(&mut value);
    value
}

#[tokio::test]
async fn a_deployment_that_became_ready_equals_a_real_one() {
    let recorded: Value = serde_json::from_str(include_str!("recorded/ready.json")).unwrap();
    let web: Value = serde_saphyr::from_str(include_str!("recorded/web.yaml")).unwrap();
    let cluster = Cluster::start();
    let mut service = cluster.service();
    send(&mut service, &json!({"do": {"post": "/api/v1/namespaces"}, "body": {"metadata": {"name": "t"}}})).await;
    cluster.settled().await;
    let path = "/apis/apps/v1/namespaces/t/deployments/web?fieldManager=one";
    assert_eq!(send(&mut service, &json!({"do": {"apply": path}, "body": web})).await["code"], 201);
    cluster.settled().await;
    let deployment = cluster.object("apps", "deployments", "t", "web").unwrap();
    assert_eq!(without_hash(&deployment), without_hash(&recorded["deployment"]));
    let set = cluster.objects("apps", "replicasets").remove(0);
    assert_eq!(without_hash(&set), without_hash(&recorded["replicaset"]));
}
