//! E2, E3, E7, E9, E10: errors, the objects that they affect, and how the operator recovers. The module `rejected`
//! tests children that the API server rejects.

use std::time::Duration;

use kaos_cluster::faults::{Attempt, Failure, Verdict};
use kaos_tests::gadget::{Edition, gadget};
use kaos_tests::harness::read::text;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, model_api, model_api_for};
use kaos_tests::harness::{Fault, Scenario, condition, is_ready, is_true, play, reason};
use serde_json::json;

use crate::support::{image, passes, web, web_with};

#[test]
fn e2_a_permanent_error_is_reported_once_and_retried_only_after_a_change() {
    play(Scenario::embedded("the test counts passes"), async |w| {
        w.apply(&web_with(&json!({"does": "refuse"}))).await;
        w.until("Gadget/web has the reason InvalidSpec for Accepted", "Gadget/web", |gadget| {
            reason(gadget, "Accepted") == "InvalidSpec"
        })
        .await;
        w.until_warned("Gadget/web", "InvalidSpec").await;
        let before = passes(w);
        w.forget_requests();
        w.pass_time(Duration::from_mins(4)).await;
        assert_eq!(passes(w), before);
        assert_eq!((w.writes(), w.requests(Sort::Event).len()), (Vec::new(), 0));
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn e2_an_object_without_a_policy_reports_the_missing_policy_and_heals() {
    play(Scenario::embedded("the test removes policies"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.withdraw("Gadget");
        let told = w
            .until("Gadget/web has the reason NoPolicy for Accepted", "Gadget/web", |gadget| {
                reason(gadget, "Accepted") == "NoPolicy"
            })
            .await;
        assert!(is_ready(&told), "the pods keep running: {told:#}");
        w.apply(&gadget("late", &json!({}))).await;
        w.until("the new Gadget reports the missing policy, too", "Gadget/late", |gadget| {
            reason(gadget, "Accepted") == "NoPolicy"
        })
        .await;
        w.swap(Edition::First);
        w.until_all("both objects are ready", &["Gadget/web", "Gadget/late"], |all| {
            all.iter().all(|gadget| is_ready(gadget) && is_true(gadget, "Accepted"))
        })
        .await;
    });
}

#[test]
fn e3_a_users_mistake_is_reported_with_the_field() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api_for("llm", &["tiny"]), agent("a", "llm", &json!({"model": "huge"}))]).await;
        let told = w
            .until("Agent/a has the reason InvalidSpec for Accepted", "Agent/a", |agent| {
                reason(agent, "Accepted") == "InvalidSpec"
            })
            .await;
        assert!(text(&condition(&told, "Accepted")["message"]).contains("spec.model"), "{told:#}");
        w.apply(&model_api_for("llm", &["tiny", "huge"])).await;
        w.until_ready("Agent/a").await;
    });
}

#[test]
fn e3_an_impossible_value_is_refused_at_the_users_field_and_nothing_is_applied() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.apply(&web_with(&json!({"port": 70_000, "image": "registry.example/gadget:2"}))).await;
        let told = w
            .until("Gadget/web has the reason InvalidSpec for Accepted", "Gadget/web", |gadget| {
                reason(gadget, "Accepted") == "InvalidSpec"
            })
            .await;
        let message = text(&condition(&told, "Accepted")["message"]).to_owned();
        assert!(message.contains("spec.port: 70000 is not a number from 1 to 65535"), "{message}");
        w.quiet().await;
        assert_ne!(
            image(&w.look("Deployment/web").await),
            "registry.example/gadget:2",
            "the existing child must not change"
        );
        w.apply(&web()).await;
        w.until("the Gadget is accepted", "Gadget/web", |gadget| is_true(gadget, "Accepted")).await;
    });
}

#[test]
fn e7_hanging_requests_of_objects_do_not_starve_others() {
    let few = |options: &mut kaos_operator::operator::Options| {
        options.workers = 2;
        options.pass_deadline = Duration::from_secs(30);
    };
    play(Scenario::embedded("the test makes requests hang").tuned(few), async |w| {
        for name in ["bad-1", "bad-2", "bad-3"] {
            w.break_it(Fault::on_writes().of("deployments").named(name).slow(Duration::from_hours(24)));
            w.apply(&gadget(name, &json!({}))).await;
        }
        w.pass_time(Duration::from_secs(5)).await;
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        w.until("Deployment/web follows", "Deployment/web", |now| image(now) == "registry.example/gadget:2").await;
        let told = w
            .until("Gadget/bad-1 has the reason ApplyFailed for Applied", "Gadget/bad-1", |gadget| {
                reason(gadget, "Applied") == "ApplyFailed"
            })
            .await;
        assert!(text(&condition(&told, "Applied")["message"]).contains("30 s"), "{told:#}");
        w.until_hit().await;
        w.mend();
        w.until_all("all objects are ready", &["Gadget/bad-1", "Gadget/bad-2", "Gadget/bad-3"], |all| {
            all.iter().all(is_ready)
        })
        .await;
    });
}

