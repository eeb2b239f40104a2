//! Tests `AccessGrants` and the `AuthorizationPolicy`. The ConfigMap of the `AuthorizationPolicy` contains the
//! `AccessGrants` for the gateway's decision point.

use std::collections::BTreeMap;

use kaos_tests::harness::read::{controller, entries};
use kaos_tests::harness::samples::{agent, mcp_server, model_api, namespace};
use kaos_tests::harness::scenario::SYSTEM;
use kaos_tests::harness::{Scenario, World, condition, is_ready, is_true, play, reason};
use serde_json::{Value, json};

pub(crate) const GRANT: &str = "AccessGrant/readers";
pub(crate) const PROJECTION: &str = "kaos-system:AuthorizationPolicy/kaos-authz";
const CONFIG: &str = "kaos-system:ConfigMap/kaos-authz-policy";
const KEYS: &str = r#"{"keys":[{"kty":"RSA","kid":"1","n":"AQAB","e":"AQAB"}]}"#;

fn grant(subjects: &Value, resources: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "AccessGrant", "metadata": {"name": "readers"},
        "spec": {"subjects": subjects, "resources": resources}})
}

/// Returns an AccessGrant that lets a group call one Agent.
pub(crate) fn readers() -> Value {
    grant(&json!([{"kind": "Group", "name": "staff"}]), &json!([{"kind": "Agent", "name": "plain"}]))
}

fn projection(more: &Value) -> Value {
    let mut spec = json!({"namespaces": ["n1", "n2"]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "AuthorizationPolicy",
        "metadata": {"name": "kaos-authz", "namespace": SYSTEM}, "spec": spec})
}

/// Returns the environment of an operator whose gateway authorizes requests.
pub(crate) fn secured() -> BTreeMap<String, String> {
    let all = [
        ("SECURITY_PDP_ENABLED", "true"),
        // Disable NetworkPolicies: the tests do not need this type, and the embedded cluster does not serve this type.
        ("SECURITY_NETWORK_POLICY_DISABLED", "true"),
        ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER", "https://cluster"),
        ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS", KEYS),
        ("SECURITY_USER_AUTH_ISSUER", "https://people"),
        ("SECURITY_USER_AUTH_AUDIENCE", "kaos"),
        ("SECURITY_USER_AUTH_JWKS", KEYS),
    ];
    let mut environment = kaos_tests::case::default_environment().unwrap();
    environment.extend(all.map(|(name, value)| (name.to_owned(), value.to_owned())));
    environment
}

/// Returns a scenario in the namespace n1, with an operator whose gateway authorizes requests. The policy of the
/// AuthorizationPolicy can read objects in the namespaces n1 and n2.
fn projecting() -> Scenario {
    let why = "the operator works in several namespaces";
    Scenario::embedded(why).environment(&secured()).within("n1").reading(&["n1", "n2"])
}

async fn with_namespaces(w: &World) {
    for name in [SYSTEM, "n2"] {
        w.apply(&namespace(name)).await;
    }
}

/// Returns the content of `data.json` in the ConfigMap.
pub(crate) fn data(config: &Value) -> Value {
    let text = config["data"]["data.json"].as_str().unwrap_or("{}");
    serde_json::from_str::<Value>(text).unwrap()["kaos"].clone()
}

#[test]
fn a_grant_without_gateway_authorization_says_that_it_is_not_enforced() {
    play(Scenario::default(), async |w| {
        w.apply(&readers()).await;
        let told = w.until("the grant is stalled", GRANT, |it| is_true(it, "Stalled")).await;
        assert_eq!(reason(&told, "Stalled"), "AuthorizationDisabled");
        assert_eq!(reason(&told, "Ready"), "AuthorizationDisabled");
        assert_eq!(condition(&told, "Ready")["status"], "False");
        let enforced = condition(&told, "Enforced");
        assert_eq!(
            (&enforced["status"], reason(&told, "Enforced").as_str()),
            (&json!("False"), "AuthorizationDisabled")
        );
        let message = "Gateway authorization is not enabled; this AccessGrant is not enforced";
        assert_eq!((&enforced["message"], &told["status"]["message"]), (&json!(message), &json!(message)));
        assert_eq!(enforced["observedGeneration"], told["metadata"]["generation"]);
        w.until_true("an Event reports that the grant is not enforced", async || {
            let events = w.list("Event").await;
            events.iter().any(|event| event["note"] == message || event["message"] == message)
        })
        .await;
        w.delete(GRANT).await;
        w.until_gone(GRANT).await;
    });
}

#[test]
fn a_grant_needs_either_name_or_selector_and_is_refused_with_the_path() {
    play(Scenario::default(), async |w| {
        let both = json!({"kind": "Agent", "name": "a", "selector": {"matchLabels": {"x": "y"}}});
        w.apply(&grant(&json!([{"kind": "User", "name": "ada"}]), &json!([{"kind": "ModelAPI"}, both]))).await;
        let refused = w
            .until("the condition Accepted has the reason InvalidSpec", GRANT, |it| {
                reason(it, "Accepted") == "InvalidSpec"
            })
            .await;
        let message = condition(&refused, "Accepted")["message"].to_string();
        assert!(message.contains("spec.resources[0]: give name or selector"), "{message}");
        assert!(message.contains("spec.resources[1]: give either name or selector"), "{message}");
        assert_eq!(reason(&refused, "Enforced"), "InvalidSpec");
        assert!(is_true(&refused, "Stalled"));
    });
}

