//! F: finalizers and deletion.

use std::time::Duration;

use kaos_cluster::faults::Failure;
use kaos_operator::leader_election::take_over;
use kaos_operator::release::{Event, finalizers as finalizers_of, release};
use kaos_operator::watch::Scope;
use kaos_tests::gadget::FINALIZER;
use kaos_tests::harness::read::{finalizers, text, uid};
use kaos_tests::harness::replicas::user;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{Fault, Scenario, World, condition, is_ready, play, reason};
use serde_json::{Value, json};

use crate::support::{CHILDREN, may_not_change_gadgets, web};

#[test]
fn f1_only_the_finalizer_of_the_policy_is_set_and_those_of_earlier_operators_are_removed() {
    play(Scenario::default(), async |w| {
        let mut gadget = web();
        gadget["metadata"]["finalizers"] = json!(["example.com/foreign"]);
        let mut api = model_api("llm");
        api["metadata"]["finalizers"] = json!(["kaos.tools/modelapi-finalizer"]);
        w.apply_all(&[gadget, api]).await;
        let all = w
            .until_all("both objects are ready", &["Gadget/web", "ModelAPI/llm"], |all| all.iter().all(is_ready))
            .await;
        let mut held = finalizers(&all[0]);
        held.sort_unstable();
        assert_eq!(held, ["example.com/foreign", FINALIZER]);
        assert_eq!(finalizers(&all[1]), Vec::<&str>::new());
        if w.try_embedded().is_some() {
            let writes = w.requests(Sort::Write);
            let first = writes.iter().find(|entry| entry.attempt.name == "web").unwrap();
            assert_eq!(
                (first.attempt.resource.as_str(), first.attempt.subresource.as_str()),
                ("gadgets", ""),
                "{first}"
            );
        }
    });
}

#[test]
fn f2_a_deleting_object_gets_no_new_or_changed_children() {
    play(Scenario::embedded("the test inspects requests"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.break_it(Fault::on(&["delete"]).of("services").fail(Failure::Server(500)));
        w.forget_requests();
        w.delete("Gadget/web").await;
        w.patch("Deployment/web", &json!({"spec": {"replicas": 5}})).await;
        w.delete("ConfigMap/web").await;
        w.pass_time(Duration::from_mins(1)).await;
        for entry in w.requests(Sort::Write) {
            let is_own = entry.attempt.resource == "gadgets";
            assert!(is_own || entry.attempt.verb.name() == "delete", "{entry}");
        }
        assert!(w.look("ConfigMap/web").await.is_null());
    });
}

#[test]
fn f3_the_finalizer_is_removed_after_a_complete_cleanup() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.delete("Gadget/web").await;
        w.until_gone("Gadget/web").await;
        w.until_all("the children are gone", &CHILDREN, |all| all.iter().all(Value::is_null)).await;
        w.until_true("no pod is left", async || w.list("Pod").await.is_empty()).await;
    });
}

#[test]
fn f3_configuration_stays_until_the_pods_that_use_it_are_gone() {
    play(Scenario::embedded("the test delays a pod"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        let pods = w.list("Pod").await;
        let pod = format!("Pod/{}", text(&pods[0]["metadata"]["name"]));
        w.patch(&pod, &json!({"metadata": {"finalizers": ["example.com/slow"]}})).await;
        w.delete("Gadget/web").await;
        w.until("the pod is terminating", &pod, |pod| !pod["metadata"]["deletionTimestamp"].is_null()).await;
        w.pass_time(Duration::from_mins(1)).await;
        for at in ["ConfigMap/web", "Secret/web", "ServiceAccount/web"] {
            let now = w.look(at).await;
            assert!(!now.is_null() && now["metadata"]["deletionTimestamp"].is_null(), "{at} is gone before the pod");
        }
        w.patch(&pod, &json!({"metadata": {"finalizers": null}})).await;
        w.until_gone("Gadget/web").await;
        w.until_all("the children are gone", &CHILDREN, |all| all.iter().all(Value::is_null)).await;
    });
}

#[test]
fn f3_children_of_an_object_without_finalizer_are_garbage_collected() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.delete("ModelAPI/llm").await;
        w.until_all(
            "the object and its children are gone",
            &["ModelAPI/llm", "Deployment/modelapi-llm", "Service/modelapi-llm"],
            |all| all.iter().all(Value::is_null),
        )
        .await;
    });
}