#[test]
fn e7_needs_of_a_hung_pass_do_not_replace_current_needs() {
    let soon = |options: &mut kaos_operator::operator::Options| options.pass_deadline = Duration::from_secs(30);
    play(Scenario::embedded("the test makes requests hang").tuned(soon), async |w| {
        w.apply_all(&[model_api("llm"), model_api("other"), agent("a", "llm", &json!({}))]).await;
        w.until_all("all objects are ready", &["ModelAPI/llm", "ModelAPI/other", "Agent/a"], |all| {
            all.iter().all(is_ready)
        })
        .await;
        w.quiet().await;
        w.break_it(Fault::on_writes().of("deployments").named("agent-a").slow(Duration::from_hours(24)));
        w.apply(&agent("a", "other", &json!({}))).await;
        let told = w
            .until("Agent/a has the reason ApplyFailed for Applied", "Agent/a", |agent| {
                reason(agent, "Applied") == "ApplyFailed"
            })
            .await;
        assert!(text(&condition(&told, "Applied")["message"]).contains("30 s"), "{told:#}");
        // Change the Agent back: it names the first ModelAPI again.
        w.apply(&agent("a", "llm", &json!({}))).await;
        w.mend();
        w.until_ready("Agent/a").await;
        w.until("the Agent no longer reports the error", "Agent/a", |agent| is_true(agent, "Applied")).await;
        w.quiet().await;
        w.delete("ModelAPI/llm").await;
        w.until("Agent/a follows", "Agent/a", |agent| reason(agent, "Resolved") == "NotFound").await;
    });
}

#[test]
fn e9_a_temporary_error_leaves_an_object_accepted() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.break_it(Fault::on_writes().of("deployments").fail(Failure::Server(503)));
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        w.until("the condition Applied of Gadget/web is False", "Gadget/web", |gadget| {
            condition(gadget, "Applied")["status"] == "False"
        })
        .await;
        w.until("the status shows the second generation", "Gadget/web", |gadget| {
            gadget["status"]["observedGeneration"] == 2
        })
        .await;
        assert!(is_true(&w.look("Gadget/web").await, "Accepted"));
    });
}

#[test]
fn e10_a_trap_is_contained_counted_and_reported() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        let before = w.look("Deployment/web").await;
        w.apply(&web_with(&json!({"does": "trap"}))).await;
        let told = w
            .until("Gadget/web has the reason PolicyFailed for Accepted", "Gadget/web", |gadget| {
                reason(gadget, "Accepted") == "PolicyFailed"
            })
            .await;
        assert!(!is_ready(&told));
        assert!(w.counted("kaos_operator_policy_failures_total", &["policy=\"gadget\""]) >= 1.0, "{}", w.metrics());
        // The running Deployment stays unchanged.
        assert_eq!(w.look("Deployment/web").await["metadata"]["generation"], before["metadata"]["generation"]);
        w.apply(&gadget("other", &json!({}))).await;
        w.until_ready("Gadget/other").await;
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn e10_a_panic_of_a_pass_is_contained_and_reported() {
    play(Scenario::embedded("the test makes the operator panic"), async |w| {
        w.embedded().set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| {
            assert!(
                attempt.name != "web" || attempt.resource != "deployments" || !attempt.verb.is_write(),
                "on purpose"
            );
            Verdict::default()
        });
        w.apply_all(&[web(), gadget("other", &json!({}))]).await;
        let told = w
            .until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
                reason(gadget, "Applied") == "ApplyFailed"
            })
            .await;
        assert!(text(&condition(&told, "Applied")["message"]).contains("on purpose"), "{told:#}");
        w.until_ready("Gadget/other").await;
        w.until_warned("Gadget/web", "ApplyFailed").await;
        w.embedded().set_faults(kaos_cluster::faults::NoFaults);
        w.until_ready("Gadget/web").await;
    });
}
