//! Tests rollouts during which users install and delete other packages.

use kaos_tests::harness::{World, play};
use serde_json::{Value, json};

use crate::staged::{SERVERS, STEPS, levels, servers, steer, until_moved, until_rollout, with_level};
use crate::support::{
    define, first_edition_serves, own_config, package, revisions, scenario, settings, states, until_edition,
    until_state, widget,
};

/// A rollout with two steps.
///
/// The pause between the steps is so long that the second step begins only if a person promotes the rollout.
const ONE_STEP: &str = "rollout: {mode: staged, steps: [1, 100%], pause: 1h}";

/// Returns another package of settings, which claims the same place as the package `levels`.
fn other_levels(level: &str) -> Value {
    settings("other", &format!("name: mcpserver\nsettings: {{logLevel: {level}}}\n{STEPS}\n"))
}

#[test]
fn a_staged_package_that_waits_for_a_place_disturbs_no_rollout_and_begins_its_own_with_the_place() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("ERROR", "")).await;
        until_moved(world, "ERROR", SERVERS).await;
        world.apply(&other_levels("INFO")).await;
        let waits = until_state(world, "other", "Conflict").await;
        assert!(waits["status"]["rollout"].is_null(), "{waits:#}");
        world.quiet().await;

        world.apply(&levels("DEBUG", STEPS)).await;
        let one = until_moved(world, "DEBUG", 1).await;
        assert_eq!(with_level(world, "ERROR").await.len(), SERVERS - 1);
        let waits = until_state(world, "other", "Conflict").await;
        assert_eq!(
            waits["status"]["reason"], "PlaceTaken",
            "the end of the rollout does not free the place: {waits:#}"
        );
        assert!(one.is_subset(&until_moved(world, "DEBUG", 3).await));
        until_moved(world, "DEBUG", SERVERS).await;
        let has_ended = |it: &Value| it["status"]["reason"] == "RolledOut";
        let ended = async || revisions(world, "levels").await.iter().any(has_ended);
        world.until_true("the rollout ended", ended).await;
        let waits = until_state(world, "other", "Conflict").await;
        assert_eq!(waits["status"]["reason"], "PlaceTaken", "{waits:#}");
        assert!(waits["status"]["rollout"].is_null());

        world.delete("kaos-system:ConfigMap/levels").await;
        until_moved(world, "INFO", 1).await;
        assert_eq!(with_level(world, "DEBUG").await.len(), SERVERS - 1, "the deleted package serves the other servers");
        until_rollout(world, "other", "step 1 of 3 (1): 1 of 6 objects moved").await;
        world.crash().await;
        world.start().await;
        until_moved(world, "INFO", SERVERS).await;
        until_rollout(world, "other", "6 of 6 objects moved").await;
        let settled = async || !states(world, "levels").await.contains(&"Yielding".to_owned());
        world.until_true("the deleted package serves no longer", settled).await;
    });
}

#[test]
fn a_new_content_that_claims_a_taken_value_ends_the_rollout_of_its_package() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("ERROR", "")).await;
        until_moved(world, "ERROR", SERVERS).await;
        let notes = |settings: &str| {
            self::settings("notes", &format!("name: mcpserver\nsettings: {{{settings}}}\n{ONE_STEP}\n"))
        };
        world.apply(&notes("extraAnnotations: {team: a}")).await;
        until_rollout(world, "notes", "step 1 of 2").await;
        // Apply a new content of the package `notes`, which also claims a setting that another package already has.
        world.apply(&notes("extraAnnotations: {team: a}, logLevel: INFO")).await;
        let waits = until_state(world, "notes", "Conflict").await;
        assert!(waits["status"]["rollout"].is_null(), "{waits:#}");
        let settled = async || !states(world, "notes").await.contains(&"Active".to_owned());
        world.until_true("no revision of the package serves", settled).await;
        world.quiet().await;
        assert_eq!(with_level(world, "ERROR").await.len(), SERVERS);
    });
}

async fn until_size(world: &World, size: &str) {
    world.until(&format!("the size is {size}"), "ConfigMap/w", |live| live["data"]["size"] == size).await;
}

/// Begins the rollout of the second edition of the policy, and waits until this edition serves one of two Widgets.
///
/// The second edition accepts all sizes.
async fn second_edition_moves(world: &World, first: &str) -> Value {
    define(world).await;
    world.apply(&package("widgets", first, "")).await;
    for name in ["w", "v"] {
        world.apply(&widget(name, &json!({}))).await;
        until_edition(world, &format!("ConfigMap/{name}"), "1").await;
    }
    world.apply(&package("widgets", "2", ONE_STEP)).await;
    until_rollout(world, "widgets", "step 1 of 2").await
}

#[test]
fn settings_that_fit_only_the_new_policy_wait_for_the_end_of_its_rollout() {
    for first in ["1 small", "1 breaks at 5"] {
        play(scenario(), async |world| {
            let moving = second_edition_moves(world, first).await;
            world.apply(&settings("sizes", "{name: widget, settings: {size: 5}}")).await;
            let waits = until_state(world, "sizes", "Pending").await;
            assert_eq!(waits["status"]["reason"], "AnotherRollout", "{first}: {waits:#}");
            let message = waits["status"]["message"].as_str().unwrap();
            assert!(message.contains("waits for the end of the rollout of widgets-"), "{message}");
            steer(world, &moving, "promote", "alice").await;
            until_size(world, "5").await;
            until_state(world, "sizes", "Active").await;
        });
    }
}

#[test]
fn settings_that_fit_neither_policy_are_refused_during_a_rollout() {
    play(scenario(), async |world| {
        second_edition_moves(world, "1 small").await;
        world.apply(&settings("sizes", "{name: widget, settings: {size: many}}")).await;
        let refused = until_state(world, "sizes", "Refused").await;
        assert_eq!(refused["status"]["reason"], "BadSettings", "{refused:#}");
    });
}

#[test]
fn operator_settings_that_fit_only_the_new_policy_apply_after_its_rollout() {
    for first in ["1 small", "1 breaks at 5"] {
        play(scenario(), async |world| {
            let moving = second_edition_moves(world, first).await;
            world.apply(&own_config("5")).await;
            world.until_warned("kaos-system:ConfigMap/kaos-operator-config", "AnotherRollout").await;
            steer(world, &moving, "promote", "alice").await;
            until_size(world, "5").await;
        });
    }
}

#[test]
fn a_staged_package_that_narrows_its_scope_waits_for_a_rollout_over_the_objects_that_it_leaves() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let sizes = |rest: &str| settings("sizes", &format!("{{name: widget, settings: {{size: 3}}, {rest}}}"));
        world.apply(&sizes("rollout: {mode: now}")).await;
        until_size(world, "3").await;
        let scoped = "scope: {namespaces: [test]}";
        world.apply(&package("scoped", "2", &format!("{scoped}\n{ONE_STEP}"))).await;
        let moving = until_rollout(world, "scoped", "step 1 of 2").await;
        let narrowed = "scope: {namespaces: [other]}, rollout: {mode: staged, steps: [100%], pause: 30s}";
        world.apply(&sizes(narrowed)).await;
        let waits = until_state(world, "sizes", "Pending").await;
        assert_eq!(waits["status"]["reason"], "AnotherRollout", "{waits:#}");
        steer(world, &moving, "promote", "alice").await;
        // The changed settings `sizes` no longer apply to the Widget `w`. The rollout still moves this Widget, but the
        // Widget gives no evidence about the settings.
        until_rollout(world, "sizes", "1 of 1 objects moved").await;
        until_size(world, "1").await;
    });
}
