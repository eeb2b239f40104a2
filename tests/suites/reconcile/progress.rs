//! D14, D15: the conditions `Reconciling` and `Stalled`. Other tools read these conditions to decide whether to wait
//! for an object or to report a failure.
//!
//! Each test also compares the object with its record. `tests/gitops` checks these records with the libraries of Flux,
//! kpt and Argo CD.

use std::time::Duration;

use kaos_cluster::{PodFate, faults::Failure};
use kaos_tests::gadget::gadget;
use kaos_tests::harness::read::text;
use kaos_tests::harness::samples::{agent, deployment, mcp_server, memory_store, model_api, model_api_for};
use kaos_tests::harness::{Fault, Scenario, World, condition, is_real, is_true, play};
use kaos_tests::verdicts::{Verdict, compare};
use serde_json::{Value, json};

use crate::support::{web, web_with};

const BOTH: [&str; 2] = ["Reconciling", "Stalled"];

/// Waits until the condition `of` is true for this reason.
///
/// Asserts that the object does not have the other one of the two conditions in `BOTH`.
async fn until_told(w: &World, at: &str, of: &str, reason: &str) -> Value {
    let told = w
        .until(&format!("{at} is {of} with the reason {reason}"), at, |object| {
            is_true(object, of) && condition(object, of)["reason"] == reason
        })
        .await;
    for other in BOTH.iter().filter(|other| **other != of) {
        assert!(condition(&told, other).is_null(), "{told:#}");
    }
    assert_eq!(told["status"]["observedGeneration"], told["metadata"]["generation"]);
    told
}

/// Compares an object and the expected verdict with their record in `tests/gitops`.
///
/// Does nothing on a real cluster, because the namespace has another name in each run.
fn record(name: &str, verdict: Verdict, object: &Value) {
    if !is_real() {
        compare(name, &verdict.record(object));
    }
}

async fn until_neither(w: &World, at: &str) -> Value {
    let ready = w.until_ready(at).await;
    for of in BOTH {
        assert!(condition(&ready, of).is_null(), "{ready:#}");
    }
    ready
}

#[test]
fn d14_an_invalid_object_is_stalled_with_our_message_and_not_reconciling() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api_for("llm", &["tiny"]), agent("a", "llm", &json!({"model": "huge"}))]).await;
        let told = until_told(w, "Agent/a", "Stalled", "InvalidSpec").await;
        let stalled = condition(&told, "Stalled");
        assert!(text(&stalled["message"]).contains("spec.model"), "{told:#}");
        assert_eq!(stalled["message"], condition(&told, "Accepted")["message"]);
        record("invalid-spec", Verdict::Fails, &told);
        w.apply(&agent("a", "llm", &json!({"model": "tiny"}))).await;
        until_neither(w, "Agent/a").await;
    });
}

#[test]
fn d14_a_waiting_object_is_reconciling_and_a_ready_one_has_neither_condition() {
    play(Scenario::default(), async |w| {
        w.apply(&agent("a", "llm", &json!({}))).await;
        let told = w
            .until("the condition Reconciling of Agent/a is True", "Agent/a", |agent| is_true(agent, "Reconciling"))
            .await;
        assert!(condition(&told, "Stalled").is_null(), "{told:#}");
        w.quiet().await;
        let told = w.look("Agent/a").await;
        assert!(is_true(&told, "Reconciling"), "{told:#}");
        assert!(text(&condition(&told, "Reconciling")["message"]).contains("llm"), "{told:#}");
        record("waiting", Verdict::Waits, &told);
        w.apply(&model_api("llm")).await;
        let ready = until_neither(w, "Agent/a").await;
        record("ready", Verdict::Done, &ready);
    });
}

#[test]
fn d14_a_problem_that_only_a_person_can_solve_is_stalled() {
    play(Scenario::default(), async |w| {
        let does = |what: &str| web_with(&json!({"does": what}));
        for (record_name, what, reason) in [
            ("unsupported", "give-up", "Unsupported"),
            ("policy-failed", "trap", "PolicyFailed"),
            ("guard-refused", "stray", "GuardRefused"),
            ("apply-failed", "misspell", "ApplyFailed"),
            ("report-failed", "faint", "Unavailable"),
        ] {
            w.apply(&does(what)).await;
            let told = until_told(w, "Gadget/web", "Stalled", reason).await;
            assert!(!text(&condition(&told, "Stalled")["message"]).is_empty(), "{told:#}");
            record(record_name, Verdict::Fails, &told);
        }
        w.apply(&web()).await;
        until_neither(w, "Gadget/web").await;
        w.apply(&deployment("taken", "stranger:1")).await;
        w.apply(&gadget("taken", &json!({}))).await;
        let told = until_told(w, "Gadget/taken", "Stalled", "OwnershipConflict").await;
        record("ownership-conflict", Verdict::Fails, &told);
    });
}

