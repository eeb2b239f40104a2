//! D: the status.

use std::cell::Cell;
use std::time::Duration;

use kaos_cluster::faults::Failure;
use kaos_cluster::{Controller, PodFate};
use kaos_tests::gadget::gadget;
use kaos_tests::harness::read::text;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, deployment, mcp_server, model_api};
use kaos_tests::harness::{Fault, Scenario, condition, is_ready, is_true, play, reason};
use serde_json::{Value, json};

use crate::support::{image, passes, web, web_with};

fn message(object: &Value) -> &str {
    text(&object["status"]["message"])
}

#[test]
fn d1_accepted_has_the_reason_and_the_path() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        let good = w.until("Gadget/web is accepted", "Gadget/web", |gadget| is_true(gadget, "Accepted")).await;
        assert_ne!(condition(&good, "Accepted")["message"], "");
        w.apply(&web_with(&json!({"does": "refuse"}))).await;
        let bad = w
            .until("the condition Accepted of Gadget/web is False", "Gadget/web", |g| {
                condition(g, "Accepted")["status"] == "False"
            })
            .await;
        let condition = condition(&bad, "Accepted");
        assert_eq!(condition["reason"], "InvalidSpec");
        assert!(text(&condition["message"]).contains("spec.does"), "{condition}");
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn d2_ready_counts_pods_while_they_start() {
    play(Scenario::embedded("the test decides the fate of pods"), async |w| {
        w.pods(PodFate::NotReady);
        w.apply(&web_with(&json!({"replicas": 3}))).await;
        w.until("no pod is ready", "Gadget/web", |gadget| !is_ready(gadget) && message(gadget).contains("0/3")).await;
        w.pods(PodFate::ReadyAfter(Duration::ZERO));
        w.until("all pods are ready", "Gadget/web", |gadget| is_ready(gadget) && message(gadget).contains("3/3")).await;
    });
}

#[test]
fn d3_accepted_and_ready_are_set_after_the_first_pass() {
    play(Scenario::embedded("the test inspects the first status"), async |w| {
        w.pods(PodFate::NotReady);
        w.apply_all(&[web(), model_api("llm"), agent("a", "llm", &json!({}))]).await;
        for at in ["Gadget/web", "ModelAPI/llm", "Agent/a"] {
            let first = w.until("there is a status", at, |object| !object["status"]["conditions"].is_null()).await;
            assert!(!condition(&first, "Accepted").is_null(), "{at}: {first:#}");
            assert!(["False", "Unknown"].contains(&text(&condition(&first, "Ready")["status"])), "{at}: {first:#}");
        }
        w.pods(PodFate::ReadyAfter(Duration::ZERO));
        w.until_all("the objects are ready", &["Gadget/web", "ModelAPI/llm", "Agent/a"], |all| {
            all.iter().all(is_ready)
        })
        .await;
    });
}

#[test]
fn d4_the_status_and_each_condition_have_the_observed_generation() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        let now = w
            .until("the status shows the second generation", "Gadget/web", |g| g["status"]["observedGeneration"] == 2)
            .await;
        let conditions = now["status"]["conditions"].as_array().unwrap();
        assert!(!conditions.is_empty(), "{now:#}");
        for condition in conditions {
            assert_eq!(condition["observedGeneration"], 2, "{condition}");
        }
    });
}

#[test]
fn d4_an_edit_during_a_pass_counts_as_neither_observed_nor_applied() {
    play(Scenario::embedded("requests take their time, and fail on purpose"), async |w| {
        // Make the pass slow: the pass first removes the finalizer of an earlier operator, and a fault delays this
        // request.
        let mut api = model_api("llm");
        api["metadata"]["finalizers"] = json!(["kaos.tools/modelapi-finalizer"]);
        w.break_it(Fault::on(&["patch"]).of("modelapis").slow(Duration::from_secs(30)).times(1));
        // The apply of the first generation succeeds. Every apply of the next generation fails.
        w.break_it(Fault::on(&["patch"]).of("deployments").times(1));
        w.break_it(Fault::on(&["patch"]).of("deployments").fail(Failure::Server(500)));
        w.apply(&api).await;
        let history = w.history("ModelAPI/llm").await;
        w.pass_time(Duration::from_secs(5)).await;
        w.patch("ModelAPI/llm", &json!({"spec": {"podSpec": {"terminationGracePeriodSeconds": 5}}})).await;
        let told = w
            .until("ModelAPI/llm has the reason ApplyFailed for Applied", "ModelAPI/llm", |api| {
                reason(api, "Applied") == "ApplyFailed"
            })
            .await;
        assert_eq!(told["status"]["observedGeneration"], 2);
        let states = history.states();
        let applied = states.iter().map(|state| condition(state, "Applied")).filter(|it| it["status"] == "True");
        let of: Vec<Value> = applied.map(|it| it["observedGeneration"].clone()).collect();
        assert_eq!(of, [1], "the second generation must not count as applied");
        w.mend();
        let told = w.until_ready("ModelAPI/llm").await;
        assert_eq!(told["status"]["observedGeneration"], 2);
    });
}

