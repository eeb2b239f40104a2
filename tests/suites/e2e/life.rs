//! Tests for those rows of the reconcile loop's checklist that need real pods or the API server's audit log.

use std::collections::BTreeSet;

use kaos_tests::harness::read::{condition, reason, text};
use kaos_tests::harness::samples::{agent, mcp_server, model_api, model_api_for};
use kaos_tests::harness::{World, is_ready};
use serde_json::{Value, json};

use crate::support::{Release, USER, until_ready};

/// A label that only this test adds to the nodes.
const PLACE: &str = "kaos.test/place";

/// Adds a label to the nodes or removes it. The ModelAPI's pods need this label.
struct Places<'a>(&'a Release);

impl Places<'_> {
    fn open(&self) {
        self.0.cluster.kubectl(&["label", "nodes", "--all", "--overwrite", &format!("{PLACE}=yes")]).expect();
    }

    fn close(&self) {
        self.0.cluster.kubectl(&["label", "nodes", "--all", &format!("{PLACE}-")]).expect();
    }
}

fn since(object: &Value, of: &str) -> String {
    text(&condition(object, of)["lastTransitionTime"]).to_owned()
}

fn counts(object: &Value, pods: &str) -> bool {
    text(&condition(object, "Ready")["message"]).contains(pods)
        && object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

fn team() -> Vec<Value> {
    let mut model = model_api("llm");
    model["spec"]["podSpec"] = json!({"nodeSelector": {PLACE: "yes"}});
    vec![model, mcp_server("echo"), agent("a", "llm", &json!({"mcpServers": ["echo"]}))]
}

#[tokio::test]
async fn the_status_counts_pods_while_they_start_and_stop() {
    let release = Release::install(&[]).await;
    let places = Places(&release);
    let _operator = release.working_operator().await;
    let world = release.world("places").await;
    world.apply_all(&team()).await;
    // No node has the label yet, so the ModelAPI's pods cannot run.
    let waiting = world.until("the status counts the replicas", "ModelAPI/llm", |object| counts(object, "0/1")).await;
    assert_eq!(
        (&condition(&waiting, "Accepted")["status"], reason(&waiting, "Ready").as_str()),
        (&json!("True"), "Progressing")
    );
    world.until("the Agent waits", "Agent/a", |object| reason(object, "Applied") == "Gated").await;
    assert!(world.look("Deployment/agent-a").await.is_null());

    places.open();
    until_ready(&world, &team()).await;
    let ready = world.look("ModelAPI/llm").await;
    assert!(counts(&ready, "1/1"), "{ready:#}");
    assert_eq!(since(&ready, "Accepted"), since(&waiting, "Accepted"), "the condition Accepted did not change");

    // Delete the running pod while no node has the label, so that the new pod cannot run.
    places.close();
    release.cluster.kubectl(&["delete", "pod", "-n", "places", "-l", "modelapi=llm", "--wait=false"]).expect();
    let missed = world.until("the status counts no ready pod", "ModelAPI/llm", |object| counts(object, "0/1")).await;
    assert_eq!(condition(&missed, "Ready")["status"], "False");
    world
        .until("the Agent reports the missing dependency", "Agent/a", |a| {
            condition(a, "DependenciesReady")["status"] == "False"
        })
        .await;
    assert_eq!(world.look("Deployment/agent-a").await["status"]["readyReplicas"], 1, "the pod keeps running");
    places.open();
    until_ready(&world, &team()).await;

    // Add a replica that cannot run, because no node has the label. The running replica keeps serving.
    places.close();
    release.cluster.kubectl(&["scale", "modelapi", "llm", "-n", "places", "--replicas=2"]).expect();
    let serves = |object: &Value| counts(object, "1/2") && is_ready(object);
    world.until("the status counts both replicas and is ready", "ModelAPI/llm", serves).await;
    places.open();
    world.until("both replicas are ready", "ModelAPI/llm", |object| counts(object, "2/2")).await;

    world
        .patch("MCPServer/echo", &json!({"metadata": {"annotations": {"settings.kaos.tools/servicePort": "9000"}}}))
        .await;
    let calls = |deployment: &Value| {
        deployment["spec"]["template"].to_string().contains("mcpserver-echo.places.svc.cluster.local:9000")
    };
    world.until("the Agent calls the other port", "Deployment/agent-a", calls).await;
    places.close();
}

/// Returns the contents of all children in the test's namespace, without the parts that depend on the namespace.
async fn children(world: &World) -> Vec<String> {
    let mut all = Vec::new();
    for kind in ["ConfigMap", "Deployment", "Service"] {
        for child in world.list(kind).await.iter().filter(|child| child["metadata"]["ownerReferences"].is_array()) {
            let (mut spec, name) = (child["spec"].clone(), text(&child["metadata"]["name"]));
            for own in ["/clusterIP", "/clusterIPs", "/template/metadata/annotations"] {
                if let Some(field) = spec.pointer_mut(own) {
                    *field = Value::Null;
                }
            }
            all.push(format!("{kind} {name} {} {spec}", child["data"]).replace(&world.namespace, "NAMESPACE"));
        }
    }
    all
}

#[tokio::test]
async fn the_operator_writes_in_order_with_few_watches_and_events() {
    let release = Release::install(&[]).await;
    let mark = release.cluster.audit().mark().unwrap();
    let operator = release.working_operator().await;
    let (world, backwards) = (release.world("forwards").await, release.world("backwards").await);
    world.apply(&model_api("llm")).await;
    until_ready(&world, &[model_api("llm")]).await;
    world.quiet().await;
    let asked = release.cluster.audit().since(mark, USER).unwrap();
    let own = asked.iter().filter(|request| request.writes() && request.namespace == "forwards");
    let mut order: Vec<&str> = own.map(|request| request.resource.as_str()).filter(|it| *it != "events").collect();
    order.dedup();
    assert_eq!(order, ["configmaps", "deployments", "services", "modelapis/status"]);

    let told: Vec<String> = world.events("ModelAPI/llm").await.into_iter().map(|(_, reason, _)| reason).collect();
    assert_eq!(told, ["Ready"]);

    // After many edits, the children have the content of the last edit.
    for number in 0..20 {
        world.apply(&model_api_for("llm", &[&format!("model-{number}")])).await;
    }
    until_ready(&world, &[model_api("llm")]).await;
    world.quiet().await;
    let config = world.look("ConfigMap/litellm-config-llm").await["data"].to_string();
    assert!(config.contains("model-19") && !config.contains("model-18"), "{config}");
    world.apply(&model_api("llm")).await;

    // Create the objects in this order in one namespace, and in the reverse order in the other namespace.
    let team = [
        model_api("llm"),
        mcp_server("echo"),
        agent("b", "llm", &json!({})),
        agent("a", "llm", &json!({"mcpServers": ["echo"], "agentNetwork": {"access": ["b"]}})),
    ];
    world.apply_all(&team).await;
    until_ready(&world, &team).await;
    for object in team.iter().rev() {
        backwards.apply(object).await;
    }
    until_ready(&backwards, &team).await;
    world.quiet().await;
    backwards.quiet().await;
    assert_eq!(children(&backwards).await, children(&world).await);

    // End the operator, because the audit log contains a watch only after the watch has ended.
    drop(operator);
    let wanted = [
        "accessgrants",
        "agents",
        "authorizationpolicies",
        "mcpservers",
        "memorystores",
        "modelapis",
        "persistentvolumeclaims",
        "poddisruptionbudgets",
        "policyrevisions",
        "serviceaccounts",
        "configmaps",
        "deployments",
        "services",
        "customresourcedefinitions",
    ];
    let watched = || -> BTreeSet<String> {
        let asked = release.cluster.audit().since(mark, USER).unwrap();
        asked.into_iter().filter(|request| request.verb == "watch").map(|request| request.resource).collect()
    };
    let mut wanted = BTreeSet::from(wanted.map(str::to_owned));
    // Tests share clusters. An earlier test may have installed the Gateway API.
    let routes = ["get", "crd", "httproutes.gateway.networking.k8s.io", "--ignore-not-found", "--output=name"];
    if !release.cluster.kubectl(&routes).expect().is_empty() {
        wanted.insert("httproutes".to_owned());
    }
    world.until_true("the audit log contains all watches", async || watched().is_superset(&wanted)).await;
    assert_eq!(watched(), wanted);
}