#[test]
fn d14_an_object_without_a_policy_is_stalled_also_if_it_ran() {
    play(Scenario::embedded("the test removes a policy from the process"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.withdraw("Gadget");
        let told = until_told(w, "Gadget/web", "Stalled", "NoPolicy").await;
        record("no-policy", Verdict::Fails, &told);
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        let told = w
            .until("the status shows the next generation", "Gadget/web", |gadget| {
                gadget["status"]["observedGeneration"] == 2 && is_true(gadget, "Stalled")
            })
            .await;
        assert_eq!(condition(&told, "Ready")["status"], "Unknown", "{told:#}");
        record("no-policy-for-an-edit", Verdict::Fails, &told);
    });
}

#[test]
fn d14_a_problem_that_may_end_by_itself_is_reconciling() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.pods(PodFate::NotReady);
        w.apply(&web()).await;
        let told = until_told(w, "Gadget/web", "Reconciling", "Progressing").await;
        record("progressing", Verdict::Waits, &told);
        w.apply(&gadget("late", &json!({"after": "web"}))).await;
        let told = until_told(w, "Gadget/late", "Reconciling", "Gated").await;
        record("gated", Verdict::Waits, &told);
        let mut pinned = gadget("pinned", &json!({}));
        pinned["metadata"]["annotations"] = json!({"kaos.tools/policy": "nobody"});
        w.apply(&pinned).await;
        let told = until_told(w, "Gadget/pinned", "Reconciling", "PolicyNotFound").await;
        record("policy-not-found", Verdict::Waits, &told);
        w.break_it(Fault::on(&["patch"]).of("deployments").fail(Failure::QuotaConflict));
        w.apply(&gadget("refused", &json!({}))).await;
        let told = until_told(w, "Gadget/refused", "Reconciling", "ApplyFailed").await;
        record("apply-retried", Verdict::Waits, &told);
        w.mend();
        w.pods(PodFate::ReadyAfter(Duration::ZERO));
        for at in ["Gadget/web", "Gadget/late", "Gadget/refused"] {
            until_neither(w, at).await;
        }
    });
}

#[test]
fn d14_the_two_conditions_cost_no_write_of_their_own() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        let history = w.history("Agent/a").await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        let others = |agent: &Value| -> Vec<Value> {
            let told = agent["status"]["conditions"].as_array().cloned().unwrap_or_default();
            told.into_iter().filter(|it| !BOTH.contains(&text(&it["type"]))).collect()
        };
        let states = history.states();
        for pair in states.windows(2) {
            let progress = |agent: &Value| BOTH.map(|of| condition(agent, of));
            if progress(&pair[0]) != progress(&pair[1]) {
                assert_ne!(others(&pair[0]), others(&pair[1]), "{:#}", pair[1]);
            }
        }
        assert!(states.iter().any(|agent| is_true(agent, "Reconciling")), "no status was Reconciling: {states:#?}");
        w.forget_requests();
        w.pass_time(Duration::from_mins(20)).await;
        assert_eq!(w.writes(), [""; 0], "a steady state writes nothing");
    });
}

#[test]
fn d15_a_new_object_is_not_observed_before_the_first_pass() {
    play(Scenario::default().idle(), async |w| {
        let objects =
            [model_api("llm"), mcp_server("tools"), memory_store("memory", "llm"), agent("a", "llm", &json!({}))];
        w.apply_all(&objects).await;
        for object in &objects {
            let at = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
            let new = w.look(&at).await;
            assert_eq!(new["status"], json!({"observedGeneration": -1, "ready": false}), "{at}");
            record(&format!("new-{}", text(&object["kind"]).to_lowercase()), Verdict::Waits, &new);
        }
        w.start().await;
        let ready = until_neither(w, "Agent/a").await;
        assert_eq!(ready["status"]["observedGeneration"], ready["metadata"]["generation"]);
    });
}
