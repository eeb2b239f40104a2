//! A ServiceAccount for each Agent.

use kaos_tests::harness::read::{controller, uid};
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{Scenario, play};
use serde_json::{Value, json};

const ACCOUNT: &str = "ServiceAccount/kaos-agent-a";
const ENABLED: &str = "settings.kaos.tools/serviceAccount.enabled";

fn with_account() -> Value {
    let mut agent = agent("a", "llm", &json!({}));
    agent["metadata"]["annotations"] = json!({ENABLED: "true"});
    agent
}

#[test]
fn an_agent_gets_an_account_by_a_setting_and_loses_it_with_that() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api("llm"), with_account()]).await;
        w.until_ready("Agent/a").await;
        let account = w.look(ACCOUNT).await;
        assert_eq!(
            (&controller(&account)["kind"], &account["automountServiceAccountToken"]),
            (&json!("Agent"), &json!(false))
        );
        let pod = |it: &Value| it["spec"]["template"]["spec"].clone();
        let runs = pod(&w.look("Deployment/agent-a").await);
        assert_eq!(runs["serviceAccountName"], "kaos-agent-a");
        let token = &runs["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"];
        assert_eq!((&token["audience"], &token["path"]), (&json!("kaos-gateway"), &json!("token")));
        w.patch("Agent/a", &json!({"metadata": {"annotations": {ENABLED: null}}})).await;
        w.until_gone(ACCOUNT).await;
        let runs = pod(&w.look("Deployment/agent-a").await);
        assert!(runs["serviceAccountName"].is_null() && runs["volumes"].is_null(), "{runs:#}");
    });
}

#[test]
fn an_account_that_an_earlier_operator_made_for_the_agent_is_taken_over() {
    play(Scenario::default().idle(), async |w| {
        let made = w.apply(&with_account()).await;
        let owner = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "a", "uid": uid(&made),
            "controller": true, "blockOwnerDeletion": true});
        let labels = json!({"app.kubernetes.io/managed-by": "kaos-operator", "kaos.tools/agent": "a"});
        let left = json!({"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": false,
            "metadata": {"name": "kaos-agent-a", "labels": labels, "ownerReferences": [owner]}});
        let left = w.apply_as("manager", &left).await.unwrap();
        w.apply(&model_api("llm")).await;
        w.start().await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        let taken = w.look(ACCOUNT).await;
        assert_eq!((uid(&taken), &taken["metadata"]["labels"]["agent"]), (uid(&left), &json!("a")));
    });
}
