//! Tests the objects that the operator creates and repairs for the chart's decision point.

use kaos_crds::access::AuthorizationPolicySpec;
use kaos_operator::decision_point::DecisionPoint;
use kaos_operator::operator::Options;
use kaos_tests::harness::read::text;
use kaos_tests::harness::samples::{agent, definition, model_api, namespace};
use kaos_tests::harness::scenario::SYSTEM;
use kaos_tests::harness::{Scenario, World, condition, is_true, play, reason};
use serde_json::{Value, json};

use crate::grants::{GRANT, PROJECTION, data, readers, secured};

const CONFIG: &str = "kaos-system:ConfigMap/rules";

fn options(namespaces: &[&str]) -> DecisionPoint {
    let namespaces = namespaces.iter().map(|&namespace| namespace.to_owned()).collect();
    let spec = AuthorizationPolicySpec { namespaces, config_map: "rules".to_owned(), ..Default::default() };
    DecisionPoint { spec, is_served: true }
}

/// Returns a scenario with an operator that keeps the decision point's objects up to date for all namespaces.
fn keeping(tune: fn(&mut Options)) -> Scenario {
    let why = "the operator works in several namespaces";
    Scenario::embedded(why).environment(&secured()).within("n1").reading(&["*"]).tuned(tune).idle()
}

fn everywhere(options: &mut Options) {
    options.decision_point = Some(self::options(&[]));
}

/// Applies the operator's namespace, a second namespace, and the CustomResourceDefinition of `ReferenceGrants`.
async fn prepare(w: &World) {
    let mut references = definition("gateway.networking.k8s.io", "referencegrants", "ReferenceGrant");
    references["spec"]["versions"][0]["name"] = json!("v1beta1");
    references["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for tests"});
    w.apply(&references).await;
    for name in [SYSTEM, "n2"] {
        w.apply(&namespace(name)).await;
    }
}

fn listed(policy: &Value) -> Vec<&str> {
    policy["spec"]["namespaces"].as_array().into_iter().flatten().map(text).collect()
}

fn in_namespace(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

#[test]
fn a_namespace_with_its_first_object_comes_into_the_data_without_a_change_by_a_person() {
    play(keeping(everywhere), async |w| {
        prepare(w).await;
        w.apply(&readers()).await;
        w.start().await;
        let policy = w.until_ready(PROJECTION).await;
        assert_eq!(listed(&policy), ["n1"]);
        w.until_ready(GRANT).await;
        assert_eq!(data(&w.look(CONFIG).await)["user_grants"], json!({"group:staff": ["kaos://agent/n1/plain"]}));

        w.apply(&in_namespace(readers(), "n2")).await;
        w.until_ready("n2:AccessGrant/readers").await;
        assert_eq!(listed(&w.look(PROJECTION).await), ["n1", "n2"]);
        let both = json!({"group:staff": ["kaos://agent/n1/plain", "kaos://agent/n2/plain"]});
        assert_eq!(data(&w.look(CONFIG).await)["user_grants"], both);
        // The ReferenceGrant must let the SecurityPolicies of a namespace refer to the decision point's Service, and to
        // no other object.
        let grant = w.look("kaos-system:ReferenceGrant/kaos-pdp-n2").await;
        let from = json!([{"group": "gateway.envoyproxy.io", "kind": "SecurityPolicy", "namespace": "n2"}]);
        let to = json!([{"group": "", "kind": "Service", "name": "kaos-pdp"}]);
        assert_eq!((&grant["spec"]["from"], &grant["spec"]["to"]), (&from, &to));
    });
}

#[test]
fn a_start_without_a_change_writes_no_object_of_the_decision_point() {
    play(keeping(everywhere), async |w| {
        prepare(w).await;
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({})), readers()]).await;
        w.start().await;
        w.until_ready(GRANT).await;
        w.quiet().await;
        let before = w.look(PROJECTION).await["metadata"]["resourceVersion"].clone();
        w.forget_requests();
        w.restart().await;
        w.quiet().await;
        assert_eq!(w.look(PROJECTION).await["metadata"]["resourceVersion"], before);
        let writes = w.writes_by_type();
        assert!(!writes.contains_key("authorizationpolicies") && !writes.contains_key("referencegrants"), "{writes:?}");
    });
}

#[test]
fn a_deleted_authorization_policy_comes_back_with_its_data() {
    play(keeping(everywhere), async |w| {
        prepare(w).await;
        w.apply(&readers()).await;
        w.start().await;
        let before = w.until_ready(PROJECTION).await["metadata"]["uid"].clone();
        w.delete(PROJECTION).await;
        w.until("it is there again", PROJECTION, |it| !it.is_null() && it["metadata"]["uid"] != before).await;
        w.until_ready(GRANT).await;
    });
}

#[test]
fn only_listed_namespaces_come_into_the_data() {
    let only_n2 = |options: &mut Options| options.decision_point = Some(self::options(&["n2"]));
    play(keeping(only_n2).reading(&["n2"]), async |w| {
        prepare(w).await;
        w.apply_all(&[readers(), in_namespace(readers(), "n2")]).await;
        w.start().await;
        w.until_ready("n2:AccessGrant/readers").await;
        let outside = w.until("it is told", GRANT, |it| is_true(it, "Stalled")).await;
        assert_eq!(reason(&outside, "Enforced"), "PolicyProjectionInactive");
        assert!(condition(&outside, "Enforced")["message"].to_string().contains("does not list namespace n1"));
        assert_eq!(listed(&w.look(PROJECTION).await), ["n2"]);
    });
}

#[test]
fn without_an_object_the_decision_point_has_rules_that_deny_everything() {
    play(keeping(everywhere), async |w| {
        prepare(w).await;
        w.start().await;
        let policy = w.until_ready(PROJECTION).await;
        assert_eq!(listed(&policy), [SYSTEM]);
        let config = w.look(CONFIG).await;
        assert_eq!(config["data"]["policy.rego"], kaos_authorization::RULES);
        assert_eq!(data(&config)["grants"], json!({}));
    });
}

#[test]
fn a_changed_list_is_written_again() {
    play(keeping(everywhere), async |w| {
        prepare(w).await;
        w.apply(&readers()).await;
        w.start().await;
        w.until_ready(GRANT).await;
        w.patch(PROJECTION, &json!({"spec": {"namespaces": ["n2"]}})).await;
        w.until("the list is as before", PROJECTION, |it| listed(it) == ["n1"]).await;
        w.until_ready(GRANT).await;
    });
}
