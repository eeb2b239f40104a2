//! E2–E4, E7, E9, E10: errors, the objects that they affect, and how the operator recovers.

use std::time::Duration;

use kaos_cluster::faults::{Attempt, Failure, Verdict};
use kaos_tests::gadget::gadget;
use kaos_tests::harness::read::text;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, config_map, model_api, model_api_for, secret};
use kaos_tests::harness::{Fault, Scenario, World, condition, is_ready, is_true, play, reason};
use serde_json::{Value, json};

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

/// Asserts that the operator does not repeat a rejected request immediately.
async fn is_not_tried_in_a_hurry(w: &World) {
    w.quiet().await;
    w.forget_requests();
    w.pass_time(Duration::from_mins(4)).await;
    let refused = w.requests(Sort::Refused).len();
    assert!(refused <= 2, "{refused} refused writes in four minutes");
}

#[test]
fn e2_a_rejected_child_is_reported_and_retried_slowly() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.apply(&web_with(&json!({"does": "misspell"}))).await;
        let told = w
            .until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
                reason(gadget, "Applied") == "ApplyFailed"
            })
            .await;
        assert!(text(&condition(&told, "Applied")["message"]).contains("prots"), "{told:#}");
        is_not_tried_in_a_hurry(w).await;
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn e2_an_unknown_field_is_reported_once_and_retried_slowly() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        let misspelt = agent("a", "llm", &json!({"podSpec": {"nodeSelectr": {"disk": "ssd"}}}));
        w.apply_all(&[model_api("llm"), misspelt]).await;
        let told = w
            .until("Agent/a has the reason ApplyFailed for Applied", "Agent/a", |agent| {
                reason(agent, "Applied") == "ApplyFailed"
            })
            .await;
        assert!(text(&condition(&told, "Applied")["message"]).contains("nodeSelectr"), "{told:#}");
        is_not_tried_in_a_hurry(w).await;
        let events = w.events("Agent/a").await;
        assert_eq!(events.iter().filter(|(_, reason, _)| reason == "ApplyFailed").count(), 1, "{events:?}");
        w.apply(&agent("a", "llm", &json!({"podSpec": {"nodeSelector": {"disk": "ssd"}}}))).await;
        w.until_ready("Agent/a").await;
    });
}

/// Returns the write that the API server rejected, from the operator's explanation of a Gadget.
async fn rejected(w: &World) -> Value {
    let known = w.probe().explain("gadgets", &w.namespace, "web").await.unwrap();
    known["last"]["rejected"].clone()
}

#[test]
fn e2_a_rejection_is_forgotten_once_the_plan_omits_the_child() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        for (again, why) in [
            (web(), "the plan is valid again"),
            (web_with(&json!({"leaveOut": ["Service"]})), "the plan omits the Service"),
        ] {
            w.apply(&web_with(&json!({"does": "misspell"}))).await;
            w.until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
                reason(gadget, "Applied") == "ApplyFailed"
            })
            .await;
            w.until_true("the explanation contains the rejected write", async || {
                text(&rejected(w).await[0]).contains("prots")
            })
            .await;
            w.apply(&again).await;
            w.until_ready("Gadget/web").await;
            w.until_true(why, async || rejected(w).await == json!([])).await;
        }
    });
}

/// Makes the server reject writes of a type, and changes a Gadget's image. Waits until the status reports the error.
async fn is_refused(w: &World, plural: &'static str) {
    w.break_it(Fault::on_writes().of(plural).fail(Failure::Server(422)));
    w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
    w.until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
        reason(gadget, "Applied") == "ApplyFailed"
    })
    .await;
    w.quiet().await;
}

/// A time limit that is shorter than every backoff.
const SOON: Duration = Duration::from_secs(40);

#[test]
fn e2_a_rejected_child_is_retried_when_the_object_changes() {
    play(Scenario::embedded("the test makes the API server accept and reject the same requests"), async |w| {
        is_refused(w, "services").await;
        w.mend();
        w.patch("Gadget/web", &json!({"metadata": {"annotations": {"touch": "1"}}})).await;
        w.pass_time(SOON).await;
        assert!(is_ready(&w.look("Gadget/web").await));
    });
}

