//! E3, E4, G1: needs for objects that do not exist yet or cannot exist. Also tests a large number of needs.

use std::collections::BTreeSet;
use std::time::Duration;

use kaos_cluster::faults::{Entry, Verb};
use kaos_tests::gadget::gadget;
use kaos_tests::harness::faults::is_operator;
use kaos_tests::harness::read::{text, variable};
use kaos_tests::harness::samples::{config_map, secret};
use kaos_tests::harness::{Scenario, World, condition, is_ready, play, reason};
use serde_json::{Value, json};

/// Returns a Gadget with this number of needs by label. No other Gadget has these needs.
fn selecting(name: &str, selectors: usize) -> Value {
    let hears: Vec<Value> = (0..selectors).map(|at| json!({"gadget": format!("{name}-{at}")})).collect();
    gadget(name, &json!({"hears": hears}))
}

fn labelled(name: &str, value: &str) -> Value {
    let mut map = config_map(name, &json!({"value": "x"}));
    map["metadata"]["labels"] = json!({"gadget": value});
    map
}

async fn hears(w: &World, at: &str, what: &Value) {
    w.until(&format!("the variable HEARD is {what}"), at, |deployment| variable(deployment, "HEARD") == *what).await;
}

#[test]
fn e3_an_invalid_selector_is_reported_at_the_object_and_breaks_no_watch() {
    play(Scenario::default(), async |w| {
        for (name, labels) in
            [("a", json!({"a": "b,!c", "x in (a)": "y"})), ("b", json!({"a": "b c"})), ("c", json!({"": "b"}))]
        {
            w.apply(&gadget(name, &json!({"hears": [labels]}))).await;
            let at = format!("Gadget/{name}");
            let told = w
                .until("the condition Applied has the reason GuardRefused", &at, |gadget| {
                    reason(gadget, "Applied") == "GuardRefused"
                })
                .await;
            let message = condition(&told, "Applied")["message"].clone();
            assert!(text(&message).contains("is not a valid label to select by"), "{message}");
        }
        w.apply_all(&[labelled("m", "x"), gadget("d", &json!({"hears": [{"gadget": "x"}]}))]).await;
        w.until_ready("Gadget/d").await;
        assert_eq!(w.counted("kaos_operator_watch_state", &["state=\"failing\"", "} 1"]), 0.0);
        assert_eq!(w.counted("kaos_operator_watch_errors_total", &["reason=\"400\""]), 0.0);
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
        w.apply(&labelled("b", "yes")).await;
        hears(w, "Deployment/web", &json!("b")).await;
        w.apply(&labelled("a", "yes")).await;
        hears(w, "Deployment/web", &json!("a,b")).await;
        w.apply(&labelled("b", "no")).await;
        hears(w, "Deployment/web", &json!("a")).await;
        w.delete("ConfigMap/a").await;
        hears(w, "Deployment/web", &Value::Null).await;
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
            w.until("the Deployment has the value", "Deployment/web", |now| variable(now, "SHARED") == value).await;
        }
    });
}

#[test]
fn e4_an_impossible_name_counts_as_missing_and_breaks_no_watch() {
    play(Scenario::default(), async |w| {
        w.apply(&gadget("a", &json!({"chain": "b,c"}))).await;
        w.until("Gadget/a has the reason NotFound for Resolved", "Gadget/a", |gadget| {
            reason(gadget, "Resolved") == "NotFound"
        })
        .await;
        assert_eq!(w.counted("kaos_operator_watch_errors_total", &["reason=\"400\""]), 0.0);
    });
}

