//! A1–A5, A8, A9, A14: the operator repairs deleted and changed children.

use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_cluster::faults::{EventFate, Failure, Verb};
use kaos_tests::harness::read::{controller, uid};
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::{Fault, Scenario, is_ready, is_true, play, reason};
use serde_json::{Value, json};

use crate::support::{CHILDREN, image, web, web_with};

fn is_back(child: &Value, old: &Value, owner: &Value) -> bool {
    !child.is_null() && uid(child) != uid(old) && controller(child)["uid"] == uid(owner)
}

#[test]
fn a1_a_deleted_deployment_is_created_again_with_name_and_owner() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        let owner = w.until_ready("Gadget/web").await;
        let old = w.look("Deployment/web").await;
        w.delete("Deployment/web").await;
        w.until("the Deployment is back", "Deployment/web", |child| is_back(child, &old, &owner)).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn a2_any_other_deleted_child_is_created_again() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        let owner = w.until_ready("Gadget/web").await;
        for at in CHILDREN.iter().filter(|at| !at.starts_with("Deployment")) {
            let old = w.look(at).await;
            assert!(!old.is_null(), "{at}");
            w.delete(at).await;
            w.until(&format!("{at} is back"), at, |child| is_back(child, &old, &owner)).await;
        }
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn a3_drift_in_any_owned_field_is_repaired_without_writing_the_object() {
    play(Scenario::default(), async |w| {
        w.apply(&web_with(&json!({"replicas": 2, "chain": "one", "port": 80}))).await;
        w.apply_all(&[
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"next": "two"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"value": "x"}}),
        ])
        .await;
        let before = w.until_ready("Gadget/web").await;
        let container = |image: &str, value: &str| {
            json!({"spec": {"replicas": 5, "template": {"spec": {"containers": [
                {"name": "main", "image": image, "env": [{"name": "CHAIN", "value": value}]}]}}}})
        };
        w.patch("Deployment/web", &container("evil:1", "evil")).await;
        w.patch("Service/web", &json!({"spec": {"ports": [{"name": "http", "port": 81}]}})).await;
        w.patch("ConfigMap/web", &json!({"data": {"a": "evil"}})).await;
        w.patch("Secret/web", &json!({"data": {"k": "ZXZpbA=="}})).await;
        w.until_all(
            "all children are as planned again",
            &["Deployment/web", "Service/web", "ConfigMap/web", "Secret/web"],
            |all| {
                image(&all[0]) == "registry.example/gadget:1"
                    && all[0]["spec"]["replicas"] == 2
                    && all[0]["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] == "x"
                    && all[1]["spec"]["ports"][0]["port"] == 80
                    && all[2]["data"]["a"] == "1"
                    && all[3]["data"]["k"] == "dg=="
            },
        )
        .await;
        let after = w.until_ready("Gadget/web").await;
        assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    });
}

#[test]
fn a4_ready_counts_the_missing_pod_until_it_is_replaced() {
    play(Scenario::embedded("the test decides the fate of pods"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.pods_of("web", PodFate::ReadyAfter(Duration::from_secs(30)));
        let pod = w.list("Pod").await.remove(0);
        w.delete(&format!("Pod/{}", pod["metadata"]["name"].as_str().unwrap())).await;
        w.until("the status counts the replicas", "Gadget/web", |gadget| {
            !is_ready(gadget) && gadget["status"]["message"].as_str().is_some_and(|text| text.contains("0/1"))
        })
        .await;
        w.until("the object is ready and counts its replicas", "Gadget/web", |gadget| {
            is_ready(gadget) && gadget["status"]["message"].as_str().is_some_and(|text| text.contains("1/1"))
        })
        .await;
    });
}

#[test]
fn a5_a_new_object_gets_its_children_without_another_trigger() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_all("the children are there", &CHILDREN, |all| all.iter().all(|child| !child.is_null())).await;
    });
}