#[test]
fn a_grant_for_users_needs_an_identity_provider_for_them() {
    let mut environment = secured();
    environment.remove("SECURITY_USER_AUTH_ISSUER");
    play(Scenario::embedded("the operator has another environment").environment(&environment), async |w| {
        w.apply(&readers()).await;
        let told = w
            .until("the condition Enforced has the reason NoUserIdentityProvider", GRANT, |it| {
                reason(it, "Enforced") == "NoUserIdentityProvider"
            })
            .await;
        assert!(is_true(&told, "Stalled") && !is_ready(&told), "{told:#}");
        let message = condition(&told, "Enforced")["message"].to_string();
        assert!(message.contains("A user identity provider must be configured"), "{message}");
        // Let the AccessGrant name an Agent instead of a group. The gateway identifies an Agent by the Agent's
        // ServiceAccount, so no identity provider is needed.
        w.apply(&grant(&json!([{"kind": "Agent", "name": "a"}]), &json!([{"kind": "ModelAPI", "name": "llm"}]))).await;
        let waits = |it: &Value| reason(it, "Enforced") == "PolicyProjectionInactive" && is_true(it, "Reconciling");
        w.until("the grant waits for the projection", GRANT, waits).await;
    });
}

#[test]
fn a_grant_is_enforced_once_the_decision_point_has_its_generation() {
    play(projecting(), async |w| {
        with_namespaces(w).await;
        w.apply_all(&[model_api("llm"), mcp_server("sums"), readers()]).await;
        let links = json!({"mcpServers": ["sums"], "config": {"autonomous": {"goal": "watch"}}});
        w.apply(&agent("watcher", "llm", &links)).await;
        w.until("the condition Enforced has the reason PolicyProjectionInactive", GRANT, |it| {
            reason(it, "Enforced") == "PolicyProjectionInactive"
        })
        .await;
        w.apply(&projection(&json!({}))).await;
        w.until_ready(PROJECTION).await;
        w.until_ready(GRANT).await;
        let config = w.look(CONFIG).await;
        assert_eq!(
            (&controller(&config)["kind"], &controller(&config)["name"]),
            (&json!("AuthorizationPolicy"), &json!("kaos-authz"))
        );
        assert_eq!(config["data"]["policy.rego"], kaos_authorization::RULES);
        let known = data(&config);
        let watcher = "kaos://agent/n1/watcher";
        assert_eq!(known["grants"][watcher], json!(["kaos://mcpserver/n1/sums", "kaos://modelapi/n1/llm"]));
        assert_eq!(known["agents"][watcher]["autonomous"], true);
        let account = "system:serviceaccount:n1:kaos-agent-watcher";
        assert_eq!(known["agents"][watcher]["issuer_sub"], json!({"issuer": "https://cluster", "sub": account}));
        assert_eq!(known["user_grants"], json!({"group:staff": ["kaos://agent/n1/plain"]}));
        assert_eq!(known["user"], json!({"issuer": "https://people", "audience": "kaos"}));

        // Change the AccessGrant. Its status must report that it is in force only after the ConfigMap contains the
        // change.
        let by_label = json!([{"kind": "MCPServer", "selector": {"matchLabels": {"team": "maths"}}}]);
        let changed = w.apply(&grant(&json!([{"kind": "User", "name": "ada"}]), &by_label)).await;
        let has_it = |it: &Value| {
            condition(it, "Enforced")["observedGeneration"] == changed["metadata"]["generation"]
                && is_true(it, "Enforced")
        };
        w.until("the changed grant is enforced", GRANT, has_it).await;
        assert_eq!(data(&w.look(CONFIG).await)["user_grants"], json!({"user:ada": []}));
        w.patch("MCPServer/sums", &json!({"metadata": {"labels": {"team": "maths"}}})).await;
        let opens = |it: &Value| data(it)["user_grants"] == json!({"user:ada": ["kaos://mcpserver/n1/sums"]});
        w.until("the label gives access to the server", CONFIG, opens).await;
        w.delete(GRANT).await;
        w.until("the grant is withdrawn", CONFIG, |it| data(it)["user_grants"] == json!({})).await;
    });
}

