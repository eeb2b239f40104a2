//! A6, A7, A10, A11, A13, A15: when passes run, and what a pass does.

use std::time::Duration;

use kaos_cluster::faults::{Entry, EventFate, Failure};
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::model_api;
use kaos_tests::harness::{Fault, Scenario, play};
use serde_json::{Value, json};

use crate::support::{image, of_type, web, web_with};

#[test]
fn a6_a_pass_that_finds_everything_as_planned_writes_nothing() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        let touched = w.patch("Gadget/web", &json!({"metadata": {"annotations": {"note": "hello"}}})).await;
        let before = w.fingerprint().await;
        if w.try_embedded().is_some() {
            w.forget_requests();
        }
        w.pass_time(Duration::from_secs(5)).await;
        assert_eq!(w.fingerprint().await, before);
        if w.try_embedded().is_some() {
            assert_eq!(w.writes(), Vec::<String>::new());
            assert_eq!(w.reads(), Vec::<String>::new());
        }
        assert_eq!(w.look("Gadget/web").await["metadata"]["resourceVersion"], touched["metadata"]["resourceVersion"]);
    });
}

#[test]
fn a7_many_quick_edits_end_at_the_last_in_few_passes() {
    play(Scenario::embedded("the test delays requests"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.forget_requests();
        w.break_it(Fault::on_writes().slow(Duration::from_secs(10)));
        for edit in 0..30 {
            w.apply(&web_with(&json!({"image": format!("registry.example/gadget:{edit}")}))).await;
            w.pass_time(Duration::from_secs(1)).await;
        }
        w.until("the last edit is there", "Deployment/web", |child| image(child) == "registry.example/gadget:29").await;
        w.until_ready("Gadget/web").await;
        let writes = of_type(&w.requests(Sort::Write), "deployments").len();
        assert!(writes <= 4, "{writes} writes for 30 edits within three slow requests");
    });
}

#[test]
fn a10_an_object_deleted_before_its_pass_is_no_error() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.break_events("modelapis", EventFate::Delay(Duration::from_secs(5)));
        w.apply(&model_api("llm")).await;
        w.pass_time(Duration::from_secs(4)).await;
        w.delete("ModelAPI/llm").await;
        // The watch has not delivered the creation of the object yet. When the fault ends, the watch delivers the
        // creation, and directly afterwards the deletion.
        w.mend();
        w.pass_time(Duration::from_mins(1)).await;
        assert!(w.list("Deployment").await.is_empty());
        assert_eq!(w.counted("kaos_operator_retries_total", &[]), 0.0);
        let gone = [("retried", 0.0), ("failed", 0.0)];
        for (result, count) in gone {
            assert_eq!(w.counted("kaos_operator_passes_total", &[&format!("result=\"{result}\"")]), count, "{result}");
        }
    });
}

#[test]
fn a10_a_deleted_object_without_its_event_gets_a_bounded_number_of_children() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.break_events("modelapis", EventFate::Delay(Duration::from_secs(30)));
        w.apply(&model_api("llm")).await;
        w.pass_time(Duration::from_secs(4)).await;
        w.delete("ModelAPI/llm").await;
        w.forget_requests();
        w.pass_time(Duration::from_mins(5)).await;
        w.until_all("the children are gone", &["Deployment/modelapi-llm", "Service/modelapi-llm"], |all| {
            all.iter().all(Value::is_null)
        })
        .await;
        // Until the operator sees the object's deletion, it creates the children again each time the garbage collector
        // deletes them.
        let writes = w.requests(Sort::Write).len();
        assert!((1..=200).contains(&writes), "{writes} writes for an object that is gone");
    });
}

const SLOW: Duration = Duration::from_secs(7);

/// Returns whether two slow requests overlapped in time.
fn overlap(one: &Entry, other: &Entry) -> bool {
    one.at.duration_since(other.at).unsigned_abs() < SLOW
}

#[test]
fn a11_passes_of_one_object_run_in_sequence_and_of_several_in_parallel() {
    play(Scenario::embedded("the test delays requests"), async |w| {
        w.break_it(Fault::on(&["patch"]).of("deployments").slow(SLOW));
        for round in 0..10 {
            let image = format!("registry.example/gadget:{round}");
            for name in ["web", "net"] {
                let mut gadget = web_with(&json!({"image": image}));
                gadget["metadata"]["name"] = json!(name);
                w.apply(&gadget).await;
            }
            w.pass_time(Duration::from_secs(3)).await;
        }
        w.until_ready("Gadget/web").await;
        let writes = w.requests(Sort::Write);
        let of = |name: &str| -> Vec<Entry> {
            of_type(&writes, "deployments").into_iter().filter(|entry| entry.attempt.name == name).cloned().collect()
        };
        let (web, net) = (of("web"), of("net"));
        assert!(web.len() > 1 && web.windows(2).all(|pair| !overlap(&pair[0], &pair[1])), "{web:#?}");
        assert!(web.iter().any(|one| net.iter().any(|other| overlap(one, other))), "{web:#?} {net:#?}");
    });
}

#[test]
fn a13_a_pass_writes_finalizer_configuration_workload_service_status_in_order() {
    play(Scenario::embedded("the test checks the order of requests").idle(), async |w| {
        w.apply(&web()).await;
        w.start().await;
        w.until_ready("Gadget/web").await;
        let mut first = Vec::new();
        for entry in w.requests(Sort::Write) {
            let of = format!("{} {}", entry.attempt.resource, entry.attempt.subresource);
            if !first.contains(&of) {
                first.push(of);
            }
        }
        let at = |of: &str| first.iter().position(|seen| seen == of).unwrap_or_else(|| panic!("no {of} in {first:?}"));
        assert_eq!(at("gadgets "), 0, "{first:?}");
        for config in ["configmaps ", "secrets ", "serviceaccounts "] {
            assert!(at(config) < at("deployments "), "{first:?}");
        }
        assert!(at("deployments ") < at("services ") && at("services ") < at("gadgets status"), "{first:?}");
    });
}

#[test]
fn a15_a_late_event_repairs_a_stale_view_without_duplicates() {
    play(Scenario::embedded("the test delays events"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.break_events("gadgets", EventFate::Delay(Duration::from_secs(20)));
        w.break_events("deployments", EventFate::Delay(Duration::from_secs(40)));
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        w.patch("Deployment/web", &json!({"spec": {"replicas": 3}})).await;
        w.apply(&web_with(&json!({"image": "registry.example/gadget:3", "leaveOut": ["Service"]}))).await;
        w.until_all("the last state is there", &["Deployment/web", "Service/web"], |all| {
            image(&all[0]) == "registry.example/gadget:3" && all[1].is_null()
        })
        .await;
        assert_eq!(w.owned("Gadget/web", "Deployment").await.len(), 1);
        w.mend();
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        assert_eq!(image(&w.look("Deployment/web").await), "registry.example/gadget:3");
    });
}

#[test]
fn a15_a_lost_answer_creates_no_second_child() {
    play(Scenario::embedded("the test drops answers"), async |w| {
        w.break_it(Fault::on_writes().lose_answer().times(12));
        // The requests take effect although the responses are lost. So the operator may have nothing left to write when
        // the next fault begins. Therefore the next fault is optional.
        w.break_it(Fault::on_writes().fail(Failure::Disconnect).times(5).if_ever());
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        for kind in ["Secret", "ServiceAccount", "ConfigMap", "Deployment", "Service"] {
            assert_eq!(w.owned("Gadget/web", kind).await.len(), 1, "{kind}");
        }
        assert_eq!(w.rollouts("web").await, 1);
    });
}