#[test]
fn a8_changes_during_a_downtime_are_repaired_at_the_start() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        let owner = w.until_ready("Gadget/web").await;
        let old = w.look("Service/web").await;
        w.stop_all().await;
        w.delete("Service/web").await;
        w.patch("ConfigMap/web", &json!({"data": {"a": "evil"}})).await;
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        w.start().await;
        w.until_all("all children are as planned again", &["Service/web", "ConfigMap/web", "Deployment/web"], |all| {
            is_back(&all[0], &old, &owner)
                && all[1]["data"]["a"] == "1"
                && image(&all[2]) == "registry.example/gadget:2"
        })
        .await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn a8_changes_that_a_broken_watch_missed_are_found_by_listing_again() {
    play(Scenario::embedded("the test breaks watches"), async |w| {
        w.apply(&web()).await;
        let owner = w.until_ready("Gadget/web").await;
        let old = w.look("Service/web").await;
        w.break_it(Fault::on(&["watch", "list"]).fail(Failure::Server(503)));
        w.embedded().cut_watches();
        w.pass_time(Duration::from_secs(5)).await;
        w.delete("Service/web").await;
        w.patch("ConfigMap/web", &json!({"data": {"a": "evil"}})).await;
        w.embedded().compact();
        w.mend();
        w.until_all("all children are as planned again", &["Service/web", "ConfigMap/web"], |all| {
            is_back(&all[0], &old, &owner) && all[1]["data"]["a"] == "1"
        })
        .await;
    });
}

#[test]
fn a9_a_slow_resync_finds_changes_without_events() {
    let often = |options: &mut kaos_operator::operator::Options| options.resync = Duration::from_mins(1);
    play(
        Scenario::embedded("the test makes the API server accept and reject the same requests").tuned(often),
        async |w| {
            w.break_it(Fault::on_writes().of("services").fail(Failure::Server(422)));
            w.apply(&web()).await;
            w.until("Gadget/web has the reason ApplyFailed for Applied", "Gadget/web", |gadget| {
                reason(gadget, "Applied") == "ApplyFailed"
            })
            .await;
            w.mend();
            w.until_ready("Gadget/web").await;
        },
    );
}

#[test]
fn a9_a_resync_finds_changes_that_the_watch_missed() {
    play(Scenario::embedded("the test drops events, and simulates time"), async |w| {
        w.apply(&web()).await;
        let owner = w.until_ready("Gadget/web").await;
        let old = w.look("Service/web").await;
        w.break_events("services", EventFate::Drop);
        w.delete("Service/web").await;
        w.pass_time(Duration::from_secs(5)).await;
        w.mend();
        w.pass_time(Duration::from_hours(24)).await;
        w.until("the Service is back", "Service/web", |child| is_back(child, &old, &owner)).await;
    });
}

#[test]
fn a14_a_repaired_object_becomes_ready_without_help() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        let before = w.until_ready("Gadget/web").await;
        for child in CHILDREN {
            w.delete(child).await;
        }
        w.until_all("the children are back", &CHILDREN, |all| {
            all.iter().all(|child| !child.is_null() && child["metadata"]["deletionTimestamp"].is_null())
        })
        .await;
        w.quiet().await;
        let after = w.until_ready("Gadget/web").await;
        assert!(is_true(&after, "Accepted") && is_true(&after, "Applied"), "{after:#}");
        assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    });
}

#[test]
fn a_server_without_streaming_lists_gets_plain_list_requests() {
    play(Scenario::embedded("the test makes requests fail").idle(), async |w| {
        w.break_it(Fault::on(&["watch"]).fail(Failure::Server(422)).times(30));
        w.start().await;
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        let lists = w.requests(Sort::Read).iter().filter(|entry| entry.attempt.verb == Verb::List).count();
        assert!(lists >= 5, "{:#?}", w.reads());
        w.mend();
        w.delete("Deployment/web").await;
        w.until_ready("Gadget/web").await;
    });
}
