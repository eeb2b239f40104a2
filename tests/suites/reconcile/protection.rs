//! Tests the SecurityPolicies and NetworkPolicies of objects. A protected object must not accept requests before its
//! protection exists, not even for a moment. Only settings of the operator's owner may turn protection on or off.

use std::collections::BTreeMap;

use kaos_cluster::faults::Failure;
use kaos_operator::left_out::LeftOut;
use kaos_policy::stamp::APPLIED_DIGEST;
use kaos_tests::case;
use kaos_tests::harness::definitions::{gateway_policies, network_policies};
use kaos_tests::harness::read::{controller, entries, uid};
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::model_api;
use kaos_tests::harness::{Fault, Scenario, World, condition, play};
use serde_json::{Value, json};

const GUARD: &str = "SecurityPolicy/modelapi-llm";
const NETWORK: &str = "NetworkPolicy/modelapi-llm";
const ROUTE: &str = "HTTPRoute/modelapi-llm";
const PROTECTED: [&str; 3] = [GUARD, NETWORK, ROUTE];
const WORKLOAD: &str = "Deployment/modelapi-llm";

/// Returns the environment that an operator of KAOS 0.8 has on a cluster with a decision point.
fn secured() -> BTreeMap<String, String> {
    let mut environment = case::default_environment().unwrap();
    for (name, value) in [
        ("GATEWAY_API_ENABLED", "true"),
        ("GATEWAY_NAME", "kaos-gateway"),
        ("GATEWAY_NAMESPACE", "kaos-system"),
        ("SECURITY_PDP_ENABLED", "true"),
        ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER", "https://cluster"),
        ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS", "{\"keys\": []}"),
        ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE", "kaos-gateway"),
    ] {
        environment.insert(name.to_owned(), value.to_owned());
    }
    environment
}

fn scenario() -> Scenario {
    Scenario::embedded("definitions are shared on a real control plane").gateway().environment(&secured())
}

/// Installs CustomResourceDefinitions, and waits until the cluster serves their types. On a real control plane, skips
/// NetworkPolicies, because Kubernetes has this type built in.
async fn serve(w: &World, definitions: &[Value]) {
    let is_built_in = |it: &&Value| w.try_embedded().is_none() && it["spec"]["group"] == "networking.k8s.io";
    for definition in definitions.iter().filter(|it| !is_built_in(it)) {
        let name = definition["metadata"]["name"].as_str().unwrap();
        w.apply(definition).await;
        w.until("the definition is served", &format!("CustomResourceDefinition/{name}"), |crd| {
            condition(crd, "Established")["status"] == "True"
        })
        .await;
    }
}

/// Returns a child of the ModelAPI `of` as KAOS's operator left it.
fn left(of: &Value, api_version: &str, kind: &str, spec: &Value) -> Value {
    let owner = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "name": "llm", "uid": uid(of),
        "controller": true, "blockOwnerDeletion": true});
    json!({"apiVersion": api_version, "kind": kind, "spec": spec,
        "metadata": {"name": "modelapi-llm", "labels": {"app": "modelapi", "modelapi": "llm"}, "ownerReferences": [owner]}})
}

#[test]
fn an_object_is_protected_before_it_runs_and_before_it_has_a_route() {
    play(scenario().idle(), async |w| {
        serve(w, &[gateway_policies(), network_policies()]).await;
        w.start().await;
        w.break_it(Fault::on(&["patch"]).of("securitypolicies").fail(Failure::Server(500)).times(2));
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.until_hit().await;
        let guard = w.look(GUARD).await;
        assert_eq!(controller(&guard)["kind"], "ModelAPI");
        let backend = json!([{"name": "kaos-pdp", "namespace": "kaos-system", "port": 9191}]);
        assert_eq!(guard["spec"]["extAuth"]["grpc"]["backendRefs"], backend);
        assert_eq!(w.look(NETWORK).await["spec"]["policyTypes"], json!(["Ingress"]));
        let applied: Vec<String> = w.writes().into_iter().filter(|write| write.contains("modelapi-llm")).collect();
        let first = |resource: &str| applied.iter().position(|write| write.contains(resource)).unwrap();
        for protection in ["securitypolicies", "networkpolicies"] {
            assert!(
                first(protection) < first("deployments") && first(protection) < first("httproutes"),
                "{applied:#?}"
            );
        }
    });
}