#[test]
fn d5_a_transition_time_changes_only_when_its_condition_flips() {
    play(Scenario::embedded("the test decides the fate of pods, and simulates time"), async |w| {
        w.apply(&web()).await;
        let since = |gadget: &Value, of: &str| text(&condition(gadget, of)["lastTransitionTime"]).to_owned();
        let first = w.until_ready("Gadget/web").await;
        w.pass_time(Duration::from_secs(100)).await;
        // Make all pods fail: otherwise the object would stay ready, because the old pods still serve.
        w.pods(PodFate::NotReady);
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        let down = w
            .until("Ready flips", "Gadget/web", |g| {
                condition(g, "Ready")["status"] == "False" && g["status"]["observedGeneration"] == 2
            })
            .await;
        assert_eq!(since(&down, "Accepted"), since(&first, "Accepted"));
        assert!(since(&down, "Ready") > since(&first, "Ready"), "{down:#}");
        w.pass_time(Duration::from_secs(10)).await;
        w.pods(PodFate::ReadyAfter(Duration::ZERO));
        let up = w.until_ready("Gadget/web").await;
        assert!(since(&up, "Ready") > since(&down, "Ready"), "{up:#}");
        assert_eq!(since(&up, "Applied"), since(&first, "Applied"));
    });
}

#[test]
fn d6_every_kind_has_phase_ready_and_endpoint() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api("llm"), mcp_server("echo"), agent("a", "llm", &json!({})), web()]).await;
        let at = ["ModelAPI/llm", "MCPServer/echo", "Agent/a", "Gadget/web"];
        let all = w.until_all("all objects are ready", &at, |all| all.iter().all(is_ready)).await;
        let services = ["modelapi-llm", "mcpserver-echo", "agent-a", "web"];
        for (object, service) in all.iter().zip(services) {
            let status = &object["status"];
            assert_eq!((&status["phase"], &status["ready"]), (&json!("Ready"), &json!(true)), "{status:#}");
            let port = w.look(&format!("Service/{service}")).await["spec"]["ports"][0]["port"].clone();
            let endpoint = format!("http://{service}.{}.svc.cluster.local:{port}", w.namespace);
            assert_eq!(status["endpoint"], endpoint);
        }
    });
}

#[test]
fn d7_the_policys_own_conditions_follow_the_common_ones() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        w.until("there is a Service", "Gadget/web", |gadget| is_true(gadget, "ServiceReady")).await;
        let told = w.until_ready("Gadget/web").await;
        let types: Vec<_> = told["status"]["conditions"].as_array().unwrap().iter().map(|c| text(&c["type"])).collect();
        assert_eq!(types, ["Accepted", "Resolved", "Applied", "Ready", "ServiceReady"]);
    });
}

