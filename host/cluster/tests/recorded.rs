//! Compares the embedded cluster with a real API server: sends the steps of `recorded/scenarios.yaml`, and compares the
//! answers with `recorded/answers.json`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

mod normal;

use std::{collections::BTreeMap, fmt::Write as _};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kaos_cluster::{Cluster, ClusterService, TokioClock};
use serde_json::{Value, json};
use tower_service::Service as _;

use normal::{content_type, normal, without_hash};

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

// The server sorts managers by the time of their last write, in whole seconds. All recorded writes happened within one
// second. With paused time, the writes of this test also happen within one second.
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
    assert!(
        report.is_empty(),
        "some answers differ from the recorded answers; each patch turns a recorded answer into the embedded cluster's answer:{report}"
    );
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