#[test]
fn f3_an_orphaning_deletion_leaves_the_children_to_the_next_object() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        let before = w.look("Deployment/web").await;
        w.orphan("Gadget/web").await;
        w.until_gone("Gadget/web").await;
        let left = w.look("Deployment/web").await;
        assert!(left["metadata"]["deletionTimestamp"].is_null(), "{left:#}");
        assert_eq!(uid(&left), uid(&before));
        assert_eq!(left["metadata"]["ownerReferences"], Value::Null);
        let again = w.apply(&web()).await;
        w.until("the new Gadget owns the child", "Deployment/web", |child| {
            child["metadata"]["ownerReferences"][0]["uid"] == uid(&again)
        })
        .await;
        w.until_ready("Gadget/web").await;
        assert_eq!(uid(&w.look("Deployment/web").await), uid(&before));
        assert_eq!(w.rollouts("web").await, 1);
    });
}

#[test]
fn f3_a_deleting_object_without_a_policy_is_released_after_a_deadline() {
    play(Scenario::embedded("the test removes policies, and counts requests"), async |w| {
        let mut gadget = web();
        gadget["metadata"]["finalizers"] = json!(["example.com/foreign"]);
        w.apply(&gadget).await;
        w.until_ready("Gadget/web").await;
        w.withdraw("Gadget");
        w.until("no policy answers for the Gadget", "Gadget/web", |gadget| reason(gadget, "Accepted") == "NoPolicy")
            .await;
        w.quiet().await;
        w.forget_requests();
        w.delete("Gadget/web").await;
        w.quiet().await;
        assert!(
            finalizers(&w.look("Gadget/web").await).contains(&FINALIZER),
            "the finalizer must stay until a policy can clean up"
        );
        assert_eq!(w.writes(), [""; 0]);
        w.pass_time(Duration::from_mins(6)).await;
        w.until("only the foreign finalizer is left", "Gadget/web", |now| finalizers(now) == ["example.com/foreign"])
            .await;
        for round in ["1", "2", "3"] {
            w.patch("Gadget/web", &json!({"metadata": {"annotations": {"touch": round}}})).await;
            w.quiet().await;
        }
        assert!(
            w.reads().len() <= 1,
            "the operator must know the object without further reads: {reads:#?}",
            reads = w.reads()
        );
        w.patch("Gadget/web", &json!({"metadata": {"finalizers": null}})).await;
        w.until_gone("Gadget/web").await;
        w.until_all("the children are gone", &CHILDREN, |all| all.iter().all(Value::is_null)).await;
    });
}

#[test]
fn f4_a_failing_cleanup_is_reported_and_releases_the_object_in_the_end() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.break_it(Fault::on(&["delete"]).of("deployments").fail(Failure::Server(500)));
        w.forget_requests();
        w.delete("Gadget/web").await;
        w.pass_time(Duration::from_secs(30)).await;
        assert!(finalizers(&w.look("Gadget/web").await).contains(&FINALIZER));
        let told = async |what: &str| {
            w.events("Gadget/web").await.iter().any(|(of, reason, _)| of == "Warning" && reason.contains(what))
        };
        w.until_true("there is an Event about the cleanup", async || told("Cleanup").await).await;
        let tries = w.requests(Sort::Refused).len();
        assert!((2..=20).contains(&tries), "{tries} tries in half a minute");
        w.pass_time(Duration::from_hours(1)).await;
        w.until_gone("Gadget/web").await;
        let events = w.events("Gadget/web").await;
        assert!(
            events
                .iter()
                .any(|(_, reason, message)| reason == "CleanupTimedOut" && message.contains("removes the finalizer")),
            "the operator must release the object and report this: {events:?}"
        );
    });
}

#[test]
fn f4_a_forbidden_finalizer_removal_is_reported_and_retried() {
    play(Scenario::embedded("the test revokes rights"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.embedded().authorise(may_not_change_gadgets);
        w.delete("Gadget/web").await;
        w.until_true("there is an Event", async || {
            let events = w.events("Gadget/web").await;
            events.iter().any(|(_, reason, message)| reason == "CleanupFailed" && message.contains("gadgets"))
        })
        .await;
        assert!(finalizers(&w.look("Gadget/web").await).contains(&FINALIZER));
        w.embedded().allow_everything();
        w.until_gone("Gadget/web").await;
    });
}

#[test]
fn f4_a_temporarily_failing_cleanup_completes() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.break_it(Fault::on(&["delete"]).fail(Failure::Server(500)).times(4));
        w.delete("Gadget/web").await;
        w.until_gone("Gadget/web").await;
        w.until_all("the children are gone", &CHILDREN, |all| all.iter().all(Value::is_null)).await;
    });
}

#[test]
fn f5_foreign_finalizers_are_kept() {
    play(Scenario::default(), async |w| {
        let mut gadget = web();
        gadget["metadata"]["finalizers"] = json!(["example.com/foreign"]);
        w.apply(&gadget).await;
        w.until_ready("Gadget/web").await;
        w.delete("Gadget/web").await;
        w.until("only the foreign finalizer is left", "Gadget/web", |now| finalizers(now) == ["example.com/foreign"])
            .await;
        w.quiet().await;
        w.patch("Gadget/web", &json!({"metadata": {"finalizers": null}})).await;
        w.until_gone("Gadget/web").await;
    });
}

