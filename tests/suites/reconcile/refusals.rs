//! E1, E2: what the API server does not do, told in its words and with what helps.

use kaos_cluster::faults::Failure;
use kaos_tests::harness::read::text;
use kaos_tests::harness::{Fault, Scenario, condition, play, reason};
use serde_json::{Value, json};

use crate::support::web;

fn applied(object: &Value) -> String {
    text(&condition(object, "Applied")["message"]).to_owned()
}

#[test]
fn e1_a_conflict_about_something_else_is_told_in_the_words_of_the_server_and_heals() {
    for (failure, words) in [
        (Failure::QuotaConflict, "Operation cannot be fulfilled on resourcequotas \"team\""),
        (Failure::WebhookConflict, "admission webhook \"names.example.com\" denied the request: this name is reserved"),
    ] {
        play(Scenario::embedded("requests fail on purpose"), async |w| {
            w.break_it(Fault::on(&["patch"]).of("deployments").fail(failure));
            w.apply(&web()).await;
            let told = w.until("it is told", "Gadget/web", |gadget| reason(gadget, "Applied") == "ApplyFailed").await;
            assert!(applied(&told).contains(words), "{}", applied(&told));
            w.mend();
            w.until_ready("Gadget/web").await;
            w.break_it(Fault::on(&["patch"]).of("deployments").fail(failure));
            w.patch("Gadget/web", &json!({"spec": {"image": "registry.example/gadget:2"}})).await;
            let told = w.until("it is told", "Gadget/web", |gadget| reason(gadget, "Applied") == "ApplyFailed").await;
            assert!(applied(&told).contains(words), "of a child that is there: {}", applied(&told));
            w.mend();
            w.until_ready("Gadget/web").await;
        });
    }
}
