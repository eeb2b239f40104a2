//! E2: children that the API server rejects, and when the operator tries them again. The module `refusals` tests the
//! messages.

use std::time::Duration;

use kaos_cluster::faults::Failure;
use kaos_tests::harness::read::text;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{Fault, Scenario, World, condition, is_ready, play, reason};
use serde_json::{Value, json};

use crate::support::{image, web, web_with};

/// A time limit that is shorter than the operator's wait before it tries a rejected child again.
const SOON: Duration = Duration::from_secs(40);

/// Asserts that the operator does not repeat a rejected request immediately.
async fn is_not_tried_in_a_hurry(w: &World) {
    w.quiet().await;
    w.forget_requests();
    w.pass_time(Duration::from_mins(4)).await;
    let refused = w.requests(Sort::Refused).len();
    assert!(refused <= 2, "{refused} refused writes in four minutes");
}

/// Returns the rejected write from the operator's explanation of the Gadget `web`.
async fn rejected(w: &World) -> Value {
    let known = w.probe().explain("gadgets", &w.namespace, "web").await.unwrap();
    known["last"]["rejected"].clone()
}

/// Makes the server reject writes of a type, and changes the image of the Gadget `web`.
///
/// Waits until the Gadget's status reports the error.
async fn is_refused(w: &World, plural: &'static str) {
    w.break_it(Fault::on_writes().of(plural).fail(Failure::Server(422)));
    w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
    w.until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
        reason(gadget, "Applied") == "ApplyFailed"
    })
    .await;
    w.quiet().await;
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
