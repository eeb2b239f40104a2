//! G1, G2, G5, G6, G8: watches, Events, metrics, readiness.

use std::collections::BTreeSet;
use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_cluster::faults::Verb;
use kaos_tests::gadget::{FINALIZER, gadget};
use kaos_tests::harness::faults::OPERATOR;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, mcp_server, model_api};
use kaos_tests::harness::{Fault, Scenario, World, condition, is_ready, play, reason};
use serde_json::json;

use crate::support::{image, web, web_with};

#[test]
fn g1_only_types_that_policies_claim_emit_or_read_are_watched() {
    play(Scenario::embedded("the test inspects requests"), async |w| {
        w.apply_all(&[web(), model_api("llm")]).await;
        w.until_all("both objects are ready", &["Gadget/web", "ModelAPI/llm"], |all| all.iter().all(is_ready)).await;
        let watches = w.requests(Sort::Watch);
        let watched: BTreeSet<&str> = watches.iter().map(|entry| entry.attempt.resource.as_str()).collect();
        let wanted = [
            "agents",
            "modelapis",
            "mcpservers",
            "memorystores",
            "accessgrants",
            "authorizationpolicies",
            "persistentvolumeclaims",
            "poddisruptionbudgets",
            "gadgets",
            "deployments",
            "services",
            "configmaps",
            "secrets",
            "serviceaccounts",
        ];
        for plural in wanted {
            assert!(watched.contains(plural), "{plural} is not among {watched:?}");
        }
        let also = BTreeSet::from(["customresourcedefinitions", "namespaces"]);
        let more: Vec<_> =
            watched.iter().filter(|plural| !wanted.contains(plural) && !also.contains(**plural)).collect();
        assert!(more.is_empty(), "{more:?} are watched too");
    });
}

#[test]
fn g2_events_report_transitions_and_neither_passes_nor_children() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.pods(PodFate::ReadyAfter(Duration::from_secs(5)));
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        let first = w.events("Gadget/web").await;
        assert!(!first.is_empty() && first.len() <= 5, "{first:#?}");
        w.forget_requests();
        for touch in 0..5 {
            w.patch("Gadget/web", &json!({"metadata": {"annotations": {"touch": touch.to_string()}}})).await;
            w.delete("ConfigMap/web").await;
            w.pass_time(Duration::from_secs(10)).await;
        }
        let told = w.requests(Sort::Event).len();
        assert!(told <= 2, "{told} Events for ten passes that changed no condition for long");
        w.apply(&web_with(&json!({"does": "refuse"}))).await;
        w.until_true("an Event reports the transition", async || {
            w.events("Gadget/web").await.iter().any(|(of, reason, _)| of == "Warning" && reason == "InvalidSpec")
        })
        .await;
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.until_true("an Event reports the way back, too", async || w.requests(Sort::Event).len() > told + 1).await;
    });
}

#[test]
fn g2_an_event_that_cannot_be_written_blocks_nothing() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.embedded().authorise(|attempt| attempt.user != OPERATOR || attempt.resource != "events");
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        assert!(w.events("Gadget/web").await.is_empty());
    });
}

#[test]
fn g5_passes_failures_durations_and_the_queue_are_counted() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[web(), gadget("bad", &json!({"does": "refuse"})), gadget("trapped", &json!({"does": "trap"}))])
            .await;
        w.until_ready("Gadget/web").await;
        w.until("Gadget/bad has the reason InvalidSpec for Accepted", "Gadget/bad", |gadget| {
            reason(gadget, "Accepted") == "InvalidSpec"
        })
        .await;
        w.until("the policy has trapped", "Gadget/trapped", |gadget| reason(gadget, "Accepted") == "PolicyFailed")
            .await;
        let counted = |metric: &str, labels: &[&str]| w.counted(&format!("kaos_operator_{metric}"), labels);
        let text = w.metrics();
        for result in ["changed", "refused", "failed"] {
            assert!(
                counted("passes_total", &["kind=\"Gadget\"", &format!("result=\"{result}\"")]) >= 1.0,
                "{result}\n{text}"
            );
        }
        assert!(counted("pass_duration_seconds_count", &["kind=\"Gadget\""]) >= 3.0, "{text}");
        assert!(
            text.contains("kaos_operator_queue_depth") && text.contains("kaos_operator_queue_oldest_age_seconds"),
            "{text}"
        );
        assert!(counted("policy_info", &["policy=\"gadget\""]) >= 1.0, "{text}");
        assert!(counted("watch_state", &["kind=\"Gadget\"", "state=\"synced\""]) >= 1.0, "{text}");
        assert!(counted("stored_objects", &["kind=\"Gadget\""]) >= 3.0, "{text}");
    });
}

#[test]
fn g6_the_operator_is_ready_only_after_all_watches_synced() {
    play(Scenario::embedded("the test delays requests").idle(), async |w| {
        slow_list_of_deployments(w);
        w.spawn();
        w.pass_time(Duration::from_secs(30)).await;
        let missing = w.probe().ready().unwrap_err();
        assert!(missing.iter().any(|what| what.contains("Deployment")), "{missing:?}");
        w.until_true("the operator is ready", async || w.probe().ready().is_ok()).await;
    });
}

#[test]
fn g6_nothing_is_written_before_all_watches_synced() {
    play(Scenario::embedded("the test delays requests").idle(), async |w| {
        w.apply(&web()).await;
        w.start().await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        end_before_a_slow_list(w).await;
        w.start().await;
        w.quiet().await;
        assert_eq!(w.writes(), Vec::<String>::new());
    });
}

