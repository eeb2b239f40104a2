//! Tests the operator's last good settings: a new process uses the settings that an earlier process stored.

use std::time::Duration;

use kaos_cluster::faults::Failure;
use kaos_tests::case;
use kaos_tests::harness::faults::is_operator;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{Fault, World, play};
use serde_json::{Value, json};

use crate::support::{
    define, first_edition_serves, own_config, own_config_of, package_in, restart_writes_nothing, scenario, settings,
    until_state, widget,
};

const OWN: &str = "kaos-system:ConfigMap/kaos-operator-config";
const KEPT: &str = "kaos-system:ConfigMap/kaos-operator-config-fitted";

const FIRST: &str = "registry.example/agent:1";
const SECOND: &str = "registry.example/agent:2";
const THIRD: &str = "registry.example/agent:3";

/// Returns the ConfigMap `kaos-operator-config` with an image for Agents.
///
/// If `fits` is false, the ConfigMap also contains an invalid setting.
fn says(image: &str, fits: bool) -> Value {
    let telemetry = if fits { "false" } else { "maybe" };
    own_config_of(&json!({"DEFAULT_AGENT_IMAGE": image, "DEFAULT_TELEMETRY_ENABLED": telemetry}))
}

async fn until_kept(world: &World, variable: &str, value: &str) {
    world.until(&format!("{value} is kept"), KEPT, |kept| kept["data"][variable] == value).await;
}

/// Waits until the Deployment of the Agent `a` has this image.
async fn until_agent_runs(world: &World, image: &str) {
    let runs = |it: &Value| it["spec"]["template"]["spec"]["containers"][0]["image"] == image;
    world.until(&format!("the Agent runs {image}"), "Deployment/agent-a", runs).await;
}

async fn agent_comes(world: &World) {
    world.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
}

#[test]
fn a_misspelt_variable_is_reported_and_the_others_apply() {
    play(scenario(), async |world| {
        world.apply(&own_config_of(&json!({"DEFAULT_AGENT_IMG": FIRST, "DEFAULT_LOG_LEVEL": "DEBUG"}))).await;
        world.until_warned(OWN, "BadSettings").await;
        let told = "ConfigMap kaos-operator-config: no setting reads variable DEFAULT_AGENT_IMG: did you mean \
             DEFAULT_AGENT_IMAGE?";
        let events = world.events(OWN).await;
        assert!(events.len() == 1 && events[0].2 == told, "{events:?}");
        agent_comes(world).await;
        world.until_ready("Agent/a").await;
        world.apply(&says(SECOND, true)).await;
        until_agent_runs(world, SECOND).await;
    });
}

#[test]
fn the_last_good_settings_apply_after_a_restart_until_the_config_map_is_fixed() {
    play(scenario(), async |world| {
        world.apply(&says(FIRST, true)).await;
        until_kept(world, "DEFAULT_AGENT_IMAGE", FIRST).await;
        world.apply(&says(SECOND, false)).await;
        world.restart().await;
        agent_comes(world).await;
        until_agent_runs(world, FIRST).await;
        world.until_warned(OWN, "BadSettings").await;
        assert_eq!(world.look(KEPT).await["data"]["DEFAULT_AGENT_IMAGE"], FIRST);
        world.apply(&says(THIRD, true)).await;
        until_agent_runs(world, THIRD).await;
        until_kept(world, "DEFAULT_AGENT_IMAGE", THIRD).await;
        world.until_ready("Agent/a").await;
        world.quiet().await;
        restart_writes_nothing(world).await;
    });
}

#[test]
fn the_last_good_settings_of_an_installed_policy_survive_a_restart() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&own_config("5")).await;
        until_kept(world, "WIDGET_SIZE", "5").await;
        world.apply(&own_config("ten")).await;
        world.restart().await;
        world.apply(&widget("later", &json!({}))).await;
        world.until("ConfigMap/later is of that size", "ConfigMap/later", |live| live["data"]["size"] == "5").await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["size"], "5");
    });
}

#[test]
fn a_deleted_config_map_counts_as_the_last_good_settings() {
    play(scenario(), async |world| {
        world.apply(&says(FIRST, true)).await;
        until_kept(world, "DEFAULT_AGENT_IMAGE", FIRST).await;
        world.delete(OWN).await;
        let is_empty = |kept: &Value| kept["kind"] == "ConfigMap" && kept["data"]["DEFAULT_AGENT_IMAGE"].is_null();
        world.until("the stored settings are empty", KEPT, is_empty).await;
        world.apply(&says(SECOND, false)).await;
        world.restart().await;
        agent_comes(world).await;
        until_agent_runs(world, &case::default_environment().unwrap()["DEFAULT_AGENT_IMAGE"]).await;
    });
}

