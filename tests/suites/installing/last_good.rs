//! Tests a policy that fails on its objects.
//!
//! The operator puts such a policy into quarantine, and the policy's predecessor serves again.

use kaos_cluster::faults::Failure;
use kaos_policy::cut::STATUS;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::name;
use kaos_tests::harness::{Fault, World, condition, is_true, play, reason};
use serde_json::{Value, json};

use crate::support::{
    define, first_edition_serves, namespace, next_edition_traps_on_one, package, retry, revisions, scenario, settings,
    states, until_edition, until_state, widget, widget_in,
};

/// Creates Widgets in two namespaces, and waits until the first edition serves them. Every third Widget is fragile.
pub(crate) async fn widgets(world: &World) -> Vec<String> {
    define(world).await;
    world.apply(&namespace("other")).await;
    world.apply(&package("widgets", "1", "")).await;
    let mut all = Vec::new();
    for number in 0..12 {
        let (namespace, name) = (if number % 2 == 0 { "test" } else { "other" }, format!("w{number}"));
        world.apply(&widget_in(namespace, &name, &json!({"fragile": number % 3 == 0}))).await;
        all.push(format!("{namespace}:ConfigMap/{name}"));
    }
    for config_map in &all {
        until_edition(world, config_map, "1").await;
    }
    world.quiet().await;
    all
}

async fn versions(world: &World, all: &[String]) -> Vec<Value> {
    let mut versions = Vec::new();
    for config_map in all {
        versions.push(world.look(config_map).await["metadata"]["resourceVersion"].clone());
    }
    versions
}

/// Installs a second edition that fails on every third Widget. The second edition goes into quarantine, and every
/// Widget gets the children of the first edition again.
async fn puts_aside(world: &World, fault: &str) {
    let all = widgets(world).await;
    let fragile: Vec<String> = all.iter().step_by(3).cloned().collect();
    let before = versions(world, &fragile).await;
    let histories = [world.history("Widget/w0").await, world.history("other:Widget/w3").await];
    let first = world.look("Widget/w0").await["status"]["policy"]["digest"].clone();
    world.apply(&package("widgets", &format!("2 {fault}"), "")).await;
    let aside = until_state(world, "widgets", "Quarantined").await;
    assert_eq!(aside["status"]["reason"], "FailedInService");
    for config_map in &all {
        until_edition(world, config_map, "1").await;
    }
    world.quiet().await;
    assert_eq!(before, versions(world, &fragile).await, "the children of fragile Widgets did not change");
    for config_map in &all {
        let at = config_map.replace("ConfigMap", "Widget");
        let told = world.look(&at).await;
        assert_eq!(told["status"]["policy"]["version"], "1.0.0");
        assert!(condition(&told, "PolicyFallback").is_null(), "no fallback serves after the quarantine: {told}");
    }
    for history in histories {
        let told = history.states();
        assert!(
            told.iter().all(|state| state["status"]["policy"]["digest"] == first),
            "no status named the failing revision"
        );
        let fell_back = told.iter().any(|state| condition(state, "PolicyFallback")["status"] == "True");
        assert!(fell_back, "a status reported the fallback: {told:#?}");
    }
    assert!(world.counted("kaos_operator_policy_fallbacks_total", &["policy=\"widget\""]) >= 3.0);
    let aside_now = async || world.counted("kaos_operator_policy_revisions", &["state=\"Quarantined\""]) > 0.0;
    world.until_true("the metric counts the quarantine", aside_now).await;
    let events = world.list_in(Kind::named("Event"), "kaos-system").await;
    let told = |event: &&Value| event["reason"] == "FailedInService" && event["type"] == "Warning";
    assert_eq!(events.iter().filter(told).count(), 1, "{events:#?}");
    world.restart().await;
    world.quiet().await;
    until_state(world, "widgets", "Quarantined").await;
    until_edition(world, &all[0], "1").await;
    until_edition(world, &all[1], "1").await;
}

#[test]
fn a_policy_that_traps_on_a_third_of_its_objects_is_quarantined() {
    play(scenario(), async |world| puts_aside(world, "traps").await);
}

#[test]
fn a_policy_that_loops_is_quarantined() {
    play(scenario(), async |world| puts_aside(world, "loops").await);
}

#[test]
fn a_policy_that_writes_into_another_namespace_is_quarantined() {
    play(scenario(), async |world| puts_aside(world, "strays").await);
}

#[test]
fn a_policy_that_fails_with_a_too_long_message_is_quarantined() {
    play(scenario(), async |world| {
        puts_aside(world, "babbles").await;
        let aside = until_state(world, "widgets", "Quarantined").await;
        let told = aside["status"]["message"].as_str().unwrap();
        assert!(told.len() <= STATUS, "{}", told.len());
    });
}

#[test]
fn a_retry_request_does_not_exempt_a_policy_from_quarantine() {
    play(scenario(), async |world| {
        widgets(world).await;
        let active = until_state(world, "widgets", "Active").await;
        retry(world, &active).await;
        world
            .until_true("the operator has handled the retry request", async || {
                until_state(world, "widgets", "Active").await["status"]["retried"] == "please"
            })
            .await;
    });
}

