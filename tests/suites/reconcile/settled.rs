//! G9: after a restart, the operator asks no policy about an object whose proof shows that it is settled.

use std::time::Duration;

use fastrand::Rng;
use kaos_operator::operator::Options;
use kaos_tests::gadget::gadget;
use kaos_tests::harness::samples::{agent, mcp_server, model_api, secret};
use kaos_tests::harness::{Scenario, World, play};
use serde_json::{Value, json};

/// The number of random changes in one test.
const CHANGES: usize = 12;
/// The simulated time in which the operator makes and writes the proofs.
const QUIET: Duration = Duration::from_mins(5);
const RECORD: &str = "kaos-operator-settled-0";

fn scenario() -> Scenario {
    Scenario::embedded("the test counts answers of policies").tuned(|options: &mut Options| options.proofs = true)
}

/// Returns the number of answers that the running operator got from policies.
fn answers(w: &World) -> f64 {
    w.counted("kaos_operator_policy_answers_total", &[])
}

/// Returns the number of passes of the running operator over objects of a kind. Counts only the results `settled`,
/// `skipped` and `changed`.
fn looks(w: &World, kind: &str) -> f64 {
    let passes = |result: &str| w.counted("kaos_operator_passes_total", &[&format!("kind=\"{kind}\""), result]);
    ["settled", "skipped", "changed"].map(|result| passes(&format!("result=\"{result}\""))).iter().sum()
}

async fn furnished(w: &World) {
    w.apply_all(&[model_api("llm"), mcp_server("echo")]).await;
    let agents: Vec<Value> =
        (0..3).map(|number| agent(&format!("a{number}"), "llm", &json!({"mcpServers": ["echo"]}))).collect();
    w.apply_all(&agents).await;
    for name in ["ModelAPI/llm", "MCPServer/echo", "Agent/a0", "Agent/a1", "Agent/a2"] {
        w.until_ready(name).await;
    }
    w.quiet().await;
}

/// Waits in simulated time until the operator has made proofs for all objects, and stops the operator.
async fn proven(w: &World) {
    tokio::time::sleep(QUIET).await;
    w.stop_all().await;
    assert!(!w.look(&format!("kaos-system:ConfigMap/{RECORD}")).await.is_null());
}

/// Restarts the operator, and waits until it has made a pass over every object.
async fn restarted(w: &World) {
    w.start().await;
    let looked = || looks(w, "Agent") >= 3.0 && looks(w, "ModelAPI") >= 1.0 && looks(w, "MCPServer") >= 1.0;
    w.until_true("all objects had a pass", async || looked()).await;
    w.quiet().await;
}

#[test]
fn g9_after_a_restart_without_changes_no_policy_is_asked() {
    play(scenario(), async |w| {
        furnished(w).await;
        proven(w).await;
        w.forget_requests();
        restarted(w).await;
        assert_eq!(answers(w), 0.0);
        assert_eq!(w.writes(), [""; 0]);
        // Restart again: the third process must also use the proofs that the first process wrote.
        w.stop_all().await;
        restarted(w).await;
        assert_eq!(answers(w), 0.0);
        // The operator must notice changes of the needed objects and of the children of settled objects.
        w.delete("Deployment/agent-a1").await;
        w.until("the child is back", "Deployment/agent-a1", |it| !it.is_null()).await;
        w.patch("Agent/a0", &json!({"spec": {"config": {"description": "changed"}}})).await;
        w.until_ready("Agent/a0").await;
        assert!(answers(w) >= 2.0);
    });
}

#[test]
fn g9_deleted_and_damaged_records_only_cost_passes() {
    play(scenario(), async |w| {
        furnished(w).await;
        for damage in [true, false] {
            proven(w).await;
            let record = format!("kaos-system:ConfigMap/{RECORD}");
            if damage {
                w.patch(&record, &json!({"binaryData": {"proofs": "AAAA"}})).await;
            } else {
                w.delete(&record).await;
            }
            w.forget_requests();
            restarted(w).await;
            assert!(answers(w) >= 5.0);
            let writes: Vec<String> =
                w.writes().into_iter().filter(|write| !write.contains("kaos-operator-")).collect();
            assert_eq!(writes, [""; 0]);
        }
    });
}

