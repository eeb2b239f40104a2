//! Tests new versions of a policy that do not accept the active settings. If a user installs a new version, and also
//! settings that only the new version accepts, the version and the settings become active together.

use kaos_tests::harness::{Scenario, World, play};
use serde_json::{Value, json};

use crate::support::{
    define, first_edition_serves, namespace, own_config, package, restart_writes_nothing, revisions, scenario,
    settings, until_edition, until_state, widget, widget_in,
};

fn size(size: u32) -> Value {
    settings("sizes", &format!("{{name: widget, settings: {{size: {size}}}}}"))
}

async fn until_size(world: &World, size: &str) {
    world
        .until(&format!("the size of the Widget's ConfigMap is {size}"), "ConfigMap/w", |live| {
            live["data"]["size"] == size
        })
        .await;
}

/// Waits until a version of the Widgets' policy is in a state. Returns its revision.
async fn until_version(world: &World, digit: u32, state: &str) -> Value {
    let version = format!("{digit}.0.0");
    let is_it = |it: &Value| it["status"]["state"] == state && it["status"]["version"] == *version;
    let is = async || revisions(world, "widgets").await.iter().any(is_it);
    world.until_true(&format!("version {digit} is {state}"), is).await;
    revisions(world, "widgets").await.into_iter().find(is_it).unwrap()
}

/// Waits until the operator refuses a package because the package does not accept the active settings. Returns the
/// message.
async fn until_unfit(world: &World, source: &str) -> String {
    let refused = until_state(world, source, "Refused").await;
    assert_eq!(refused["status"]["reason"], "SettingsDoNotFit", "{refused}");
    refused["status"]["message"].as_str().unwrap().to_owned()
}

async fn sized_5(world: &World, edition: &str) {
    define(world).await;
    world.apply(&package("widgets", edition, "")).await;
    until_state(world, "widgets", "Active").await;
    world.apply(&size(5)).await;
    world.apply(&widget("w", &json!({}))).await;
    until_size(world, "5").await;
}

#[test]
fn a_new_version_that_active_settings_break_is_refused_until_they_change() {
    for (edition, told) in [
        ("2 small", "setting widget.size, given by policy ConfigMap sizes of the operator's namespace"),
        ("2 breaks at 5", "with the settings of policy ConfigMap sizes of the operator's namespace: sample smallest"),
    ] {
        play(scenario(), async |world| {
            sized_5(world, "1").await;
            world.apply(&package("widgets", edition, "")).await;
            let message = until_unfit(world, "widgets").await;
            assert!(
                message.contains(told) && message.contains("correct or delete the settings"),
                "{edition}: {message}"
            );
            world.quiet().await;
            assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1");
            restart_writes_nothing(world).await;
            world.apply(&size(3)).await;
            until_edition(world, "ConfigMap/w", "2").await;
            until_size(world, "3").await;
            world.quiet().await;
            restart_writes_nothing(world).await;
        });
    }
}

#[test]
fn a_new_version_waits_for_operator_settings_that_break_it() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&own_config("5")).await;
        until_size(world, "5").await;
        world.apply(&package("widgets", "2 breaks at 5", "")).await;
        let waits = until_state(world, "widgets", "Pending").await;
        let told = waits["status"]["message"].as_str().unwrap();
        assert!(waits["status"]["reason"] == "BadSettings" && told.contains("kaos-operator-config"), "{waits}");
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1");
        world.apply(&own_config("4")).await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn a_new_version_is_tried_with_the_settings_of_its_places() {
    play(Scenario::embedded("namespaces").installing(true), async |world| {
        sized_5(world, "1").await;
        world.apply(&namespace("canary")).await;
        world.apply(&size(4)).await;
        world.apply(&settings("scoped", "{name: widget, scope: {namespaces: [canary]}, settings: {size: 5}}")).await;
        until_state(world, "scoped", "Active").await;
        let breaks = |scope: &str| package("widgets", "2 breaks at 5", &format!("scope: {{namespaces: [{scope}]}}"));
        world.apply(&breaks("canary, test")).await;
        let message = until_unfit(world, "widgets").await;
        assert!(message.contains("policy ConfigMap scoped"), "{message}");
        world.apply(&breaks("test")).await;
        until_version(world, 2, "Active").await;
    });
}

#[test]
fn settings_of_a_tenant_do_not_delay_a_policy_for_the_cluster() {
    play(Scenario::embedded("namespaces").installing(true), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&namespace("other")).await;
        world.apply_all(&[widget("w", &json!({})), widget_in("other", "w", &json!({}))]).await;
        let mut local = size(5);
        local["metadata"]["namespace"] = json!("test");
        world.apply(&local).await;
        until_size(world, "5").await;
        world.apply(&package("widgets", "2 breaks at 5", "")).await;
        until_edition(world, "other:ConfigMap/w", "2").await;
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "the predecessor answers for the tenant");
        until_version(world, 2, "Active").await;
    });
}

/// Asserts that no Widget ever got children from one edition with the settings for another edition.
fn never_mixed(states: &[Value]) {
    for state in states.iter().filter(|state| !state["data"].is_null()) {
        let (edition, size) = (&state["data"]["edition"], &state["data"]["size"]);
        assert!((edition == "1" && size == "5") || (edition == "2" && size == "4"), "{state}");
    }
}

#[test]
fn a_version_and_settings_that_fit_only_each_other_serve_together() {
    for settings_come_first in [true, false] {
        play(scenario(), async |world| {
            sized_5(world, "1 breaks at 4").await;
            world.quiet().await;
            let history = world.history("ConfigMap/w").await;
            if settings_come_first {
                world.apply(&size(4)).await;
                until_state(world, "sizes", "Refused").await;
                world.apply(&package("widgets", "2 breaks at 5", "")).await;
            } else {
                world.apply(&package("widgets", "2 breaks at 5", "")).await;
                until_unfit(world, "widgets").await;
                world.apply(&size(4)).await;
            }
            until_edition(world, "ConfigMap/w", "2").await;
            until_size(world, "4").await;
            world.quiet().await;
            never_mixed(&history.states());
            for source in ["widgets", "sizes"] {
                let mut states = crate::support::states(world, source).await;
                states.sort_unstable();
                assert_eq!(states, ["Active", "Superseded"], "{source}");
            }
            restart_writes_nothing(world).await;
        });
    }
}

#[test]
fn settings_that_fit_only_a_later_version_serve_after_it() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&package("widgets", "1 small", "")).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&size(5)).await;
        let refused = until_state(world, "sizes", "Refused").await;
        assert_eq!(refused["status"]["reason"], "BadSettings", "{refused}");
        world.apply(&package("widgets", "2", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        until_size(world, "5").await;
        world.quiet().await;
        restart_writes_nothing(world).await;
    });
}

#[test]
fn settings_wait_for_a_version_that_is_being_checked() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&package("widgets", "1 small", "")).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.hold_compiler_over(Some("EDITION=2"));
        world.apply(&package("widgets", "2", "")).await;
        let is = async |source: &str, state: &str, reason: &str| {
            let all = revisions(world, source).await;
            all.iter().any(|it| it["status"]["state"] == state && it["status"]["reason"] == reason)
        };
        world
            .until_meanwhile("the operator checks the new version", async || {
                is("widgets", "Checking", "Checking").await
            })
            .await;
        world.apply(&size(5)).await;
        world
            .until_meanwhile("the settings wait for the policy", async || is("sizes", "Pending", "AwaitsPolicy").await)
            .await;
        world.hold_compiler_over(None);
        until_edition(world, "ConfigMap/w", "2").await;
        until_size(world, "5").await;
    });
}