#[test]
fn a_quarantine_that_cannot_be_written_delays_no_other() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&namespace("other")).await;
        let packages = [("first", "test"), ("second", "other")];
        for (name, namespace) in packages {
            world.apply(&widget_in(namespace, "w", &json!({}))).await;
            for edition in ["1", "2 traps"] {
                world.apply(&package(name, edition, &format!("scope: {{namespaces: [{namespace}]}}"))).await;
                until_edition(world, &format!("{namespace}:ConfigMap/w"), &edition[..1]).await;
            }
        }
        world.quiet().await;
        let second_edition = |revision: &Value| revision["status"]["version"] == "2.0.0";
        let bad = revisions(world, "first").await.into_iter().find(second_edition).unwrap();
        world.break_it(writes_of_states().named(name(&bad)).fail(Failure::Server(500)));
        for (_, namespace) in packages {
            world.apply(&widget_in(namespace, "w", &json!({"fragile": true}))).await;
        }
        until_state(world, "second", "Quarantined").await;
        world.until_hit().await;
        assert!(!states(world, "first").await.contains(&"Quarantined".to_owned()));
        world.mend();
        until_state(world, "first", "Quarantined").await;
        for (_, namespace) in packages {
            until_edition(world, &format!("{namespace}:ConfigMap/w"), "1").await;
        }
    });
}

#[test]
fn a_policy_whose_children_the_server_refuses_is_quarantined() {
    play(scenario(), async |world| puts_aside(world, "is rejected").await);
}

#[test]
fn a_policy_whose_children_have_an_unknown_field_is_quarantined() {
    play(scenario(), async |world| puts_aside(world, "misspells").await);
}

#[test]
fn a_failure_that_the_predecessor_shares_does_not_count() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&namespace("other")).await;
        world.apply(&package("widgets", "1 is rejected", "")).await;
        for (namespace, name) in [("test", "a"), ("other", "b"), ("test", "c"), ("other", "d")] {
            world.apply(&widget_in(namespace, name, &json!({"fragile": true}))).await;
        }
        world.apply(&widget("sturdy", &json!({}))).await;
        until_edition(world, "ConfigMap/sturdy", "1").await;
        world.apply(&package("widgets", "2 is rejected", "")).await;
        until_edition(world, "ConfigMap/sturdy", "2").await;
        world.quiet().await;
        until_state(world, "widgets", "Active").await;
        assert!(!states(world, "widgets").await.contains(&"Quarantined".to_owned()));
        let told = world.look("other:Widget/b").await;
        assert_eq!(condition(&told, "Applied")["status"], "False", "{told}");
    });
}

#[test]
fn if_the_predecessor_fails_too_the_newer_failure_is_reported() {
    for (older, newer, of, why) in [
        ("1 traps", "2 traps", "Accepted", "PolicyFailed"),
        ("1 traps", "2 misspells", "Applied", "ApplyFailed"),
        ("1 misspells", "2 misspells", "Applied", "ApplyFailed"),
    ] {
        play(scenario(), async |world| {
            define(world).await;
            world.apply(&package("widgets", older, "")).await;
            world.apply(&widget("sturdy", &json!({}))).await;
            until_edition(world, "ConfigMap/sturdy", "1").await;
            world.apply(&widget("fragile", &json!({"fragile": true}))).await;
            world
                .until("the older revision fails on the Widget", "Widget/fragile", |widget| {
                    !reason(widget, of).is_empty() && !is_true(widget, of)
                })
                .await;
            world.apply(&package("widgets", newer, "")).await;
            until_edition(world, "ConfigMap/sturdy", "2").await;
            let told = world
                .until("the status reports the newer failure", "Widget/fragile", |widget| {
                    widget["status"]["policy"]["version"] == "2.0.0" && reason(widget, of) == why
                })
                .await;
            assert_eq!(reason(&told, "PolicyFallback"), "FellBack", "{older}, {newer}: {told:#}");
            world.quiet().await;
            assert!(world.look("ConfigMap/fragile").await.is_null(), "{older}, {newer}: no policy serves the Widget");
            until_state(world, "widgets", "Active").await;
            assert!(!states(world, "widgets").await.contains(&"Quarantined".to_owned()), "{older}, {newer}");
        });
    }
}

#[test]
fn one_failing_object_falls_back_at_once_without_a_quarantine() {
    play(scenario(), async |world| {
        next_edition_traps_on_one(world).await;
        let told = world
            .until("the condition PolicyFallback of Widget/fragile is True", "Widget/fragile", |widget| {
                condition(widget, "PolicyFallback")["status"] == "True"
            })
            .await;
        assert_eq!(told["status"]["policy"]["version"], "1.0.0");
        assert_eq!(told["status"]["ready"], true, "the Widget is ready: {told}");
        world.quiet().await;
        until_state(world, "widgets", "Active").await;
        assert_eq!(world.look("ConfigMap/sturdy").await["data"]["edition"], "2");
        let events = world.list("Event").await;
        assert!(events.iter().any(|event| event["reason"] == "FellBack"), "{events:?}");
    });
}

