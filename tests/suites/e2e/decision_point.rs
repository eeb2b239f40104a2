//! The decision point of a secured cluster of KAOS 0.8, before and after the upgrade.

use std::path::Path;

use kaos_tests::case;
use kaos_tests::harness::definitions::{gateway_policies, routes};
use kaos_tests::harness::read::{controller, uid};
use kaos_tests::harness::samples::definition;
use kaos_tests::harness::{World, condition};
use serde_json::{Value, json};

use crate::support::{CHART, RELEASE, Release, SYSTEM, at};

const OBJECTS: [&str; 4] =
    ["Deployment/kaos-pdp", "Service/kaos-pdp", "PodDisruptionBudget/kaos-pdp", "NetworkPolicy/kaos-pdp"];
pub(crate) const CONFIG: &str = "ConfigMap/kaos-authz-policy";
const POLICY: &str = "AuthorizationPolicy/kaos-authz";
/// The usual issuer of Agents' tokens: the API server's Service in the namespace `default`.
pub(crate) const AGENTS: &str = "https://kubernetes.default.svc.cluster.local";
pub(crate) const KEYS: &str = r#"{"keys": [{"kty": "RSA", "kid": "1", "n": "AQAB", "e": "AQAB"}]}"#;

/// Installs a chart that contains the decision point of KAOS's chart, and KAOS's kinds. The real chart of KAOS may use
/// other labels for the decision point's pods, but this operator's chart must work with any labels.
pub(crate) fn install_kaos(release: &Release) {
    let chart = chart_of_kaos(release.cluster.folder());
    let secured = case::golden().join("today/values/secured.yaml").display().to_string();
    // Install the release like Helm 3, without server-side apply.
    let install = ["install", RELEASE, &chart, "--values", &secured, "--server-side=false"];
    release.cluster.helm(&[&install[..], &["--namespace", SYSTEM, "--wait"]].concat()).expect();
}

/// Upgrades the release of KAOS to this operator's chart. Adds Helm values for the keys of the issuers, because KAOS's
/// operator fetched these keys from other servers.
pub(crate) fn upgrade(release: &Release) {
    let accounts = format!("security.agentAuth.identity.serviceAccount.jwks={}", json!(KEYS));
    let users = format!("security.userAuth.jwks={}", json!(KEYS));
    let issuer = format!("security.agentAuth.identity.serviceAccount.issuer={AGENTS}");
    let upgrade = ["upgrade", RELEASE, CHART, "--namespace", SYSTEM, "--wait", "--reuse-values", "--take-ownership"];
    let values = [
        "--set",
        "gatewayAPI.createGateway=false,security.gatewayHost=gw.example,security.networkPolicy.egress.enabled=true",
        "--set",
        &issuer,
        "--set-json",
        &accounts,
        "--set-json",
        &users,
    ];
    release.cluster.helm(&[&upgrade[..], &values].concat()).expect();
}

/// Removes the gateway's CustomResourceDefinitions: other tests expect that this cluster serves no SecurityPolicies.
pub(crate) fn clear(release: &Release) {
    let definitions = ["securitypolicies.gateway.envoyproxy.io", "referencegrants.gateway.networking.k8s.io"];
    release.cluster.kubectl(&[&["delete", "crd"], &definitions[..]].concat()).expect();
}

fn chart_of_kaos(folder: &Path) -> String {
    let chart = folder.join("secured-kaos-operator");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::create_dir_all(chart.join("crds")).unwrap();
    for kind in ["accessgrants", "agents", "mcpservers", "memorystores", "modelapis"] {
        let file = format!("{kind}.yaml");
        std::fs::copy(format!("../crds/generated/{file}"), chart.join("crds").join(file)).unwrap();
    }
    let labels = json!({"app": "kaos-pdp", "kaos.tools/part": "authorization"});
    let container = json!({"name": "pdp", "image": "openpolicyagent/opa:1.18.1-envoy-static", "args": ["run", "--server"],
        "volumeMounts": [{"name": "rules", "mountPath": "/policy"}],
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}});
    let pods = json!({"metadata": {"labels": labels}, "spec": {"containers": [container],
        "volumes": [{"name": "rules", "configMap": {"name": "kaos-authz-policy"}}],
        "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}}});
    let named = json!({"name": "kaos-pdp"});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named,
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": pods}},
        {"apiVersion": "v1", "kind": "Service", "metadata": named,
            "spec": {"selector": labels, "ports": [{"name": "grpc", "port": 9191}, {"name": "diagnostics", "port": 8282}]}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": named,
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": named,
            "spec": {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress"]}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kaos-operator-config"},
            "data": {"SECURITY_PDP_ENABLED": "true", "SECURITY_STRICT_GATEWAY_API_ENABLED": "true"}}]});
    let about = json!({"apiVersion": "v2", "name": "kaos-operator", "version": "0.8.2"});
    std::fs::write(chart.join("Chart.yaml"), about.to_string()).unwrap();
    std::fs::write(chart.join("templates/all.yaml"), objects.to_string()).unwrap();
    std::fs::copy(case::golden().join("today/values/kaos-0.8.2.yaml"), chart.join("values.yaml")).unwrap();
    chart.display().to_string()
}

