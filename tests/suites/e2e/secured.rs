//! Tests the upgrade of a secured cluster of KAOS 0.8, in which every object has a SecurityPolicy and a NetworkPolicy,
//! and Agents send their requests through the Gateway. This operator must take over these objects, and must restart no
//! pod.
//!
//! This module builds KAOS's SecurityPolicies and NetworkPolicies from a description of KAOS 0.8. The module
//! `left_by_kaos` builds all other children.

use std::collections::BTreeMap;

use kaos_tests::case;
use kaos_tests::harness::condition;
use kaos_tests::harness::read::{entries, name, text, variable};
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::decision_point::{AGENTS, CONFIG, KEYS, clear, install_kaos, prepare, upgrade};
use crate::left_by_kaos::{Left, put};
use crate::support::{Release, SYSTEM};
use crate::today::{lost, remember, until_taken_over};

/// The samples that a secured cluster can contain. Sample 20 is missing, because its Deployment comes from a cluster
/// without security.
const SAMPLES: [&str; 9] = [
    "02-modelapi-hosted",
    "03-mcp-codemode",
    "05-agent-plain",
    "06-agent-autonomous",
    "07-agent-memory-local",
    "08-memorystore-local",
    "10-agents-memory-remote",
    "12-accessgrant",
    "13-team",
];
/// The issuer of users' tokens, as in `golden/today/values/secured.yaml`.
const USERS: &str = "http://keycloak.kaos-system.svc.cluster.local:8080/realms/kaos";
const KINDS: [&str; 3] = ["HTTPRoute", "SecurityPolicy", "NetworkPolicy"];

/// If the rendered `child` is a SecurityPolicy or a NetworkPolicy, returns it as KAOS's operator would write it.
/// Returns a child of another kind unchanged. `all` are the children of the same object.
pub(crate) fn described(child: &Value, all: &Value) -> Value {
    let mut described = child.clone();
    match text(&child["kind"]) {
        "SecurityPolicy" => described["spec"] = gateway_policy(name(child)),
        "NetworkPolicy" => {
            let deployment = all.as_array().into_iter().flatten().find(|child| child["kind"] == "Deployment").unwrap();
            let from = |namespace: &str| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}});
            let trusted = json!([from("envoy-gateway-system"), from(SYSTEM)]);
            let ports = json!([{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]);
            // The pods may send requests to the operator's namespace, because the users' issuer and the decision point
            // run there.
            let mut egress = vec![json!({"to": [from("kube-system")], "ports": ports}), json!({"to": trusted})];
            if name(child).starts_with("modelapi-") {
                egress.push(json!({"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}));
            }
            described["spec"] = json!({"podSelector": deployment["spec"]["selector"],
                "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": trusted}], "egress": egress});
        }
        _ => {}
    }
    described
}

fn gateway_policy(route: &str) -> Value {
    let claim = |claim: &str, header: &str| json!({"claim": claim, "header": header});
    let agent = json!({"name": "agent", "issuer": AGENTS, "audiences": ["kaos-gateway"],
        "localJWKS": {"type": "Inline", "inline": KEYS},
        "extractFrom": {"headers": [{"name": "x-agent-authorization", "valuePrefix": "Bearer "}]},
        "claimToHeaders": [claim("sub", "x-agent-claim-sub")]});
    let user = json!({"name": "user", "issuer": USERS, "audiences": ["kaos"],
        "remoteJWKS": {"uri": format!("{USERS}/protocol/openid-connect/certs")},
        "claimToHeaders": [claim("sub", "x-user-claim-sub"), claim("preferred_username", "x-user-claim-username")]});
    json!({
        "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": route}],
        "extAuth": {"failOpen": false, "headersToExtAuth": ["authorization", "x-agent-authorization"],
            "grpc": {"backendRefs": [{"name": "kaos-pdp", "namespace": SYSTEM, "port": 9191}]}},
        "jwt": {"optional": true, "providers": [agent, user]},
    })
}

/// Returns the specs of a sample's HTTPRoutes, SecurityPolicies and NetworkPolicies.
async fn protection(left: &Left) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for kind in KINDS {
        for object in left.world.list(kind).await {
            all.insert(format!("{}: {kind}/{}", left.sample, name(&object)), object["spec"].clone());
        }
    }
    all
}

/// Returns the `ReferenceGrant` of KAOS's operator for a namespace: it lets the SecurityPolicies of the namespace refer
/// to the decision point.
fn reference_of_kaos(namespace: &str) -> Value {
    json!({"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
        "metadata": {"name": format!("kaos-ext-auth-{namespace}"), "namespace": SYSTEM},
        "spec": {"from": [{"group": "gateway.envoyproxy.io", "kind": "SecurityPolicy", "namespace": namespace}],
            "to": [{"group": "", "kind": "Service", "name": "kaos-pdp"}]}})
}

/// Returns the command that `upgrade-check` prints for the deletion of KAOS's `ReferenceGrants`. The check must name
/// all of these `ReferenceGrants`, and must not report that the upgrade loses them.
fn command_for_references(release: &Release) -> String {
    let values = case::golden().join("today/values/secured.yaml").display().to_string();
    let arguments = ["upgrade-check", "-o", "json", "--values", &values];
    let asked = release.cluster.operator(&release.cluster.kubeconfig(), &arguments);
    let told: Value = serde_json::from_str(&asked.out).unwrap_or_else(|_| panic!("{}", asked.err));
    let findings = told["findings"].as_array().unwrap().iter();
    let own: Vec<&Value> = findings.filter(|it| text(&it["about"]).starts_with("ReferenceGrant: ")).collect();
    let about = format!("ReferenceGrant: {} of KAOS in {SYSTEM}, such as kaos-ext-auth-secured-02", SAMPLES.len());
    assert_eq!((own.len(), &own[0]["about"], &own[0]["sort"]), (1, &json!(about), &json!("note")), "{told:#}");
    let (_, command) = text(&own[0]["do"]).split_once("delete them: ").unwrap();
    command.to_owned()
}

