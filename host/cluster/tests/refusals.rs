//! Tests requests that the server refuses. Also tests that no request crashes the server. If a real server also refuses
//! a request, the cluster answers with the message of the real server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use crate::support::{api_of, apply, code, config_maps, definition, install, start, widget, widgets};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kaos_cluster::Cluster;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tower_service::Service as _;

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";

/// Sends a request. Returns the status code and the body of the answer.
async fn send(cluster: &Cluster, method: &str, path: &str, content_type: &str, body: String) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let response = cluster.service().call(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Starts a cluster with one widget `w`. The schema of widgets allows any field.
async fn with_widget() -> Cluster {
    let (cluster, client) = start().await;
    install(&cluster, &client, &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).await;
    apply(&widgets(&client), "w", "one", widget("w", &json!({}))).await.unwrap();
    cluster
}

const WIDGET: &str = "/apis/test.io/v1/namespaces/t/widgets/w";

#[tokio::test(start_paused = true)]
async fn a_patch_that_nests_an_object_too_deeply_is_refused() {
    let cluster = with_widget().await;
    let copies = json!(vec![json!({"op": "copy", "from": "/spec", "path": "/spec/podSpec"}); 4000]);
    let (code, status) = send(&cluster, "PATCH", WIDGET, JSON_PATCH, copies.to_string()).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    assert!(status["message"].as_str().unwrap().contains("at most 100 levels"), "{status}");
    let tests = json!(vec![json!({"op": "test", "path": "/kind", "value": "Widget"}); 10_001]);
    let (code, status) = send(&cluster, "PATCH", WIDGET, JSON_PATCH, tests.to_string()).await;
    assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")));
    assert_eq!(send(&cluster, "GET", WIDGET, JSON, String::new()).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn an_object_has_a_hundred_levels_at_most() {
    let cluster = with_widget().await;
    let nested = |levels: usize| format!("{{\"spec\": {{\"a\": {}{}}}}}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(send(&cluster, "PATCH", WIDGET, MERGE, nested(98)).await.0, 200);
    for levels in [99, 110, 100_000] {
        let (code, status) = send(&cluster, "PATCH", WIDGET, MERGE, nested(levels)).await;
        assert_eq!(code, 400, "{levels}");
        assert_eq!(status["message"], "the object is nested too deep: it may have at most 100 levels");
    }
    assert_eq!(send(&cluster, "GET", WIDGET, JSON, String::new()).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_has_three_mebibytes_at_most() {
    let cluster = with_widget().await;
    let body = |length: usize| json!({"spec": {"a": "x".repeat(length)}}).to_string();
    assert_eq!(send(&cluster, "PATCH", WIDGET, MERGE, body(3_000_000)).await.0, 200);
    let (code, status) = send(&cluster, "PATCH", WIDGET, MERGE, body(3 << 20)).await;
    assert_eq!(code, 413);
    assert_eq!(status["message"], "Request entity is too large: limit is 3145728");
}

#[tokio::test(start_paused = true)]
async fn a_rule_with_nested_loops_is_refused_when_it_costs_too_much() {
    let (cluster, client) = start().await;
    let rule = "self.all(x, self.all(y, self.all(z, x + y + z < 9)))";
    let list = json!({"type": "array", "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": rule, "message": "too much"}]});
    install(&cluster, &client, &json!({"type": "object", "properties": {"l": list}})).await;
    let api = widgets(&client);
    apply(&api, "short", "one", widget("short", &json!({"l": vec![1; 10]}))).await.unwrap();
    let refused = apply(&api, "long", "one", widget("long", &json!({"l": vec![1; 400]}))).await.unwrap_err();
    assert!(refused.to_string().contains("call cost exceeds limit for rule"), "{refused}");
    assert_eq!(code::<()>(Err(refused)), 422);
}

#[tokio::test(start_paused = true)]
async fn invalid_numbers_and_selectors_are_refused() {
    let (cluster, client) = start().await;
    let list =
        async |query: &str| send(&cluster, "GET", &format!("/api/v1/configmaps?{query}"), JSON, String::new()).await;
    assert_eq!(list("watch=1&timeoutSeconds=9223372036854775807").await.0, 200);
    for query in ["watch=1&timeoutSeconds=18446744073709551615", "watch=1&timeoutSeconds=soon", "limit=many"] {
        let (code, status) = list(query).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{query}");
    }
    let api = config_maps(&client);
    for selector in ["a=b=c", "a in (b", "a b", "-a=b", "a=b c"] {
        assert_eq!(code(api.list(&ListParams::default().labels(selector)).await), 400, "{selector}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_default_namespaces_cannot_be_deleted() {
    let (cluster, client) = start().await;
    let api = api_of(&client, "", "v1", "Namespace", None);
    for name in ["default", "kube-system", "kube-public"] {
        let refused = api.delete(name, &DeleteParams::default()).await.unwrap_err();
        let message = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        assert!(refused.to_string().contains(&message), "{refused}");
        assert_eq!(code::<()>(Err(refused)), 403);
    }
    api.delete("t", &DeleteParams::default()).await.unwrap();
    cluster.settled().await;
    assert!(cluster.object("", "namespaces", "", "t").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_definition_whose_patterns_or_rules_do_not_compile_is_refused() {
    let (_cluster, client) = start().await;
    let definitions = api_of(&client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
    let named = |schema: Value| json!({"type": "object", "properties": {"name": schema}});
    let pattern = named(json!({"type": "string", "pattern": "^(a$"}));
    let refused = apply(&definitions, "widgets.test.io", "test", definition(&pattern)).await.unwrap_err();
    assert!(refused.to_string().contains("must be a valid regular expression, but isn't"), "{refused}");
    let rule = format!("self == 'a'{}", " + 'a'".repeat(500));
    let chain = named(json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]}));
    assert_eq!(code(apply(&definitions, "widgets.test.io", "test", definition(&chain)).await), 422);
}

/// Returns a Deployment with these fields in its container and its spec.
fn web(container: &Value, spec: &Value) -> Value {
    let mut main = json!({"name": "main", "image": "image:1"});
    json_patch::merge(&mut main, container);
    let mut web = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [main]}}}});
    json_patch::merge(&mut web["spec"], spec);
    web
}

#[tokio::test(start_paused = true)]
async fn an_invalid_pod_template_is_refused_with_its_path() {
    let (cluster, _client) = start().await;
    let none = json!({});
    let steps = |surge: Value| json!({"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}}});
    let volume = json!({"template": {"spec": {"volumes": [{"name": "v", "configMap": {}}]}}});
    let cases = [
        (web(&json!({"name": "A_B"}), &none), "containers[0].name"),
        (web(&json!({"env": [{"name": "A=B"}]}), &none), "containers[0].env[0].name"),
        (
            web(&json!({"livenessProbe": {"failureThreshold": -2}}), &none),
            "containers[0].livenessProbe.failureThreshold",
        ),
        (web(&json!({"readinessProbe": {"periodSeconds": -1}}), &none), "containers[0].readinessProbe.periodSeconds"),
        (
            web(&json!({"ports": [{"name": "sixteen-letters-", "containerPort": 1}]}), &none),
            "containers[0].ports[0].name",
        ),
        (
            web(&json!({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}}), &none),
            "containers[0].resources.requests",
        ),
        (web(&none, &volume), "volumes[0].configMap.name"),
    ];
    let path = "/apis/apps/v1/namespaces/t/deployments?dryRun=All";
    for (object, field) in cases {
        let (code, status) = send(&cluster, "POST", path, JSON, object.to_string()).await;
        let found = &status["details"]["causes"][0]["field"];
        assert_eq!((code, found), (422, &json!(format!("spec.template.spec.{field}"))), "{status}");
    }
    let (code, status) = send(&cluster, "POST", path, JSON, web(&none, &steps(json!(0))).to_string()).await;
    assert_eq!(code, 422);
    let message = "Deployment.apps \"web\" is invalid: spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0";
    assert_eq!(status["message"], message);
    let taken = [
        web(&none, &steps(json!(1))),
        web(&json!({"livenessProbe": {"periodSeconds": 0}, "env": [{"name": "a.b-c d"}, {"name": "1"}]}), &none),
        web(&json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m"}}}), &none),
    ];
    for object in taken {
        let (code, status) = send(&cluster, "POST", path, JSON, object.to_string()).await;
        assert_eq!(code, 201, "{status}");
    }
    let many = web(&none, &json!({"replicas": 4_000_000_000_u32}));
    assert_eq!(send(&cluster, "POST", path, JSON, many.to_string()).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn config_maps_and_secrets_hold_a_mebibyte_and_bytes_are_base64() {
    let (cluster, _client) = start().await;
    let object = |data: Value| json!({"metadata": {"name": "a"}, "data": data}).to_string();
    let path = |plural: &str| format!("/api/v1/namespaces/t/{plural}?dryRun=All");
    let (code, status) = send(&cluster, "POST", &path("secrets"), JSON, object(json!({"k": "no base64"}))).await;
    assert_eq!(code, 400);
    assert!(status["message"].as_str().unwrap().ends_with("illegal base64 data at input byte 2"), "{status}");
    let large = object(json!({"k": "x".repeat((1 << 20) + 1)}));
    let (code, status) = send(&cluster, "POST", &path("configmaps"), JSON, large).await;
    assert_eq!(code, 422);
    assert_eq!(status["message"], "ConfigMap \"a\" is invalid: []: Too long: may not be more than 1048576 bytes");
    let most = object(json!({"k": "x".repeat(1 << 20)}));
    assert_eq!(send(&cluster, "POST", &path("configmaps"), JSON, most).await.0, 201);
}

#[tokio::test]
async fn a_page_whose_host_name_was_rebound_gets_no_answer() {
    let cluster = Cluster::start();
    let server = cluster.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    for (host, code) in [("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:7", 200), ("evil.example", 403)] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let request = format!("GET /version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{host}: {answer}");
    }
}