/// Applies the gateway's CustomResourceDefinitions, and the ConfigMap that KAOS's operator leaves for the decision
/// point.
pub(crate) async fn prepare(release: &Release) -> World {
    let system = release.over(SYSTEM);
    let mut references = definition("gateway.networking.k8s.io", "referencegrants", "ReferenceGrant");
    references["spec"]["versions"][0]["name"] = json!("v1beta1");
    references["metadata"]["annotations"] = routes()["metadata"]["annotations"].clone();
    for definition in [&routes(), &gateway_policies(), &references] {
        system.apply(definition).await;
        let served = |crd: &Value| condition(crd, "Established")["status"] == "True";
        system.until("it is served", &at(definition), served).await;
    }
    let left = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kaos-authz-policy",
        "namespace": SYSTEM, "labels": {"app.kubernetes.io/managed-by": "kaos-operator-authz"}},
        "data": {"policy.rego": "package kaos.authz", "data.json": r#"{"kaos": {}}"#}});
    system.apply_as("kaos-operator-authz", &left).await.unwrap();
    system
}

#[tokio::test]
async fn the_decision_point_of_kaos_stays_through_an_upgrade_and_gets_its_data_from_this_operator() {
    let release = Release::prepare().await;
    let system = prepare(&release).await;
    install_kaos(&release);
    let mut before = Vec::new();
    for object in OBJECTS.iter().chain([&CONFIG]) {
        before.push(uid(&system.look(object).await).to_owned());
    }

    upgrade(&release);
    let mut after = Vec::new();
    for object in OBJECTS.iter().chain([&CONFIG]) {
        after.push(uid(&system.look(object).await).to_owned());
    }
    assert_eq!(after, before, "an object was replaced");
    let deployment = system.look(OBJECTS[0]).await;
    let pods = &deployment["spec"]["template"];
    let containers = pods["spec"]["containers"].as_array().unwrap();
    assert_eq!((containers.len(), &containers[0]["name"]), (1, &json!("opa")));
    let labels = &deployment["spec"]["selector"]["matchLabels"];
    assert_eq!(*labels, json!({"app": "kaos-pdp", "kaos.tools/part": "authorization"}));
    assert_eq!(system.look(OBJECTS[1]).await["spec"]["selector"], *labels);
    assert_eq!(system.look(OBJECTS[3]).await["spec"]["podSelector"]["matchLabels"], *labels);

    // With the rights of the chart's ServiceAccount, the operator can write the data of a new namespace.
    release.until_owners_are_known().await;
    let mark = release.cluster.audit().mark().unwrap();
    let operator = release.working_operator().await;
    system.until_ready(POLICY).await;
    let world = release.world("decided").await;
    let grant = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "AccessGrant", "metadata": {"name": "ada"},
        "spec": {"subjects": [{"kind": "User", "name": "ada"}], "resources": [{"kind": "ModelAPI", "name": "llm"}]}});
    world.apply(&grant).await;
    world
        .until("the decision point has it", "AccessGrant/ada", |it| condition(it, "Enforced")["status"] == "True")
        .await;
    let config = system.look(CONFIG).await;
    assert_eq!((uid(&config), &controller(&config)["kind"]), (before[4].as_str(), &json!("AuthorizationPolicy")));
    let data: Value = serde_json::from_str(config["data"]["data.json"].as_str().unwrap()).unwrap();
    assert_eq!(data["kaos"]["user_grants"], json!({"user:ada": ["kaos://modelapi/decided/llm"]}));
    // Wait for the ReferenceGrant, because the operator writes it after the data: the AccessGrant can be in force
    // before the ReferenceGrant exists.
    let allows = |reference: &Value| reference["spec"]["from"][0]["namespace"] == "decided";
    system.until("the namespace may refer to the decision point", "ReferenceGrant/kaos-pdp-decided", allows).await;
    assert_eq!(release.refused_since(mark), [""; 0], "{}", operator.log());
    drop(operator);

    // Without the values `security`, the upgrade fails before it deletes anything.
    let refused = release.helm("upgrade", &[]).expect_failure();
    assert!(refused.contains("SECURITY_PDP_ENABLED"), "{refused}");
    assert_eq!(uid(&system.look(OBJECTS[0]).await), before[0]);
    release.cluster.helm(&["rollback", RELEASE, "1", "--namespace", SYSTEM, "--wait"]).expect();
    assert_eq!(uid(&system.look(OBJECTS[0]).await), before[0]);
    clear(&release);
}
