//! A ServiceAccount for each Agent.

use kaos_policy::guard::UserPrivileges;
use kaos_tests::case;
use kaos_tests::harness::read::{controller, uid};
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{Scenario, condition, play, reason};
use serde_json::{Value, json};

const ACCOUNT: &str = "ServiceAccount/kaos-agent-a";
const ENABLED: &str = "settings.kaos.tools/serviceAccount.enabled";

/// Returns a scenario in which the operator's owner sets the audience of the agents' tokens.
fn scenario() -> Scenario {
    let mut environment = case::default_environment().unwrap();
    environment.insert("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE".to_owned(), "kaos-gateway".to_owned());
    Scenario::default().environment(&environment)
}

fn with_account() -> Value {
    let mut agent = agent("a", "llm", &json!({}));
    agent["metadata"]["annotations"] = json!({ENABLED: "true"});
    agent
}

#[test]
fn an_agent_has_an_account_while_the_setting_is_on() {
    // The flag forbids privileges to users, but the audience comes from the operator's owner and not from the object.
    // So the operator must serve the object.
    play(scenario().tuned(|options| options.user_privileges = UserPrivileges::Forbidden), async |w| {
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
fn an_account_made_by_an_earlier_operator_is_taken_over() {
    play(scenario().idle(), async |w| {
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

#[test]
fn a_token_for_an_audience_without_privilege_or_setting_is_refused() {
    let refused = Scenario::default().tuned(|options| options.user_privileges = UserPrivileges::Forbidden);
    play(refused, async |w| {
        let token = json!({"serviceAccountToken": {"path": "t", "audience": "sts.amazonaws.com"}});
        let volume = json!({"name": "cloud", "projected": {"sources": [token]}});
        let own = agent("own", "llm", &json!({"podSpec": {"volumes": [volume]}}));
        w.apply_all(&[model_api("llm"), own, with_account()]).await;
        let told = async |which: &str| {
            let told = w
                .until("the condition Accepted has the reason InvalidSpec", which, |it| {
                    reason(it, "Accepted") == "InvalidSpec"
                })
                .await;
            condition(&told, "Accepted")["message"].as_str().unwrap().to_owned()
        };
        let message = told("Agent/own").await;
        let field = "spec.podSpec.volumes[0].projected.sources[0].serviceAccountToken.audience: ";
        assert!(message.starts_with(field) && message.contains("privilege tokenAudiences"), "{message}");
        let message = told("Agent/a").await;
        assert!(message.starts_with("settings.serviceAccount.audience: is not set"), "{message}");
        w.quiet().await;
        for none in ["Deployment/agent-own", "Deployment/agent-a", ACCOUNT] {
            assert!(w.look(none).await.is_null(), "{none}");
        }
    });
}
