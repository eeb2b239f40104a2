//! Tests previews.
//!
//! Before a package serves, the operator computes the package's effect, and holds the package if the effect exceeds a
//! limit.

use std::time::Duration;

use kaos_cluster::faults::Failure;
use kaos_tests::harness::read::text;
use kaos_tests::harness::{Fault, Scenario, World, condition, is_true, play};
use kaos_tests::verdicts::{Verdict, compare};
use serde_json::{Value, json};

use crate::last_good::widgets;
use crate::support::{
    approve, define, first_edition_serves, package, restart_writes_nothing, retry, revisions, scenario, settings,
    states, until_edition, until_state, widget,
};

const NONE_REFUSED: &str = "rollout: {gate: {noneRefused: true}}";

/// Installs a candidate that renames a key in every Widget's ConfigMap, and refuses four of the twelve Widgets. Returns
/// the keys of these ConfigMaps, and the held revision.
async fn held(world: &World) -> (Vec<String>, Value) {
    let all = widgets(world).await;
    world.forget_requests();
    world.apply(&package("widgets", "2 renames", NONE_REFUSED)).await;
    let held = until_state(world, "widgets", "Held").await;
    world.quiet().await;
    (all, held)
}

/// Returns the number of the operator's writes for each type, except for PolicyRevisions.
fn writes_of_objects(world: &World) -> Vec<String> {
    let writes = world.writes_by_type().into_iter().filter(|(of, _)| !of.starts_with("policyrevisions"));
    writes.map(|(of, many)| format!("{many} {of}")).collect()
}

#[test]
fn a_candidate_that_refuses_served_objects_is_held_with_its_effect_and_writes_nothing() {
    play(scenario(), async |world| {
        let (all, held) = held(world).await;
        let preview = &held["status"]["preview"];
        let numbers = ["objects", "changed", "unchanged", "children", "refused", "failed", "unknown", "podsReplaced"];
        let numbers: Vec<_> = numbers.iter().map(|of| preview[of].as_i64().unwrap()).collect();
        assert_eq!(numbers, [12, 12, 0, 8, 4, 0, 0, 0], "{preview:#}");
        assert_eq!(preview["summary"], "12 of 12 objects change, 0 pods replaced, 4 refused");
        let paths = preview["paths"].as_array().unwrap();
        let path = &paths[0];
        assert_eq!(paths.len(), 1, "{preview:#}");
        assert_eq!((&path["path"], &path["change"]), (&json!("data.edition -> release"), &json!("Renamed")));
        assert_eq!((&path["kind"], &path["child"], &path["count"]), (&json!("Widget"), &json!("ConfigMap"), &json!(8)));
        assert_eq!(path["examples"].as_array().unwrap().len(), 3);
        let refused: Vec<&str> =
            preview["problems"].as_array().unwrap().iter().map(|it| it["object"].as_str().unwrap()).collect();
        assert_eq!(refused, ["Widget other/w3", "Widget other/w9", "Widget test/w0", "Widget test/w6"]);
        let stalled = condition(&held, "Stalled");
        assert_eq!((&stalled["reason"], is_true(&held, "Stalled")), (&json!("WouldRefuse"), true));
        let message = text(&held["status"]["message"]);
        for told in ["refuses 4 objects", "Widget other/w3", "noneRefused", "policy approve widgets"] {
            assert!(message.contains(told), "{told}: {message}");
        }
        compare("revision-held", &Verdict::Fails.record(&held));
        assert_eq!(writes_of_objects(world), [""; 0], "a preview writes nothing to objects and children");
        world.delete(&all[1]).await;
        until_edition(world, &all[1], "1").await;
        assert_eq!(states(world, "widgets").await.iter().filter(|state| *state == "Active").count(), 1);
    });
}

#[test]
fn an_approved_candidate_serves_and_its_record_names_the_person() {
    play(scenario(), async |world| {
        let (all, held) = held(world).await;
        approve(world, &held, "alice").await;
        world.until("the candidate serves", &all[1], |live| live["data"]["release"] == "1").await;
        world.quiet().await;
        let active = until_state(world, "widgets", "Active").await;
        let status = &active["status"];
        assert_eq!((&status["reason"], &status["approved"]["by"]), (&json!("Approved"), &json!("alice")));
        assert!(text(&status["message"]).contains("approved by alice"), "{status:#}");
        assert!(status["limitsDigest"].is_null() && status["preview"]["refused"] == 4, "{status:#}");
        let events = world.events(&format!("kaos-system:PolicyRevision/{}", text(&active["metadata"]["name"]))).await;
        assert!(events.iter().any(|(_, reason, _)| reason == "Approved"), "{events:?}");
        assert!(events.iter().any(|(_, reason, _)| reason == "WouldRefuse"), "{events:?}");
        restart_writes_nothing(world).await;
    });
}