#[test]
fn children_of_the_newer_revision_outlive_a_fallback_of_one_object() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&widget("sturdy", &json!({}))).await;
        world.apply(&package("widgets", "2 keeps", "")).await;
        let uid = |kept: &Value| kept["metadata"]["uid"].clone();
        let kept = uid(&world.until("ConfigMap/w-kept exists", "ConfigMap/w-kept", |kept| !kept.is_null()).await);
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world
            .until("the condition PolicyFallback of Widget/w is True", "Widget/w", |widget| {
                condition(widget, "PolicyFallback")["status"] == "True"
            })
            .await;
        world.quiet().await;
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept);
        world.apply(&widget("w", &json!({"fragile": false}))).await;
        until_edition(world, "ConfigMap/w", "2").await;
        assert_eq!(uid(&world.look("ConfigMap/w-kept").await), kept);
    });
}

#[test]
fn children_of_a_quarantined_revision_alone_are_deleted() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2 keeps", "")).await;
        world.until("ConfigMap/w-kept exists", "ConfigMap/w-kept", |kept| !kept.is_null()).await;
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        until_state(world, "widgets", "Quarantined").await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.until_gone("ConfigMap/w-kept").await;
    });
}

/// Returns a fault that affects the operator's writes of the status of revisions.
fn writes_of_states() -> Fault {
    Fault::on(&["patch"]).of("policyrevisions").under("status")
}

#[test]
fn a_state_that_cannot_be_written_at_once_is_written_later() {
    for before in 0..5 {
        play(scenario(), async |world| {
            let all = widgets(world).await;
            world.break_it(writes_of_states().times(before));
            world.break_it(writes_of_states().fail(Failure::Server(500)).times(1));
            world.apply(&package("widgets", "2 traps", "")).await;
            until_state(world, "widgets", "Quarantined").await;
            world.quiet().await;
            let mut told = states(world, "widgets").await;
            told.sort();
            assert_eq!(told, ["Active", "Quarantined"], "write {before} failed");
            for config_map in &all {
                until_edition(world, config_map, "1").await;
            }
        });
    }
}

#[test]
fn an_operator_killed_between_two_states_leaves_an_active_revision() {
    for before in 0..4 {
        play(scenario(), async |world| {
            let all = widgets(world).await;
            world.break_it(writes_of_states().times(before));
            world.break_it(writes_of_states().fail(Failure::Server(500)));
            world.apply(&package("widgets", "2", "")).await;
            world.pass_time(std::time::Duration::from_secs(20)).await;
            world.crash().await;
            world.mend();
            world.spawn();
            for config_map in &all {
                until_edition(world, config_map, "2").await;
            }
            world.quiet().await;
            let told = states(world, "widgets").await;
            assert_eq!(told.iter().filter(|state| *state == "Active").count(), 1, "after {before} writes: {told:?}");
        });
    }
}

#[test]
fn failures_of_a_policy_do_not_count_against_settings() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&namespace("other")).await;
        world.apply(&package("widgets", "2 traps", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.apply(&settings("sizes", "{name: widget, settings: {size: 5}}")).await;
        let is_five = |live: &Value| live["data"]["size"] == "5";
        world.until("the settings apply", "ConfigMap/w", is_five).await;
        let crafted = ["test:ConfigMap/a", "other:ConfigMap/b", "test:ConfigMap/c"];
        for (namespace, name) in [("test", "a"), ("other", "b"), ("test", "c")] {
            world.apply(&widget_in(namespace, name, &json!({"fragile": true}))).await;
        }
        until_state(world, "widgets", "Quarantined").await;
        for config_map in crafted.into_iter().chain(["ConfigMap/w"]) {
            let made = until_edition(world, config_map, "1").await;
            assert!(is_five(&made), "{made}");
        }
        world.quiet().await;
        assert_eq!(states(world, "sizes").await, ["Active"]);
    });
}

#[test]
fn a_fallback_over_two_revisions_survives_a_restart() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&widget("crafted", &json!({"fragile": true}))).await;
        until_edition(world, "ConfigMap/crafted", "1").await;
        for edition in ["2", "3"] {
            world.apply(&package("widgets", &format!("{edition} traps"), "")).await;
            until_edition(world, "ConfigMap/w", edition).await;
        }
        world.quiet().await;
        world.restart().await;
        world.delete("ConfigMap/crafted").await;
        until_edition(world, "ConfigMap/crafted", "1").await;
        let told = world.look("Widget/crafted").await;
        assert_eq!(condition(&told, "PolicyFallback")["status"], "True", "{told}");
    });
}

#[test]
fn an_object_without_a_pin_quarantines_no_pinned_policy() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2 traps", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.patch("Widget/w", &json!({"metadata": {"annotations": {"kaos.tools/policy": "widget"}}})).await;
        world.quiet().await;
        world.apply(&widget("crafted", &json!({"fragile": true}))).await;
        until_edition(world, "ConfigMap/crafted", "1").await;
        world.quiet().await;
        until_state(world, "widgets", "Active").await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "2");
    });
}
