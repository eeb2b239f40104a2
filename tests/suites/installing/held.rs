//! Tests packages that the operator holds: until no other package has the place that they claim, or until a person
//! approves them. Also tests packages that a user changes back to an earlier edition.

use std::sync::atomic::{AtomicBool, Ordering};

use kaos_tests::harness::{World, play};
use serde_json::{Value, json};

use crate::support::{
    approve, define, first_edition_serves, package, restart_writes_nothing, retry, revisions, scenario, settings,
    states, until_edition, until_state, widget,
};

/// Waits until the operator holds a revision of the package for another reason than a taken place. Returns the
/// revision.
async fn until_held_by_limits(world: &World, source: &str) -> Value {
    let is_held =
        |revision: &Value| revision["status"]["state"] == "Held" && revision["status"]["reason"] != "PlaceTaken";
    world.until_true("the limits hold the package", async || revisions(world, source).await.iter().any(is_held)).await;
    revisions(world, source).await.into_iter().find(is_held).unwrap()
}

#[test]
fn a_package_that_waited_for_a_place_does_not_serve_beyond_its_limits() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("rival", "2", "rollout: {gate: {maxObjectsChanged: 0}}")).await;
        let waits = until_state(world, "rival", "Held").await;
        assert_eq!(waits["status"]["reason"], "PlaceTaken", "{waits:#}");
        approve(world, &waits, "alice").await;
        restart_waits(world).await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        let held = until_held_by_limits(world, "rival").await;
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "nobody saw the effect before");
        approve(world, &held, "alice").await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn a_package_under_another_name_replaces_the_old_one_although_its_config_map_was_deleted_first() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets-b2", "2", NO_CHANGE)).await;
        until_state(world, "widgets-b2", "Held").await;
        world.forget_requests();
        world.delete("kaos-system:ConfigMap/widgets").await;
        let held = until_held_by_limits(world, "widgets-b2").await;
        world.quiet().await;
        assert_eq!(states(world, "widgets").await, ["Active"], "the old revision serves until the new one is approved");
        restart_writes_nothing(world).await;
        assert_eq!(held["status"]["preview"]["paths"][0]["path"], "data.edition", "{held:#}");
        approve(world, &held, "alice").await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.until_true("the old revision ends", async || states(world, "widgets").await == ["Superseded"]).await;
        let active = until_state(world, "widgets-b2", "Active").await;
        let old = &revisions(world, "widgets").await[0];
        assert_eq!(active["status"]["predecessor"], old["metadata"]["name"]);
    });
}

#[test]
fn the_old_package_ends_when_the_package_that_would_replace_it_is_deleted_too() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets-b2", "2", NO_CHANGE)).await;
        until_state(world, "widgets-b2", "Held").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        until_held_by_limits(world, "widgets-b2").await;
        world.delete("kaos-system:ConfigMap/widgets-b2").await;
        world.until_true("the old revision ends", async || states(world, "widgets").await == ["Superseded"]).await;
    });
}

#[test]
fn an_approval_does_not_hold_for_other_policies_than_those_that_the_person_saw() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2", NO_CHANGE)).await;
        let seen = until_state(world, "widgets", "Held").await;
        world.apply(&settings("sizes", "{name: widget, settings: {size: 7}}")).await;
        world.until("the settings apply", "ConfigMap/w", |live| live["data"]["size"] == "7").await;
        approve(world, &seen, "alice").await;
        let is_again = |it: &Value| it["status"]["state"] == "Held" && it["status"]["since"] != seen["status"]["since"];
        let is_held_again = async || revisions(world, "widgets").await.iter().any(is_again);
        world.until_true("the operator holds the package again", is_held_again).await;
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "1").await;
        let held = until_state(world, "widgets", "Held").await;
        assert!(held["status"]["approved"].is_null(), "{held:#}");
        approve(world, &held, "alice").await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn a_quarantined_package_loses_its_approval() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        for name in ["a", "b", "c"] {
            world.apply(&widget(name, &json!({}))).await;
        }
        world.apply(&package("widgets", "2 traps", NO_CHANGE)).await;
        let held = until_state(world, "widgets", "Held").await;
        approve(world, &held, "alice").await;
        until_edition(world, "ConfigMap/w", "2").await;
        for name in ["a", "b", "c", "w"] {
            world.patch(&format!("Widget/{name}"), &json!({"spec": {"fragile": true}})).await;
        }
        let failed = until_state(world, "widgets", "Quarantined").await;
        assert!(failed["status"]["approved"].is_null(), "{failed:#}");
        for name in ["a", "b", "c", "w"] {
            world.patch(&format!("Widget/{name}"), &json!({"spec": {"fragile": false}})).await;
        }
        retry(world, &failed).await;
        until_state(world, "widgets", "Held").await;
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

/// Restarts the operator, and waits until the package `rival` is held again.
async fn restart_waits(world: &World) {
    world.restart().await;
    world.quiet().await;
    assert_eq!(until_state(world, "rival", "Held").await["status"]["reason"], "PlaceTaken");
}

