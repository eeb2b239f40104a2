//! D1, D11: the status while the running pods do not yet match the object's newest generation.

use kaos_tests::harness::read::text;
use kaos_tests::harness::samples::{agent, model_api, model_api_for};
use kaos_tests::harness::{Scenario, condition, is_ready, play, reason};
use serde_json::{Value, json};

fn message(object: &Value) -> &str {
    text(&object["status"]["message"])
}

#[test]
fn d11_a_stuck_rollout_is_reported_while_pods_of_an_older_generation_serve() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        w.until_ready("Agent/a").await;
        for (spec, named) in [
            (agent("a", "nowhere", &json!({})), "nowhere"),
            (agent("a", "llm", &json!({"mcpServers": ["nothing"]})), "nothing"),
        ] {
            let generation = w.apply(&spec).await["metadata"]["generation"].clone();
            let told = w
                .until("the status reports the stuck rollout", "Agent/a", |agent| {
                    agent["status"]["observedGeneration"] == generation && agent["status"]["phase"] == "Waiting"
                })
                .await;
            assert_eq!(told["status"]["ready"], true, "the pods serve: {told:#}");
            assert_eq!(condition(&told, "Applied")["status"], "False");
            for part in [format!("generation {generation} is not applied"), named.into(), "generation 1 runs".into()] {
                assert!(message(&told).contains(&part), "{part}: {told:#}");
                assert!(text(&condition(&told, "Ready")["message"]).contains(&part), "{part}: {told:#}");
            }
        }
        w.apply(&agent("a", "llm", &json!({}))).await;
        let told =
            w.until("Agent/a runs", "Agent/a", |agent| is_ready(agent) && agent["status"]["phase"] == "Ready").await;
        assert!(!message(&told).contains("not applied"), "{told:#}");
    });
}

#[test]
fn d11_ready_names_only_applied_generations_so_that_kubectl_wait_waits() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        let ready = w.until_ready("Agent/a").await;
        assert!(satisfies_kubectl_wait(&ready, "Ready"), "{ready:#}");
        w.apply(&agent("a", "nowhere", &json!({}))).await;
        let told = w.until("the Agent waits", "Agent/a", |agent| agent["status"]["phase"] == "Waiting").await;
        let is_ready = condition(&told, "Ready");
        assert_eq!((&is_ready["status"], &is_ready["observedGeneration"]), (&json!("True"), &json!(1)), "{told:#}");
        assert_eq!(condition(&told, "Applied")["observedGeneration"], 2, "{told:#}");
        assert!(!satisfies_kubectl_wait(&told, "Ready"), "{told:#}");
        w.apply(&agent("a", "llm", &json!({"config": {"instructions": "be brief"}}))).await;
        let told =
            w.until("the third generation runs", "Agent/a", |agent| satisfies_kubectl_wait(agent, "Ready")).await;
        assert_eq!((&told["metadata"]["generation"], &told["status"]["appliedGeneration"]), (&json!(3), &json!(3)));
    });
}

/// Returns whether `kubectl wait --for=condition=…` would succeed. `kubectl wait` ignores a condition that another
/// generation of the object caused.
fn satisfies_kubectl_wait(object: &Value, of: &str) -> bool {
    let condition = condition(object, of);
    let observed = condition["observedGeneration"].as_i64().or(object["status"]["observedGeneration"].as_i64());
    let is_old = observed.is_some_and(|observed| Some(observed) < object["metadata"]["generation"].as_i64());
    condition["status"] == "True" && !is_old
}

#[test]
fn d11_a_deleted_dependency_leaves_the_phase_of_running_pods() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        w.until_ready("Agent/a").await;
        w.delete("ModelAPI/llm").await;
        let told = w
            .until("the Agent reports the deleted ModelAPI", "Agent/a", |agent| reason(agent, "Resolved") == "NotFound")
            .await;
        assert_eq!((&told["status"]["phase"], &told["status"]["ready"]), (&json!("Ready"), &json!(true)));
    });
}

#[test]
fn d1_the_path_of_an_error_is_in_the_message_in_ready_and_in_the_table() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api_for("llm", &["tiny"]), agent("a", "llm", &json!({"model": "huge"}))]).await;
        let told = w
            .until("Agent/a has the reason InvalidSpec for Accepted", "Agent/a", |agent| {
                reason(agent, "Accepted") == "InvalidSpec"
            })
            .await;
        let accepted = text(&condition(&told, "Accepted")["message"]).to_owned();
        assert!(accepted.contains("spec.model"), "{told:#}");
        assert_eq!(message(&told), accepted);
        assert_eq!(condition(&told, "Ready")["message"], *accepted);
        let table = w.table(&format!("/apis/kaos.tools/v1alpha1/namespaces/{}/agents", w.namespace)).await;
        let columns = table["columnDefinitions"].as_array().unwrap();
        let at = columns.iter().position(|column| column["name"] == "Message").unwrap();
        assert_eq!(table["rows"][0]["cells"][at], *accepted, "{table:#}");
    });
}