#[test]
fn without_last_good_settings_the_operator_waits_and_says_why() {
    play(scenario().idle(), async |world| {
        world.apply(&says(SECOND, false)).await;
        agent_comes(world).await;
        world.spawn();
        let waits = async || {
            let named = |missing: Vec<String>| missing.iter().any(|it| it.contains("DEFAULT_TELEMETRY_ENABLED"));
            world.probe().ready().is_err_and(named)
        };
        world.until_true("the operator says what it waits for", waits).await;
        world.until_warned(OWN, "BadSettings").await;
        assert_eq!(world.look("ModelAPI/llm").await["status"], json!({"observedGeneration": -1, "ready": false}));
        world.apply(&says(THIRD, true)).await;
        until_agent_runs(world, THIRD).await;
    });
}

#[test]
fn invalid_settings_are_reported_in_one_event_of_their_config_map() {
    play(scenario(), async |world| {
        let told = async || {
            let mut events = world.list_in(Kind::named("Event"), "kaos-system").await;
            events.retain(|event| event["reason"] == "BadSettings");
            events
        };
        world.apply(&says(SECOND, false)).await;
        world.until_warned(OWN, "BadSettings").await;
        // A new package makes the operator check all settings again.
        world.apply(&settings("other", "{name: agent, settings: {logLevel: DEBUG}}")).await;
        until_state(world, "other", "Pending").await;
        world.quiet().await;
        let once = told().await;
        assert_eq!(once.len(), 1, "{once:#?}");
        assert!(once[0]["series"].is_null(), "{once:#?}");
        assert!(once[0]["message"].as_str().unwrap().contains("DEFAULT_TELEMETRY_ENABLED"), "{once:#?}");
        world.apply(&own_config_of(&json!({"GATEWAY_API_ENABLED": "maybe"}))).await;
        world.until_true("a second Event reports the new error", async || told().await.len() == 2).await;
    });
}

#[test]
fn settings_apply_before_they_can_be_stored_and_are_stored_later() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let name = "kaos-operator-config-fitted";
        world.break_it(Fault::on_writes().of("configmaps").named(name).fail(Failure::Server(503)));
        world.apply(&own_config("5")).await;
        world.until("the settings apply", "ConfigMap/w", |live| live["data"]["size"] == "5").await;
        world.until_hit().await;
        assert_ne!(world.look(KEPT).await["data"]["WIDGET_SIZE"], "5");
        world.mend();
        until_kept(world, "WIDGET_SIZE", "5").await;
    });
}

/// Waits until the operator's backoffs have reached their maximum.
///
/// Then returns how many requests about its own rights the operator sends in ten minutes.
async fn asked_in_ten_minutes(world: &World) -> usize {
    world.pass_time(Duration::from_mins(2)).await;
    world.forget_requests();
    world.pass_time(Duration::from_mins(10)).await;
    world.requests(Sort::Read).iter().filter(|entry| entry.attempt.resource.starts_with("selfsubject")).count()
}

#[test]
fn invalid_settings_do_not_make_waiting_packages_retry_more_often() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.embedded().authorise(|attempt| !is_operator(&attempt.user) || attempt.group != "test.example.com");
        world.apply(&package_in("test", "own", "1", "")).await;
        until_state(world, "own", "NotPermitted").await;
        let usual = asked_in_ten_minutes(world).await;
        assert!(usual > 0, "the operator checks the package again");
        world.apply(&says(FIRST, false)).await;
        world.until_warned(OWN, "BadSettings").await;
        let asked = asked_in_ten_minutes(world).await;
        assert!((1..=2 * usual).contains(&asked), "{asked} rights reviews in ten minutes, but {usual} before");
        world.embedded().allow_everything();
        let waits = until_state(world, "own", "Pending").await;
        assert_eq!(waits["status"]["reason"], "BadSettings", "{waits}");
        let asked = asked_in_ten_minutes(world).await;
        assert!((1..=2 * usual).contains(&asked), "{asked} rights reviews in ten minutes, but {usual} before");
        world.delete(OWN).await;
        until_state(world, "own", "Active").await;
    });
}
