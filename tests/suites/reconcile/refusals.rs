//! E1, E2: requests that the API server rejects. The status repeats the server's message and tells the user how to fix
//! the cause.

use std::time::Duration;

use kaos_cluster::faults::Failure;
use kaos_tests::harness::read::{text, uid};
use kaos_tests::harness::{Fault, Scenario, condition, is_ready, play, reason};
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::support::web;

fn applied(object: &Value) -> String {
    text(&condition(object, "Applied")["message"]).to_owned()
}

#[test]
fn e1_another_conflict_is_reported_in_the_servers_words_and_heals() {
    for (failure, words) in [
        (Failure::QuotaConflict, "Operation cannot be fulfilled on resourcequotas \"team\""),
        (Failure::WebhookConflict, "admission webhook \"names.example.com\" denied the request: this name is reserved"),
    ] {
        play(Scenario::embedded("the test makes requests fail"), async |w| {
            w.break_it(Fault::on(&["patch"]).of("deployments").fail(failure));
            w.apply(&web()).await;
            let told = w
                .until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
                    reason(gadget, "Applied") == "ApplyFailed"
                })
                .await;
            assert!(applied(&told).contains(words), "{}", applied(&told));
            w.mend();
            w.until_ready("Gadget/web").await;
            w.break_it(Fault::on(&["patch"]).of("deployments").fail(failure));
            w.patch("Gadget/web", &json!({"spec": {"image": "registry.example/gadget:2"}})).await;
            let told = w
                .until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
                    reason(gadget, "Applied") == "ApplyFailed"
                })
                .await;
            assert!(
                applied(&told).contains(words),
                "the message about an existing child is wrong: {message}",
                message = applied(&told)
            );
            w.mend();
            w.until_ready("Gadget/web").await;
        });
    }
}

#[test]
fn e2_an_immutable_field_is_reported_with_the_remedy() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.stop_all().await;
        // Create the child again, as another operator would have left it.
        let mut child = w.look("Deployment/web").await;
        w.delete("Deployment/web").await;
        w.until_gone("Deployment/web").await;
        let old = uid(&child).to_owned();
        child["metadata"]
            .as_object_mut()
            .unwrap()
            .retain(|field, _| ["name", "namespace", "ownerReferences"].contains(&field.as_str()));
        child.as_object_mut().unwrap().remove("status");
        let labels = json!({"app": "older"});
        child["spec"]["selector"] = json!({"matchLabels": labels});
        child["spec"]["template"]["metadata"] = json!({"labels": labels});
        w.create(&child, &PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() }).await;
        w.start().await;
        let told = w
            .until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
                reason(gadget, "Applied") == "ApplyFailed"
            })
            .await;
        for part in ["spec.selector cannot change while the deployment exists", "kubectl -n", "delete deployment web"] {
            assert!(applied(&told).contains(part), "{part}: {}", applied(&told));
        }
        assert!(!applied(&told).contains("spec.template cannot"), "{}", applied(&told));
        w.delete("Deployment/web").await;
        let made = w
            .until("the operator has created the Deployment", "Deployment/web", |made| {
                !made.is_null() && made["metadata"]["labels"]["app"] != "older"
            })
            .await;
        assert_ne!(uid(&made), old);
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn e1_a_missing_policy_is_reported_also_after_a_failed_status_write() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.break_it(Fault::on(&["patch"]).of("gadgets").under("status").fail(Failure::Server(503)).times(2));
        w.withdraw("Gadget");
        let told = w
            .until("Gadget/web has the reason NoPolicy for Accepted", "Gadget/web", |gadget| {
                reason(gadget, "Accepted") == "NoPolicy"
            })
            .await;
        assert!(is_ready(&told), "the pods keep running: {told:#}");
        w.quiet().await;
        w.forget_requests();
        w.pass_time(Duration::from_mins(20)).await;
        assert_eq!(w.writes(), [""; 0], "the operator must report the missing policy only once");
    });
}