#[test]
fn a_projection_contains_objects_of_all_listed_namespaces_and_no_others() {
    play(projecting(), async |w| {
        with_namespaces(w).await;
        w.apply(&namespace("n3")).await;
        for at in ["n2", "n3"] {
            let mut one = readers();
            one["metadata"]["namespace"] = json!(at);
            w.apply(&one).await;
        }
        w.apply(&projection(&json!({}))).await;
        w.until_ready(PROJECTION).await;
        w.until_ready("n2:AccessGrant/readers").await;
        assert_eq!(data(&w.look(CONFIG).await)["user_grants"], json!({"group:staff": ["kaos://agent/n2/plain"]}));
        let outside = w
            .until("the condition Stalled of n3:AccessGrant/readers is True", "n3:AccessGrant/readers", |it| {
                is_true(it, "Stalled")
            })
            .await;
        assert_eq!(reason(&outside, "Enforced"), "PolicyProjectionInactive");
        assert!(condition(&outside, "Enforced")["message"].to_string().contains("does not list namespace n3"));

        // Let the AuthorizationPolicy name a namespace that the operator's owner did not list. The operator must not
        // read this namespace, and must leave the data of the decision point unchanged.
        w.patch(PROJECTION, &json!({"spec": {"namespaces": ["n1", "n2", "n3"]}})).await;
        let refused = w
            .until("the condition Resolved has the reason NotPermitted", PROJECTION, |it| {
                reason(it, "Resolved") == "NotPermitted"
            })
            .await;
        assert!(condition(&refused, "Resolved")["message"].to_string().contains("--read-namespaces"), "{refused:#}");
        assert!(is_true(&refused, "Stalled"));
        assert_eq!(data(&w.look(CONFIG).await)["user_grants"], json!({"group:staff": ["kaos://agent/n2/plain"]}));
    });
}

#[test]
fn a_projection_elsewhere_reads_no_other_namespace() {
    play(projecting(), async |w| {
        with_namespaces(w).await;
        let mut own = projection(&json!({"namespaces": ["n2"]}));
        own["metadata"]["namespace"] = json!("n1");
        w.apply(&own).await;
        let at = "AuthorizationPolicy/kaos-authz";
        w.until("the projection may not read", at, |it| reason(it, "Resolved") == "NotPermitted").await;
        assert!(w.look("ConfigMap/kaos-authz-policy").await.is_null());
    });
}

#[test]
fn the_config_map_of_the_earlier_operator_is_taken_over() {
    play(projecting().idle(), async |w| {
        with_namespaces(w).await;
        let left = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kaos-authz-policy",
            "namespace": SYSTEM, "labels": {"app.kubernetes.io/managed-by": "kaos-operator-authz"}},
            "data": {"policy.rego": "package old", "data.json": r#"{"kaos":{"grants":{}}}"#}});
        let before = w.apply_as("kaos-operator-authz", &left).await.unwrap();
        w.apply_all(&[readers(), projection(&json!({}))]).await;
        w.start().await;
        w.until_ready(PROJECTION).await;
        let after = w.look(CONFIG).await;
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["data"]["policy.rego"], kaos_authorization::RULES);
        assert_eq!(controller(&after)["kind"], "AuthorizationPolicy");
        assert_ne!(entries(&after, "labels")["app.kubernetes.io/managed-by"], "kaos-operator-authz");
        w.until_ready(GRANT).await;
    });
}

#[test]
fn manual_data_and_rules_stay_as_their_author_wrote_them() {
    play(projecting(), async |w| {
        with_namespaces(w).await;
        w.apply_all(&[readers(), projection(&json!({}))]).await;
        w.until_ready(GRANT).await;
        w.patch(PROJECTION, &json!({"spec": {"dataSource": "manual", "regoOverride": true}})).await;
        let told = |it: &Value| reason(it, "Enforced") == "PolicyProjectionInactive";
        w.until("the grant reports the inactive projection", GRANT, told).await;
        w.quiet().await;
        // The ConfigMap must keep the data that the operator wrote last, until a user replaces these data.
        assert_eq!(data(&w.look(CONFIG).await)["user_grants"], json!({"group:staff": ["kaos://agent/n1/plain"]}));
        let theirs = json!({"data.json": r#"{"kaos":{"mine":true}}"#, "policy.rego": "package mine"});
        w.patch(CONFIG, &json!({"data": theirs})).await;
        w.patch("AccessGrant/readers", &json!({"metadata": {"labels": {"x": "y"}}})).await;
        w.quiet().await;
        assert_eq!(w.look(CONFIG).await["data"], theirs);
        w.patch(PROJECTION, &json!({"spec": {"dataSource": "automated", "regoOverride": false}})).await;
        w.until_ready(GRANT).await;
        assert_eq!(w.look(CONFIG).await["data"]["policy.rego"], kaos_authorization::RULES);
    });
}

#[test]
fn a_settled_projection_causes_no_requests() {
    play(projecting(), async |w| {
        with_namespaces(w).await;
        w.apply_all(&[model_api("llm"), readers(), projection(&json!({})), agent("a", "llm", &json!({}))]).await;
        w.until_ready(GRANT).await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        w.forget_requests();
        // Cause a pass over the AuthorizationPolicy. This pass must read and write nothing.
        w.patch("Agent/a", &json!({"metadata": {"labels": {"x": "y"}}})).await;
        w.quiet().await;
        assert!(w.reads().is_empty(), "{:#?}", w.reads());
        let writes = w.writes_by_type();
        assert!(
            !writes.contains_key("configmaps") && !writes.contains_key("authorizationpolicies/status"),
            "{writes:?}"
        );
    });
}