#[test]
fn a_held_revision_stays_held_over_a_restart_and_can_be_approved_afterwards() {
    play(scenario(), async |world| {
        let (all, held) = held(world).await;
        restart_writes_nothing(world).await;
        assert_eq!(until_state(world, "widgets", "Held").await["metadata"]["name"], held["metadata"]["name"]);
        approve(world, &held, "bob").await;
        world.until("the candidate serves", &all[1], |live| live["data"]["release"] == "1").await;
        assert_eq!(until_state(world, "widgets", "Active").await["status"]["approved"]["by"], "bob");
    });
}

#[test]
fn an_operator_that_ends_at_any_write_ends_with_the_same_held_revision() {
    for writes in 0..6 {
        for after in [false, true] {
            play(scenario(), async move |world| {
                let all = widgets(world).await;
                world.crash_point.plan(writes, after);
                world.apply(&package("widgets", "2 renames", NONE_REFUSED)).await;
                let ended = async || !world.crash_point.is_planned();
                let is_held = async || states(world, "widgets").await.iter().any(|state| state == "Held");
                world
                    .until_true("the operator ended, or held the candidate", async || ended().await || is_held().await)
                    .await;
                world.crash_point.clear();
                world.crash().await;
                world.start().await;
                let held = until_state(world, "widgets", "Held").await;
                assert_eq!(held["status"]["preview"]["refused"], 4, "{held:#}");
                world.quiet().await;
                world.delete(&all[1]).await;
                until_edition(world, &all[1], "1").await;
                approve(world, &held, "carol").await;
                world.until("the candidate serves", &all[1], |live| live["data"]["release"] == "1").await;
            });
        }
    }
}

#[test]
fn an_operator_that_ends_at_any_write_after_an_approval_lets_the_approved_revision_serve() {
    for writes in 0..6 {
        for after in [false, true] {
            play(scenario(), async move |world| {
                let (all, held) = held(world).await;
                world.crash_point.plan(writes, after);
                approve(world, &held, "carol").await;
                let ended = async || !world.crash_point.is_planned();
                let is_active =
                    async || states(world, "widgets").await.iter().filter(|it| *it == "Active").count() == 1;
                let serves = async || is_active().await && world.look(&all[1]).await["data"]["release"] == "1";
                world
                    .until_true("the operator ended, or the candidate serves", async || ended().await || serves().await)
                    .await;
                world.crash_point.clear();
                world.crash().await;
                world.start().await;
                world.until("the candidate serves", &all[1], |live| live["data"]["release"] == "1").await;
                world.quiet().await;
                let active = until_state(world, "widgets", "Active").await;
                assert_eq!(active["metadata"]["name"], held["metadata"]["name"]);
                assert_eq!(active["status"]["approved"]["by"], "carol", "{active:#}");
                assert_eq!(states(world, "widgets").await.iter().filter(|state| *state == "Active").count(), 1);
            });
        }
    }
}

#[test]
fn without_limits_a_candidate_serves_at_once_and_has_no_preview() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.quiet().await;
        world.forget_requests();
        world.apply(&package("widgets", "2", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.quiet().await;
        let active = until_state(world, "widgets", "Active").await;
        assert!(active["status"]["preview"].is_null(), "{active:#}");
        let name = text(&active["metadata"]["name"]).to_owned();
        let of_record = world.writes().into_iter().filter(|write| write.contains("status") && write.contains(&name));
        let of_record: Vec<String> = of_record.collect();
        assert!(of_record.len() <= 4, "the record goes from Checking to Active, and gets its counts: {of_record:?}");
    });
}

#[test]
fn a_candidate_within_its_limits_serves_and_keeps_its_effect() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let gate = "rollout: {gate: {noneRefused: true, noneFailed: true, maxObjectsChanged: 100%}}";
        world.apply(&package("widgets", "2", gate)).await;
        until_edition(world, "ConfigMap/w", "2").await;
        let active = until_state(world, "widgets", "Active").await;
        let preview = &active["status"]["preview"];
        assert_eq!((&preview["changed"], &preview["objects"]), (&json!(1), &json!(1)), "{preview:#}");
        let path = &preview["paths"][0];
        assert_eq!((&path["path"], &path["value"]), (&json!("data.edition"), &json!("string")));
        assert_eq!((&path["examples"][0]["before"], &path["examples"][0]["after"]), (&json!("1"), &json!("2")));
    });
}