#[test]
fn g1_many_selectors_of_a_namespace_share_one_watch() {
    play(Scenario::default(), async |w| {
        w.apply(&labelled("early", "a-7")).await;
        w.apply_all(&[selecting("a", 20), selecting("b", 20)]).await;
        hears(w, "Deployment/a", &json!("early")).await;
        w.until_ready("Gadget/b").await;
        w.apply(&labelled("late", "b-3")).await;
        hears(w, "Deployment/b", &json!("late")).await;
        w.apply(&labelled("early", "b-4")).await;
        hears(w, "Deployment/b", &json!("late,early")).await;
        hears(w, "Deployment/a", &Value::Null).await;
        w.delete("ConfigMap/late").await;
        hears(w, "Deployment/b", &json!("early")).await;
        w.restart().await;
        w.apply(&labelled("early", "a-1")).await;
        hears(w, "Deployment/a", &json!("early")).await;
        hears(w, "Deployment/b", &Value::Null).await;
        w.apply_all(&[selecting("a", 2), selecting("b", 1)]).await;
        w.apply(&labelled("last", "b-0")).await;
        hears(w, "Deployment/b", &json!("last")).await;
        hears(w, "Deployment/a", &json!("early")).await;
    });
}

/// Returns the number of ConfigMap watches that the operator has opened since the journal was cleared.
fn watches(w: &World) -> usize {
    let entries = w.embedded().journal().entries();
    let is_watch = |entry: &&Entry| {
        entry.attempt.verb == Verb::Watch && entry.attempt.resource == "configmaps" && is_operator(&entry.attempt.user)
    };
    entries.iter().filter(is_watch).count()
}

#[test]
fn g1_an_object_beyond_the_limit_of_needs_reports_the_limit_and_waits_for_room() {
    play(Scenario::embedded("the test counts watches"), async |w| {
        for name in ["a", "b", "c", "d"] {
            w.apply(&selecting(name, 250)).await;
            w.until_ready(&format!("Gadget/{name}")).await;
        }
        assert!(watches(w) < 20, "{} watches", watches(w));
        w.forget_requests();
        w.apply(&selecting("e", 200)).await;
        let told = w
            .until("Gadget/e has the reason TooManyNeeds for Resolved", "Gadget/e", |gadget| {
                reason(gadget, "Resolved") == "TooManyNeeds"
            })
            .await;
        let message = condition(&told, "Resolved")["message"].clone();
        for part in ["1200 label selectors", "limit for a namespace is 1000", "move objects to another namespace"] {
            assert!(text(&message).contains(part), "{message}");
        }
        // The operator has refused the selectors of the Gadget `e`. These selectors must not displace the selectors of
        // other Gadgets, and must not cause repeated requests.
        w.apply(&labelled("m", "a-5")).await;
        hears(w, "Deployment/a", &json!("m")).await;
        w.quiet().await;
        w.forget_requests();
        w.pass_time(Duration::from_mins(10)).await;
        assert_eq!(w.writes(), Vec::<String>::new());
        let ready: BTreeSet<bool> = w
            .list("Gadget")
            .await
            .iter()
            .map(|gadget| is_ready(gadget) != (gadget["metadata"]["name"] == "e"))
            .collect();
        assert_eq!(ready, BTreeSet::from([true]), "all Gadgets except the last are ready");
        w.delete("Gadget/c").await;
        w.until_ready("Gadget/e").await;
        w.apply(&labelled("n", "e-9")).await;
        hears(w, "Deployment/e", &json!("n")).await;
    });
}

#[test]
fn g1_an_object_with_too_many_needs_keeps_its_children_and_may_revert() {
    play(Scenario::embedded("the test counts selectors"), async |w| {
        for name in ["a", "b", "c", "d"] {
            w.apply(&selecting(name, 249)).await;
        }
        w.until_ready("Gadget/d").await;
        let mut more = selecting("d", 249);
        let others = (0..7).map(|at| json!({"gadget": format!("more-{at}")}));
        more["spec"]["hears"].as_array_mut().unwrap().extend(others);
        w.apply(&more).await;
        w.until("Gadget/d has the reason TooManyNeeds for Resolved", "Gadget/d", |gadget| {
            reason(gadget, "Resolved") == "TooManyNeeds"
        })
        .await;
        assert!(!w.look("Deployment/d").await.is_null(), "the pods keep running");
        w.apply(&selecting("z", 5)).await;
        w.until("Gadget/z has the reason TooManyNeeds for Resolved", "Gadget/z", |gadget| {
            reason(gadget, "Resolved") == "TooManyNeeds"
        })
        .await;
        w.apply(&selecting("d", 249)).await;
        w.until_ready("Gadget/d").await;
    });
}