#[test]
fn g9_an_object_that_never_settles_does_not_delay_the_records_of_others() {
    play(scenario(), async |w| {
        furnished(w).await;
        for number in 0..20 {
            w.patch("Agent/a0", &json!({"metadata": {"annotations": {"example.com/note": number.to_string()}}})).await;
            w.patch("Deployment/agent-a0", &json!({"spec": {"replicas": 2}})).await;
            tokio::time::sleep(Duration::from_secs(15)).await;
        }
        assert!(!w.look(&format!("kaos-system:ConfigMap/{RECORD}")).await.is_null());
        w.stop_all().await;
        restarted(w).await;
        assert!(answers(w) <= 1.0, "{} answers", answers(w));
    });
}

/// Changes one input of the passes over the Agent `a0`. Returns the name of this input.
async fn change(w: &World, which: usize, number: usize) -> &'static str {
    let value = format!("v{number}");
    let annotation = json!({"metadata": {"annotations": {"example.com/note": value}}});
    let (at, patch, what) = match which {
        0 => ("Agent/a0", json!({"spec": {"config": {"description": value}}}), "the spec"),
        1 => ("Agent/a0", json!({"metadata": {"labels": {"team": value}}}), "a label"),
        2 => ("Agent/a0", annotation, "an annotation"),
        3 => {
            w.patch_status("Agent/a0", &json!({"deployment": {"replicas": 50 + number}})).await;
            return "the status";
        }
        4 => ("Deployment/agent-a0", annotation, "an annotation of a child"),
        5 => ("Deployment/agent-a0", json!({"spec": {"replicas": 2 + number}}), "the spec of a child"),
        6 => {
            w.delete("Service/agent-a0").await;
            return "a deleted child";
        }
        _ => ("ModelAPI/llm", json!({"spec": {"proxyConfig": {"models": ["*", value]}}}), "another object"),
    };
    w.patch(at, &patch).await;
    what
}

#[test]
fn g9_after_any_change_of_an_input_the_proof_does_not_hold() {
    play(scenario(), async |w| {
        furnished(w).await;
        let mut rng = Rng::with_seed(7);
        for number in 0..CHANGES {
            proven(w).await;
            restarted(w).await;
            assert_eq!(answers(w), 0.0, "{number}: without a change, the proofs hold");
            w.stop_all().await;
            let which = if number < 8 { number } else { rng.usize(0..8) };
            let changed = change(w, which, number).await;
            restarted(w).await;
            assert!(answers(w) >= 1.0, "{number}: {changed} changed, and the operator asked no policy");
            let live = w.look("Deployment/agent-a0").await;
            assert_eq!(live["spec"]["replicas"], 1, "{number}: {changed}");
            assert!(!w.look("Service/agent-a0").await.is_null(), "{number}: {changed}");
        }
    });
}

#[test]
fn g9_after_a_change_of_a_secret_or_of_a_setting_the_proof_does_not_hold() {
    let both = |options: &mut Options| (options.proofs, options.secrets) = (true, true);
    let scenario = Scenario::embedded("the test counts answers of policies").tuned(both);
    play(scenario, async |w| {
        let restarted = async || {
            w.start().await;
            let looked = || looks(w, "Gadget") >= 1.0 && looks(w, "Agent") >= 3.0;
            w.until_true("all objects had a pass", async || looked()).await;
            w.quiet().await;
        };
        furnished(w).await;
        w.apply_all(&[secret("key", &json!({"token": "old"})), gadget("web", &json!({"token": "key"}))]).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        proven(w).await;
        restarted().await;
        assert_eq!(answers(w), 0.0);
        w.stop_all().await;
        w.apply(&secret("key", &json!({"token": "new"}))).await;
        restarted().await;
        assert_eq!(w.rollouts("web").await, 2);
        proven(w).await;
        let image = "registry.example/another-agent:1";
        w.set_environment("DEFAULT_AGENT_IMAGE", image);
        restarted().await;
        let live = w.look("Deployment/agent-a0").await;
        assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], image);
    });
}