#[test]
fn an_object_that_cannot_be_protected_is_refused_until_it_can_be() {
    play(scenario().idle(), async |w| {
        serve(w, &[network_policies()]).await;
        w.start().await;
        w.apply(&model_api("llm")).await;
        let told = w
            .until("ModelAPI/llm has the reason Unsupported for Accepted", "ModelAPI/llm", |it| {
                condition(it, "Accepted")["reason"] == "Unsupported"
            })
            .await;
        let why = condition(&told, "Accepted")["message"].as_str().unwrap().to_owned();
        assert!(why.contains("SecurityPolicy") && why.contains("would be open"), "{why}");
        for child in [ROUTE, WORKLOAD, NETWORK] {
            assert!(w.look(child).await.is_null(), "{child}");
        }
        serve(w, &[gateway_policies()]).await;
        w.until_ready("ModelAPI/llm").await;
        w.until("the ModelAPI has a route", ROUTE, |route| !route.is_null()).await;
        assert!(!w.look(GUARD).await.is_null());
    });
}

#[test]
fn protection_that_kaos_left_is_taken_over_without_a_change() {
    play(Scenario::default().gateway().environment(&secured()).idle(), async |w| {
        serve(w, &[gateway_policies(), network_policies()]).await;
        w.start().await;
        let made = w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        let mut before = Vec::new();
        w.stop_all().await;
        for at in PROTECTED {
            let live = w.look(at).await;
            w.delete(at).await;
            w.until_gone(at).await;
            let of = |field: &str| live[field].as_str().unwrap();
            let left = left(&made, of("apiVersion"), of("kind"), &live["spec"]);
            before.push(w.apply_as("manager", &left).await.unwrap());
        }
        w.start().await;
        for (at, before) in PROTECTED.into_iter().zip(&before) {
            let ours = |it: &Value| entries(it, "annotations").contains_key(APPLIED_DIGEST);
            let after = w.until("the operator owns the protection", at, ours).await;
            assert_eq!((uid(&after), &after["spec"]), (uid(before), &before["spec"]), "{at}");
        }
        assert_eq!(w.rollouts("modelapi-llm").await, 1);
    });
}

#[test]
fn protection_that_another_operator_left_stays_while_the_settings_ask_for_none() {
    play(Scenario::embedded("definitions are shared on a real control plane").idle(), async |w| {
        serve(w, &[network_policies()]).await;
        w.start().await;
        let made = w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        let closed = json!({"podSelector": {"matchLabels": {"modelapi": "llm"}}, "policyTypes": ["Ingress"]});
        let policy = left(&made, "networking.k8s.io/v1", "NetworkPolicy", &closed);
        w.apply_as("manager", &policy).await.unwrap();
        w.patch("ModelAPI/llm", &json!({"spec": {"proxyConfig": {"models": ["other"]}}})).await;
        w.quiet().await;
        assert_eq!(w.look(NETWORK).await["spec"], closed);
    });
}

#[test]
fn an_operator_without_a_type_does_not_watch_it_and_refuses_objects_that_need_it() {
    let without = |options: &mut kaos_operator::operator::Options| {
        options.left_out = LeftOut::new(["NetworkPolicy.networking.k8s.io".parse().unwrap()]);
    };
    play(scenario().idle().tuned(without), async |w| {
        serve(w, &[gateway_policies(), network_policies()]).await;
        w.start().await;
        w.apply(&model_api("llm")).await;
        let told = w
            .until("ModelAPI/llm has the reason Unsupported for Accepted", "ModelAPI/llm", |it| {
                condition(it, "Accepted")["reason"] == "Unsupported"
            })
            .await;
        let why = condition(&told, "Accepted")["message"].as_str().unwrap().to_owned();
        assert!(why.contains("NetworkPolicy") && why.contains("--without"), "{why}");
        for sort in [Sort::Watch, Sort::Read, Sort::Write, Sort::DryRun, Sort::Refused] {
            let asked = w.requests(sort).into_iter().map(|it| it.to_string()).find(|it| it.contains("networkpolicies"));
            assert_eq!(asked, None, "the operator sends no request for this type");
        }
    });
}