#[test]
fn a_package_that_waits_for_a_place_since_before_the_limits_existed_is_held_too() {
    static LIMITED: AtomicBool = AtomicBool::new(false);
    let later = scenario().tuned(|options| {
        if LIMITED.load(Ordering::Relaxed) {
            options.rollout_gate = "{maxObjectsChanged: 0}".parse().unwrap();
        }
    });
    play(later, async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("rival", "2", "")).await;
        until_state(world, "rival", "Conflict").await;
        world.stop_all().await;
        LIMITED.store(true, Ordering::Relaxed);
        world.delete("kaos-system:ConfigMap/widgets").await;
        world.start().await;
        until_held_by_limits(world, "rival").await;
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "the package does not serve");
    });
}

const NO_CHANGE: &str = "rollout: {gate: {maxObjectsChanged: 0}}";

/// Installs an edition, approves it, and waits until it serves. Returns the held revision.
async fn approved_edition(world: &World, edition: &str) -> Value {
    world.apply(&package("widgets", edition, NO_CHANGE)).await;
    let held = until_state(world, "widgets", "Held").await;
    approve(world, &held, "alice").await;
    until_edition(world, "ConfigMap/w", edition).await;
    until_state(world, "widgets", "Active").await;
    held
}

#[test]
fn an_approval_ends_when_another_revision_serves() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let second = approved_edition(world, "2").await;
        approved_edition(world, "3").await;
        approved_edition(world, "4").await;
        world.apply(&package("widgets", "2", NO_CHANGE)).await;
        let held = until_state(world, "widgets", "Held").await;
        assert_eq!(held["metadata"]["name"], second["metadata"]["name"], "the annotation is still there");
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "4").await;
        approve(world, &held, "alice").await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn the_way_back_is_free_in_one_direction_only() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        approved_edition(world, "2").await;
        for _ in 0..2 {
            world.apply(&package("widgets", "1", "")).await;
            until_edition(world, "ConfigMap/w", "1").await;
            world.apply(&package("widgets", "2", NO_CHANGE)).await;
            let held = until_state(world, "widgets", "Held").await;
            world.quiet().await;
            until_edition(world, "ConfigMap/w", "1").await;
            approve(world, &held, "alice").await;
            until_edition(world, "ConfigMap/w", "2").await;
        }
    });
}

#[test]
fn a_held_revision_is_forgotten_when_its_config_map_gets_other_content() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2", NO_CHANGE)).await;
        until_state(world, "widgets", "Held").await;
        world.apply(&package("widgets", "1", "")).await;
        world
            .until_true("only the active revision is left", async || states(world, "widgets").await == ["Active"])
            .await;
    });
}

#[test]
fn a_revision_that_served_and_was_held_again_stays_when_its_config_map_gets_other_content() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let second = approved_edition(world, "2").await;
        approved_edition(world, "3").await;
        approved_edition(world, "4").await;
        world.apply(&package("widgets", "2", NO_CHANGE)).await;
        until_state(world, "widgets", "Held").await;
        world.apply(&package("widgets", "4", NO_CHANGE)).await;
        let is_second = |it: &Value| it["metadata"]["name"] == second["metadata"]["name"];
        let is_superseded = |it: &Value| is_second(it) && it["status"]["state"] == "Superseded";
        let is_left = async || revisions(world, "widgets").await.iter().any(is_superseded);
        world.until_true("the revision is superseded again", is_left).await;
        world.quiet().await;
        assert!(revisions(world, "widgets").await.iter().any(is_second), "the revision is still a fallback");
        until_edition(world, "ConfigMap/w", "4").await;
    });
}

#[test]
fn the_approval_of_one_package_does_not_cover_another_that_serves_together_with_it() {
    const REQUIRED: &str = "rollout: {gate: {approval: required}}";
    let size =
        |size: u8, rollout: &str| settings("sizes", &format!("name: widget\nsettings: {{size: {size}}}\n{rollout}"));
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1 breaks at 4", "")).await;
        world.apply(&size(5, "")).await;
        world.apply(&widget("w", &json!({}))).await;
        world.until("the settings apply", "ConfigMap/w", |live| live["data"]["size"] == "5").await;
        world.apply(&size(4, REQUIRED)).await;
        until_state(world, "sizes", "Refused").await;
        world.apply(&package("widgets", "2 breaks at 5", REQUIRED)).await;
        let policy = until_state(world, "widgets", "Held").await;
        let sizes = until_state(world, "sizes", "Held").await;
        assert_eq!(policy["status"]["preview"]["inputs"]["together"], json!([sizes["metadata"]["name"]]), "{policy:#}");
        approve(world, &policy, "alice").await;
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "1").await;
        let sizes = until_state(world, "sizes", "Held").await;
        approve(world, &sizes, "bob").await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.until("the settings apply", "ConfigMap/w", |live| live["data"]["size"] == "4").await;
    });
}