/// Kills the operator, and makes the list of Deployments slow. The next operator gets this list only after a minute.
async fn end_before_a_slow_list(w: &World) {
    w.crash().await;
    w.forget_requests();
    slow_list_of_deployments(w);
}

fn slow_list_of_deployments(w: &World) {
    w.break_it(Fault::on(&["list", "watch"]).of("deployments").slow(Duration::from_mins(1)));
}

/// Restarts the operator.
///
/// For its first minute, the new operator has the objects of every type except Deployments in its cache.
async fn start_without_deployments(w: &World) {
    end_before_a_slow_list(w).await;
    w.spawn();
    w.pass_time(Duration::from_secs(10)).await;
}

#[test]
fn an_event_before_the_first_sync_makes_no_object_look_deleted() {
    play(Scenario::embedded("the test delays requests"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        start_without_deployments(w).await;
        w.patch("Gadget/web", &json!({"metadata": {"annotations": {"touch": "1"}}})).await;
        w.pass_time(Duration::from_secs(20)).await;
        assert!(w.probe().ready().is_err(), "the Deployments are listed already");
        assert_eq!((w.writes(), w.requests(Sort::Refused).len()), (Vec::new(), 0));
        w.until_true("the operator is ready", async || w.probe().ready().is_ok()).await;
        w.quiet().await;
        assert_eq!((w.writes(), w.requests(Sort::Event).len()), (Vec::new(), 0));
        w.mend();
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        w.until("Deployment/web follows", "Deployment/web", |now| image(now) == "registry.example/gadget:2").await;
    });
}

#[test]
fn an_object_deleted_before_the_first_sync_keeps_its_finalizer_until_the_sync() {
    play(Scenario::embedded("the test delays requests"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        start_without_deployments(w).await;
        w.delete("Gadget/web").await;
        w.pass_time(Duration::from_secs(20)).await;
        assert!(w.probe().ready().is_err(), "the Deployments are listed already");
        assert_eq!(w.writes(), Vec::<String>::new());
        assert_eq!(w.look("Gadget/web").await["metadata"]["finalizers"], json!([FINALIZER]));
        w.mend();
        w.until_gone("Gadget/web").await;
        assert!(w.look("Deployment/web").await.is_null());
    });
}

#[test]
fn g8_an_agent_waits_until_its_dependencies_are_ready() {
    play(Scenario::embedded("the test decides the fate of pods"), async |w| {
        w.pods_of("modelapi-llm", PodFate::NotReady);
        w.pods_of("mcpserver-echo", PodFate::NotReady);
        w.apply_all(&[agent("a", "llm", &json!({"mcpServers": ["echo"]})), model_api("llm"), mcp_server("echo")]).await;
        let gated =
            |agent: &serde_json::Value| agent["status"]["phase"] == "Waiting" && reason(agent, "Applied") == "Gated";
        w.until("the Agent waits", "Agent/a", gated).await;
        w.pods_of("modelapi-llm", PodFate::ReadyAfter(Duration::ZERO));
        w.until_ready("ModelAPI/llm").await;
        w.quiet().await;
        let waits = w.look("Agent/a").await;
        assert!(
            gated(&waits) && condition(&waits, "Applied")["message"].as_str().unwrap().contains("echo"),
            "{waits:#}"
        );
        assert!(w.look("Deployment/agent-a").await.is_null());
        w.pods_of("mcpserver-echo", PodFate::ReadyAfter(Duration::ZERO));
        w.until_ready("Agent/a").await;
        // After the first apply, the status must still report a dependency that is not ready, but the plan gate must
        // have no effect any more.
        w.pods_of("mcpserver-echo", PodFate::NotReady);
        w.until("the Agent reports the unready MCPServer", "Agent/a", |agent| {
            condition(agent, "DependenciesReady")["status"] == "False"
        })
        .await;
        w.apply(&agent("a", "llm", &json!({"mcpServers": ["echo"], "config": {"instructions": "new"}}))).await;
        w.until("the operator applies the edit", "Deployment/agent-a", |now| now["spec"].to_string().contains("new"))
            .await;
        assert!(w.embedded().journal().count(|entry| entry.attempt.verb == Verb::Watch) > 0);
    });
}

#[test]
fn policy_explain_accepts_every_name_of_a_kind() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        for word in ["Gadget", "gadget", "gadgets", "gd", "gadgets.test.example.com", "GADGET.test.example.com"] {
            assert_eq!(
                w.probe().explain(word, &w.namespace, "web").await.unwrap()["object"]["kind"],
                "Gadget",
                "{word}"
            );
        }
        let unknown = w.probe().explain("gadgetss", &w.namespace, "web").await.unwrap_err();
        assert!(unknown.starts_with("gadgetss: no policy answers for this kind, only for "), "{unknown}");
    });
}

#[test]
fn a_look_at_an_object_is_no_call_of_a_policy() {
    // Disable the memo, so that the operator runs the policy each time it explains an object. The metrics must not
    // count such a run as a call.
    play(Scenario::default().tuned(|options| options.memo = 0), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        let calls = || w.counted("kaos_operator_policy_call_duration_seconds_count", &[]);
        let before = calls();
        let known = w.probe().explain("gadgets", &w.namespace, "web").await.unwrap();
        assert!(known["plan"].is_object(), "{known:#}");
        assert!(before > 0.0);
        assert_eq!(calls().to_bits(), before.to_bits());
    });
}