fn is_camel_case(reason: &str) -> bool {
    reason.starts_with(|first: char| first.is_ascii_uppercase()) && reason.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The reasons that the reference page documents for the conditions of all kinds.
const REASONS: [(&str, &[&str]); 4] = [
    ("Accepted", &["Accepted", "InvalidSpec", "Unsupported", "NoPolicy", "PolicyFailed", "Waiting"]),
    ("Resolved", &["Resolved", "NotFound", "NotPermitted", "Waiting"]),
    (
        "Applied",
        &[
            "Applied",
            "Gated",
            "OwnershipConflict",
            "GuardRefused",
            "ApplyFailed",
            "NotPermitted",
            "Refused",
            "PolicyFailed",
        ],
    ),
    ("Ready", &["Ready", "Progressing", "Unavailable", "Gated", "Refused"]),
];

#[test]
fn d8_all_reasons_are_documented() {
    play(Scenario::default(), async |w| {
        w.apply(&deployment("clash", "stranger:1")).await;
        let specs = json!({"good": {}, "refused": {"does": "refuse"}, "unsupported": {"does": "give-up"}, "trapped": {"does": "trap"},
            "astray": {"does": "stray"}, "waiting": {"chain": "nothing"}, "gated": {"after": "nobody"}, "clash": {},
            "impossible": {"does": "misspell"}});
        for (name, spec) in specs.as_object().unwrap() {
            w.apply(&gadget(name, spec)).await;
        }
        let names: Vec<String> = specs.as_object().unwrap().keys().map(|name| format!("Gadget/{name}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = w
            .until_all("all objects have a status", &names, |all| {
                all.iter().all(|object| !condition(object, "Ready").is_null())
            })
            .await;
        w.until_ready("Gadget/good").await;
        for object in &all {
            for (of, documented) in REASONS {
                let reason = reason(object, of);
                let name = &object["metadata"]["name"];
                assert!(is_camel_case(&reason) && documented.contains(&reason.as_str()), "{name}: {of} {reason}");
            }
        }
        let wanted = [
            ("refused", "Accepted", "InvalidSpec"),
            ("unsupported", "Accepted", "Unsupported"),
            ("trapped", "Accepted", "PolicyFailed"),
            ("astray", "Applied", "GuardRefused"),
            ("waiting", "Resolved", "NotFound"),
            ("gated", "Applied", "Gated"),
            ("clash", "Applied", "OwnershipConflict"),
            ("impossible", "Applied", "ApplyFailed"),
        ];
        for (name, of, wanted) in wanted {
            w.until(&format!("{of} is {wanted}"), &format!("Gadget/{name}"), |object| reason(object, of) == wanted)
                .await;
        }
    });
}

#[test]
fn d9_a_status_is_written_to_its_subresource_and_causes_no_further_write() {
    play(Scenario::embedded("the test counts requests and passes"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        let writes = w.requests(Sort::Write);
        let plain: Vec<_> =
            writes.iter().filter(|e| e.attempt.resource == "gadgets" && e.attempt.subresource.is_empty()).collect();
        assert_eq!(plain.len(), 1, "only the finalizer is written outside the status: {plain:#?}");
        assert_eq!(w.look("Gadget/web").await["metadata"]["generation"], 1);
        let before = passes(w);
        w.pass_time(Duration::from_mins(2)).await;
        assert_eq!(passes(w), before);
    });
}

#[test]
fn d9_undeclared_status_fields_are_omitted() {
    play(Scenario::default(), async |w| {
        w.apply(&web()).await;
        let told = w.until_ready("Gadget/web").await;
        assert_eq!(told["status"].get("undeclared"), None);
    });
}

#[test]
fn d9_status_fields_declared_later_are_written_from_then_on() {
    play(Scenario::embedded("definitions are shared on a real control plane"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        let name = "CustomResourceDefinition/gadgets.test.example.com";
        let mut versions = w.look(name).await["spec"]["versions"].take();
        let status = &mut versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        status["undeclared"] = json!({"type": "string"});
        let with = json!({"spec": {"versions": versions}});
        w.patch(name, &with).await;
        w.until("the status has the declared field", "Gadget/web", |gadget| {
            gadget["status"]["undeclared"] == "dropped"
        })
        .await;
        let mut versions = with["spec"]["versions"].clone();
        let schema = &mut versions[0]["schema"]["openAPIV3Schema"];
        schema["properties"]["status"]["properties"].as_object_mut().unwrap().remove("undeclared");
        w.patch(name, &json!({"spec": {"versions": versions}})).await;
        w.apply(&web_with(&json!({"image": "registry.example/gadget:2"}))).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn d10_a_status_write_is_retried_after_a_conflict() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.break_it(Fault::on_writes().of("gadgets").under("status").fail(Failure::Conflict).times(3));
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
    });
}

#[test]
fn d11_ready_stays_true_while_more_pods_start_and_the_message_counts_them() {
    play(Scenario::embedded("the test decides the fate of pods"), async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({"replicas": 2}))]).await;
        w.until_ready("Agent/a").await;
        w.pods_of("agent-a", PodFate::ReadyAfter(Duration::from_mins(1)));
        w.apply(&agent("a", "llm", &json!({"replicas": 5}))).await;
        let counted = Cell::new(false);
        w.until("all five pods are ready", "Agent/a", |agent| {
            if agent["status"]["observedGeneration"] == 2 && message(agent).contains("2/5") {
                counted.set(true);
                assert!(is_ready(agent), "{agent:#}");
            }
            is_ready(agent) && message(agent).contains("5/5")
        })
        .await;
        assert!(counted.get(), "no status counted 2/5");
    });
}