#[test]
fn the_way_back_to_the_previous_revision_needs_no_approval() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let gate = "rollout: {gate: {maxObjectsChanged: 0}}";
        world.apply(&package("widgets", "2", gate)).await;
        let held = until_state(world, "widgets", "Held").await;
        assert_eq!(held["status"]["reason"], "TooManyObjects");
        approve(world, &held, "alice").await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.apply(&package("widgets", "1", "")).await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

fn strict() -> Scenario {
    scenario().tuned(|options| options.rollout_gate = "{maxObjectsChanged: 0}".parse().unwrap())
}

#[test]
fn the_operators_limit_holds_every_package_and_a_package_cannot_loosen_it() {
    play(strict(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        let held = until_state(world, "widgets", "Held").await;
        assert_eq!(held["status"]["reason"], "EffectUnknown", "no policy answered for Widgets before: {held:#}");
        approve(world, &held, "alice").await;
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world
            .apply(&settings("larger", "{name: widget, settings: {size: 7}, rollout: {gate: {maxObjectsChanged: 9}}}"))
            .await;
        let held = until_state(world, "larger", "Held").await;
        assert_eq!(held["status"]["reason"], "TooManyObjects");
        assert_eq!(held["status"]["preview"]["paths"][0]["path"], "data.size");
        approve(world, &held, "alice").await;
        world.until("the settings apply", "ConfigMap/w", |live| live["data"]["size"] == "7").await;
    });
}

#[test]
fn a_retry_computes_the_effect_again_after_the_objects_were_corrected() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({"fragile": true})).await;
        world.apply(&package("widgets", "2 refuses", NONE_REFUSED)).await;
        let held = until_state(world, "widgets", "Held").await;
        world.apply(&widget("w", &json!({"fragile": false}))).await;
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "1").await;
        retry(world, &held).await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn in_shadow_mode_a_package_only_shows_its_effect() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2", "rollout: {mode: shadow}")).await;
        let held = until_state(world, "widgets", "Held").await;
        assert_eq!(
            (&held["status"]["reason"], &held["status"]["preview"]["changed"]),
            (&json!("ShadowOnly"), &json!(1))
        );
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&package("widgets", "2", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn a_frozen_path_holds_a_package_that_changes_it() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2", "rollout: {gate: {frozenPaths: [data.edition]}}")).await;
        let held = until_state(world, "widgets", "Held").await;
        assert_eq!(held["status"]["reason"], "FrozenPath");
        world.apply(&package("widgets", "3", "rollout: {gate: {frozenPaths: [data.size]}}")).await;
        until_edition(world, "ConfigMap/w", "3").await;
        assert!(!revisions(world, "widgets").await.is_empty());
    });
}

#[test]
fn the_effect_on_two_thousand_objects_fits_into_the_status() {
    play(scenario(), async |world| {
        define(world).await;
        for number in 0..2000 {
            world.apply(&widget(&format!("w{number}"), &json!({"fragile": number % 100 == 0}))).await;
        }
        world.apply(&package("widgets", "1", "")).await;
        until_edition(world, "ConfigMap/w1999", "1").await;
        world.quiet().await;
        world.apply(&package("widgets", "2 renames", NONE_REFUSED)).await;
        let held = until_state(world, "widgets", "Held").await;
        let preview = &held["status"]["preview"];
        assert_eq!((&preview["objects"], &preview["refused"]), (&json!(2000), &json!(20)));
        assert_eq!(preview["problems"].as_array().unwrap().len(), 20);
        let size = held["status"].to_string().len();
        assert!(size < 100_000, "{size} bytes");
    });
}

#[test]
fn a_package_that_reads_what_no_policy_reads_has_an_unknown_effect() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2 reads statefulsets", "rollout: {gate: {maxObjectsChanged: 100%}}")).await;
        let held = until_state(world, "widgets", "Held").await;
        assert_eq!(held["status"]["reason"], "EffectUnknown", "{held:#}");
        let problem = &held["status"]["preview"]["problems"][0];
        assert!(text(&problem["message"]).contains("StatefulSet"), "{held:#}");
    });
}

#[test]
fn a_kind_that_the_operator_cannot_list_has_an_unknown_effect() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.break_it(Fault::on(&["list", "watch"]).of("widgets").fail(Failure::Server(403)));
        world.embedded().cut_watches();
        let labels = ["state=\"forbidden\"", "kind=\"Widget\"", "} 1"];
        let is_forbidden = async || world.counted("kaos_operator_watch_state", &labels) > 0.5;
        world.until_true("the watch is forbidden", is_forbidden).await;
        world.apply(&package("widgets", "2", NONE_REFUSED)).await;
        let held = until_state(world, "widgets", "Held").await;
        assert_eq!(held["status"]["reason"], "EffectUnknown", "{held:#}");
        world.mend();
        world.pass_time(Duration::from_mins(10)).await;
        retry(world, &held).await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}