#[test]
fn e2_an_immutable_child_is_created_again_after_its_deletion() {
    play(Scenario::embedded("the test makes the API server accept and reject the same requests"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        is_refused(w, "deployments").await;
        w.mend();
        w.delete("Deployment/web").await;
        w.pass_time(SOON).await;
        assert_eq!(image(&w.look("Deployment/web").await), "registry.example/gadget:2");
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn e2_a_rejected_child_is_retried_ever_less_often_and_heals_without_help() {
    play(Scenario::embedded("the test makes the API server accept and reject the same requests"), async |w| {
        is_refused(w, "services").await;
        w.forget_requests();
        w.pass_time(Duration::from_hours(10)).await;
        let refused = w.requests(Sort::Refused).len();
        assert!((8..=16).contains(&refused), "{refused} refused writes in ten hours");
        assert_eq!((w.writes(), w.requests(Sort::Event).len()), (Vec::new(), 0));
        w.mend();
        w.pass_time(Duration::from_hours(1)).await;
        w.until_ready("Gadget/web").await;
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
fn e4_a_missing_reference_is_waited_for_and_heals_when_it_appears() {
    play(Scenario::default(), async |w| {
        w.apply(&gadget("one", &json!({"chain": "first"}))).await;
        w.until("Gadget/one waits", "Gadget/one", |gadget| gadget["status"]["phase"] == "Waiting").await;
        let told = w
            .until("the Gadget reports the missing object", "Gadget/one", |gadget| {
                reason(gadget, "Resolved") == "NotFound"
            })
            .await;
        assert!(text(&condition(&told, "Resolved")["message"]).contains("first"), "{told:#}");
        assert_ne!(condition(&told, "Accepted")["status"], "False", "{told:#}");
        w.apply(&config_map("first", &json!({"next": "second"}))).await;
        w.until("the Gadget reports the next missing object", "Gadget/one", |gadget| {
            text(&condition(gadget, "Resolved")["message"]).contains("second")
        })
        .await;
        w.apply(&config_map("second", &json!({"value": "x"}))).await;
        w.until_ready("Gadget/one").await;
    });
}

#[test]
fn e4_a_missing_secret_is_waited_for_if_secrets_are_watched() {
    play(Scenario::default().tuned(|options| options.secrets = true), async |w| {
        w.apply(&gadget("web", &json!({"token": "key"}))).await;
        w.until("Gadget/web has the reason NotFound for Resolved", "Gadget/web", |gadget| {
            reason(gadget, "Resolved") == "NotFound"
        })
        .await;
        w.apply(&secret("key", &json!({"token": "x"}))).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn e4_objects_selected_by_label_are_followed() {
    play(Scenario::default(), async |w| {
        w.apply(&gadget("web", &json!({"listens": "yes"}))).await;
        w.until_ready("Gadget/web").await;
        let heard = async |what: Value| {
            w.until("Deployment/web hears", "Deployment/web", |now| {
                kaos_tests::harness::read::variable(now, "HEARD") == what
            })
            .await;
        };
        let labelled = |name: &str, value: &str| {
            let mut map = config_map(name, &json!({}));
            map["metadata"]["labels"] = json!({"gadget": value});
            map
        };
        w.apply(&labelled("b", "yes")).await;
        heard(json!("b")).await;
        w.apply(&labelled("a", "yes")).await;
        heard(json!("a,b")).await;
        w.apply(&labelled("b", "no")).await;
        heard(json!("a")).await;
        w.delete("ConfigMap/a").await;
        heard(Value::Null).await;
    });
}

#[test]
fn e4_granted_objects_of_another_namespace_are_followed() {
    play(Scenario::embedded("the operator's namespace is shared on a real control plane"), async |w| {
        w.apply(&gadget("web", &json!({"shared": true}))).await;
        w.until_ready("Gadget/web").await;
        for value in ["one", "two"] {
            let mut defaults = config_map("gadget-defaults", &json!({"value": value}));
            defaults["metadata"]["namespace"] = json!("kaos-system");
            w.apply(&defaults).await;
            w.until("the Deployment has the value", "Deployment/web", |now| {
                kaos_tests::harness::read::variable(now, "SHARED") == value
            })
            .await;
        }
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
        // Refer to the first ModelAPI again.
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
        w.swap(kaos_tests::gadget::Edition::First);
        w.until_all("both objects are ready", &["Gadget/web", "Gadget/late"], |all| {
            all.iter().all(|gadget| is_ready(gadget) && is_true(gadget, "Accepted"))
        })
        .await;
    });
}