#[test]
fn d11_an_unobserved_deployment_changes_no_scaling_status() {
    play(Scenario::embedded("the test delays controllers, and counts requests"), async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({"replicas": 2}))]).await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        let history = w.history("Agent/a").await;
        w.embedded().send_away(Controller::Deployments);
        w.forget_requests();
        w.apply(&agent("a", "llm", &json!({"replicas": 5}))).await;
        w.until("Deployment/agent-a is scaled", "Deployment/agent-a", |deployment| deployment["spec"]["replicas"] == 5)
            .await;
        w.pass_time(Duration::from_secs(5)).await;
        assert_eq!(w.writes_by_type().get("agents/status"), None, "{:#?}", w.writes());
        w.pods_of("agent-a", PodFate::ReadyAfter(Duration::from_mins(1)));
        w.embedded().call_back(Controller::Deployments);
        w.until("all five pods are ready", "Agent/a", |agent| is_ready(agent) && message(agent).contains("5/5")).await;
        w.quiet().await;
        // The three pods may become ready together or one after the other, so the number of intermediate counts varies.
        let statuses = w.writes_by_type()["agents/status"];
        assert!((2..=4).contains(&statuses), "{statuses} writes of the status: {:#?}", w.writes());
        let flapped = history.states().into_iter().find(|agent| condition(agent, "Ready")["status"] != "True");
        assert_eq!(flapped, None);
    });
}

#[test]
fn d11_a_stalled_deployment_controller_is_reported_after_a_while() {
    play(Scenario::embedded("the test delays controllers, and counts requests"), async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        w.until_ready("Agent/a").await;
        w.embedded().send_away(Controller::Deployments);
        w.forget_requests();
        w.apply(&agent("a", "llm", &json!({"replicas": 5}))).await;
        let told = w
            .until("the status shows the second generation", "Agent/a", |agent| {
                agent["status"]["observedGeneration"] == 2
            })
            .await;
        assert_eq!(condition(&told, "Ready")["status"], "False");
        w.pass_time(Duration::from_mins(2)).await;
        assert_eq!(w.writes_by_type().get("agents/status"), Some(&1), "{:#?}", w.writes());
        w.embedded().call_back(Controller::Deployments);
        w.until_ready("Agent/a").await;
    });
}

#[test]
fn d11_ready_is_about_the_current_generation() {
    play(Scenario::embedded("the test decides the fate of pods"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.pods_of("web", PodFate::ImagePullBackOff);
        w.apply(&web_with(&json!({"image": "registry.example/none:1"}))).await;
        w.until("Deployment/web has the image", "Deployment/web", |now| image(now) == "registry.example/none:1").await;
        w.apply(&web()).await;
        w.pods_of("web", PodFate::ReadyAfter(Duration::ZERO));
        let now = w.until_ready("Gadget/web").await;
        assert_eq!(condition(&now, "Ready")["observedGeneration"], 3);
    });
}

#[test]
fn d12_printer_columns_show_ready_and_the_reason_if_it_is_false() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[model_api("llm"), web()]).await;
        w.until_all("both objects are ready", &["ModelAPI/llm", "Gadget/web"], |all| all.iter().all(is_ready)).await;
        for (group, plural, wanted) in [
            ("test.example.com/v1", "gadgets", vec![("Ready", json!("True")), ("Accepted", json!("True"))]),
            ("kaos.tools/v1alpha1", "modelapis", vec![("Ready", json!(true)), ("Phase", json!("Ready"))]),
        ] {
            let table = w.table(&format!("/apis/{group}/namespaces/{}/{plural}", w.namespace)).await;
            let columns = table["columnDefinitions"].as_array().unwrap();
            for (column, value) in wanted {
                let at = columns.iter().position(|definition| definition["name"] == column).unwrap();
                assert_eq!(table["rows"][0]["cells"][at], value, "{column}: {table:#}");
            }
        }
    });
}
