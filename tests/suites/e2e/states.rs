//! Tests the commands of the operator that show the state of objects, on a real API server.

use kaos_tests::harness::read::reason;
use kaos_tests::harness::samples::{agent, model_api};
use serde_json::{Value, json};

use crate::support::{Release, until_ready};

#[tokio::test]
async fn a_user_of_one_namespace_finds_the_cause_and_sees_the_pods() {
    let release = Release::install(&[]).await;
    let _operator = release.working_operator().await;
    let world = release.world("states").await;
    let (writer, llm) = (agent("writer", "llm", &json!({})), model_api("llm"));
    world.apply(&writer).await;
    world.until("it waits", "Agent/writer", |object| reason(object, "Resolved") == "NotFound").await;
    // Like many users of a cluster, this user may only read one namespace.
    let kinds = ["agents", "modelapis", "mcpservers", "memorystores", "accessgrants", "authorizationpolicies"];
    let binding = |role: &str, of: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": "states"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "states"}]})
    };
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "kaos-reader", "namespace": "states"},
        "rules": [{"apiGroups": ["kaos.tools"], "resources": kinds, "verbs": ["get", "list", "watch"]}]});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "reader", "namespace": "states"}});
    world.apply_all(&[account, role, binding("kaos-reader", "Role"), binding("view", "ClusterRole")]).await;
    let token = release.cluster.kubectl(&["create", "token", "--namespace", "states", "reader"]).expect();
    let kubeconfig = release.cluster.kubeconfig_for("reader", token.trim()).unwrap();
    let ask = |arguments: &[&str]| {
        release.cluster.operator(&kubeconfig, &[arguments, &["-n", "states", "-o", "json"]].concat())
    };
    let answer = |text: &str| -> Value { serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")) };

    let why = ask(&["why", "agent/writer"]);
    assert!(!why.ok, "{}", why.out);
    let told = answer(&why.out);
    assert_eq!(told["causes"][0]["message"], "ModelAPI states/llm does not exist", "{told:#}");
    let note = "only the default policies are known";
    assert!(why.err.contains(note) && why.err.contains("is forbidden"), "{}", why.err);

    world.apply(&llm).await;
    until_ready(&world, &[llm, writer]).await;
    let status = ask(&["status"]);
    assert!(status.ok, "{}{}", status.out, status.err);
    let told = answer(&status.out);
    assert_eq!((&told["ready"], &told["total"]), (&json!(2), &json!(2)), "{told:#}");
    let told = answer(&ask(&["tree", "agent/writer"]).out);
    let mut kinds = Vec::new();
    collect(&told, &mut kinds);
    for kind in ["Agent", "ModelAPI", "Deployment", "ReplicaSet", "Pod", "Service"] {
        assert!(kinds.iter().any(|(found, state)| found == kind && state != "NotReady"), "{kind}: {kinds:?}");
    }
    let told = answer(&ask(&["events", "agent/writer"]).out);
    let about = |kind: &str| told.as_array().unwrap().iter().any(|event| event["object"]["kind"] == kind);
    assert!(about("Pod") && about("ReplicaSet"), "{told:#}");
    let times: Vec<&Value> = told.as_array().unwrap().iter().map(|event| &event["lastSeen"]).collect();
    assert!(times.iter().all(|time| time.is_string()), "{times:?}");
}

/// Collects the kind and the state of each object in the output of the command that prints a tree.
fn collect(tree: &Value, found: &mut Vec<(String, String)>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.push((text(&tree["object"]["kind"]), text(&tree["state"])));
    for below in tree["below"].as_array().into_iter().flatten() {
        collect(below, found);
    }
}