#[test]
fn f5_a_finalizer_added_concurrently_is_kept() {
    play(Scenario::embedded("the test delays a request"), async |w| {
        w.break_it(Fault::on(&["patch"]).of("gadgets").slow(Duration::from_secs(30)).times(1));
        w.apply(&web()).await;
        w.pass_time(Duration::from_secs(5)).await;
        w.patch("Gadget/web", &json!({"metadata": {"finalizers": ["example.com/foreign"]}})).await;
        let told = w.until_ready("Gadget/web").await;
        assert_eq!(finalizers(&told), ["example.com/foreign", FINALIZER]);
        w.quiet().await;
        assert_eq!(finalizers(&w.look("Gadget/web").await), ["example.com/foreign", FINALIZER]);
    });
}

#[test]
fn f6_a_deleted_dependency_leaves_conditions_and_running_pods() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        let before = w.look("Deployment/agent-a").await;
        w.delete("ModelAPI/llm").await;
        let told = w
            .until("the Agent reports the deleted ModelAPI", "Agent/a", |agent| reason(agent, "Resolved") == "NotFound")
            .await;
        assert!(text(&condition(&told, "Resolved")["message"]).contains("llm"), "{told:#}");
        let after = w.look("Deployment/agent-a").await;
        assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
        w.apply(&model_api("llm")).await;
        w.until("the Agent has its ModelAPI again", "Agent/a", |agent| {
            condition(agent, "Resolved")["status"] == "True"
        })
        .await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        assert_eq!(w.rollouts("agent-a").await, 1);
    });
}

/// Removes the finalizers of all policies from all objects, like the command of the uninstall hook. Returns what this
/// removal reports.
async fn release_all(w: &World) -> Vec<Event> {
    let policies = w.policies();
    let finalizers_of_all = finalizers_of(policies.iter().map(|policy| &**policy), &[]);
    let mut told = Vec::new();
    release(&w.client, &finalizers_of_all, &Scope::All, false, |event| told.push(event)).await.unwrap();
    told
}

#[test]
fn f7_release_removes_all_finalizers_so_that_namespaces_can_be_deleted() {
    play(Scenario::embedded("the test deletes its namespace").within("test"), async |w| {
        let mut api = model_api("llm");
        api["metadata"]["finalizers"] = json!(["example.com/foreign"]);
        w.apply_all(&[web(), api]).await;
        w.until_all("both objects are ready", &["Gadget/web", "ModelAPI/llm"], |all| all.iter().all(is_ready)).await;
        w.stop_all().await;
        let mut old = model_api("old");
        old["metadata"]["finalizers"] = json!(["kaos.tools/modelapi-finalizer"]);
        w.apply(&old).await;
        let told = release_all(w).await;
        assert!(told.iter().all(|event| !matches!(event, Event::Failed { .. })), "{told:#?}");
        for (at, left) in [("Gadget/web", &[][..]), ("ModelAPI/old", &[]), ("ModelAPI/llm", &["example.com/foreign"])] {
            assert_eq!(finalizers(&w.look(at).await), left, "{at}");
        }
        w.patch("ModelAPI/llm", &json!({"metadata": {"finalizers": null}})).await;
        w.delete("Namespace/test").await;
        w.until_gone("Namespace/test").await;
    });
}

#[test]
fn f7_release_stops_the_operator_before_it_removes_finalizers() {
    play(Scenario::embedded("the test simulates time").idle(), async |w| {
        w.spawn_replica(&user(1));
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        assert_eq!(finalizers(&w.look("Gadget/web").await), [FINALIZER]);
        let leader = w.leader().await.unwrap();
        let before = take_over(w.client.clone(), "kaos-system", "release", Duration::from_mins(10)).await.unwrap();
        assert!(before.is_some_and(|holder| holder.starts_with(&leader)));
        // Restart the replica, as the kubelet would restart the container.
        w.crash_one(&leader).await;
        w.spawn_replica(&leader);
        release_all(w).await;
        w.patch("Gadget/web", &json!({"metadata": {"annotations": {"touch": "1"}}})).await;
        w.pass_time(Duration::from_mins(5)).await;
        assert_eq!(finalizers(&w.look("Gadget/web").await), [""; 0]);
        w.delete("Gadget/web").await;
        w.until_gone("Gadget/web").await;
    });
}

#[test]
fn f7_release_succeeds_if_no_kind_is_served_any_more() {
    play(Scenario::embedded("definitions are shared on a real control plane").bare(), async |w| {
        let told = release_all(w).await;
        assert!(told.iter().all(|event| matches!(event, Event::Unserved(_))) && !told.is_empty(), "{told:#?}");
    });
}