#[tokio::test]
async fn secured_objects_of_kaos_0_8_are_taken_over_and_stay_protected_without_restarting_a_pod() {
    let release = Release::prepare().await;
    let system = prepare(&release).await;
    install_kaos(&release);
    // Use the environment of KAOS's operator in sample 19, and add the issuer of users.
    let mut config = case::documents(&case::golden().join("today/19-operator-config.yaml")).unwrap().remove(0);
    config["data"]["SECURITY_USER_AUTH_ISSUER"] = json!(USERS);
    config["data"]["SECURITY_USER_AUTH_AUDIENCE"] = json!("kaos");
    config["data"]["SECURITY_NETWORK_POLICY_EGRESS_ENABLED"] = json!("true");
    let file = release.cluster.folder().join("secured.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let (file, keys) = (file.display().to_string(), format!("security.agents.jwks={KEYS}"));
    let issuer = format!("security.agents.issuer={AGENTS}");
    let host = "agent.gatewayRouting.host=gw.example";
    let settings = ["-f", &file, "--set", &issuer, "--set", &keys, "--set", host];
    let mut all = Vec::new();
    for sample in SAMPLES {
        all.push(put(&release, sample, "secured", &settings).await);
        system.create(&reference_of_kaos(&all[all.len() - 1].world.namespace), &PostParams::default()).await;
    }
    let mut before = BTreeMap::new();
    for left in &mut all {
        remember(left).await;
        before.append(&mut protection(left).await);
    }
    let count = |prefix: &str| all.iter().flat_map(|left| &left.children).filter(|at| at.starts_with(prefix)).count();
    let deployments = count("Deployment/");
    assert!(deployments > 20, "{deployments} Deployments");
    assert_eq!(before.len(), 3 * deployments, "not every object is protected: {:#?}", before.keys());
    // Check the variables of a secured Agent with a store.
    let store = all.iter().find(|left| left.sample.starts_with("10-")).unwrap();
    let agent = store.world.look("Deployment/agent-inherits").await;
    for (of, value) in [
        ("MEMORY_REQUIRE_PRINCIPAL", "true"),
        ("MEMORY_REQUIRE_AGENT_IDENTITY", "true"),
        ("MEMORY_STORE_ENDPOINT", "http://gw.example/secured-10/memorystore/shared"),
        ("MODEL_API_URL", "http://gw.example/secured-10/modelapi/llm"),
    ] {
        assert_eq!(variable(&agent, of), json!(value), "{of}");
    }

    let delete = command_for_references(&release);
    upgrade(&release);
    release.until_owners_are_known().await;
    let mark = release.cluster.audit().mark().unwrap();
    let operator = release.working_operator().await;
    until_taken_over(&all).await;
    let (mut wrong, mut after) = (Vec::new(), BTreeMap::new());
    for left in &all {
        wrong.extend(lost(left).await);
        after.append(&mut protection(left).await);
    }
    let changed = before.iter().filter(|(at, spec)| after.get(*at) != Some(spec));
    wrong.extend(changed.map(|(at, spec)| format!("{at}: {spec:#} became {:#}", after[at])));
    wrong.extend(after.keys().filter(|at| !before.contains_key(*at)).map(|at| format!("{at} is new")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // The AccessGrants stay in force, and the SecurityPolicies may still refer to the decision point.
    let grants = all.iter().find(|left| left.sample.starts_with("12-")).unwrap();
    for grant in grants.kept.keys() {
        let is_ours =
            |it: &Value| condition(it, "Enforced")["status"] == "True" && !it["status"]["observedGeneration"].is_null();
        grants.world.until("the decision point has the grant", grant, is_ours).await;
    }
    for left in &all {
        let namespace = &left.world.namespace;
        system
            .until_true("the SecurityPolicies may refer to the decision point", async || {
                let own = system.look(&format!("ReferenceGrant/kaos-pdp-{namespace}")).await;
                own["spec"] == reference_of_kaos(namespace)["spec"]
            })
            .await;
        assert!(!system.look(&format!("ReferenceGrant/kaos-ext-auth-{namespace}")).await.is_null());
    }
    system.until_ready("AuthorizationPolicy/kaos-authz").await;
    release.cluster.shell(&delete).expect();
    let references = system.list("ReferenceGrant").await;
    assert_eq!(references.len(), all.len(), "only those of this operator stay: {references:#?}");
    assert!(references.iter().all(|it| name(it).starts_with("kaos-pdp-")), "{references:#?}");
    let labels = entries(&system.look(CONFIG).await, "labels");
    assert_eq!(labels["app.kubernetes.io/managed-by"], "kaos-operator");
    assert_eq!(release.refused_since(mark), [""; 0], "{}", operator.log());

    drop(operator);
    for volume in system.list("PersistentVolume").await {
        system.delete(&format!("PersistentVolume/{}", name(&volume))).await;
    }
    release.is_changed();
    clear(&release);
}
