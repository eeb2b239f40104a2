//! Tests which of several policies answers for an object, by namespace and by pin.

use std::time::Duration;

use kaos_tests::harness::{Fault, World, condition, play};
use serde_json::{Value, json};

use crate::support::{
    define, namespace, own_config, package, package_in, revisions, scenario, settings, until_edition, until_state,
    widget, widget_in, widget_waits,
};

/// Installs the first edition for the cluster, and another edition for the namespace `canary`.
async fn canary_is_for_one_namespace(world: &World, edition: &str) {
    define(world).await;
    world.apply(&namespace("canary")).await;
    world.apply(&package("widgets", "1", "")).await;
    world.apply(&package("canary", edition, "scope: {namespaces: [canary]}")).await;
}

#[test]
fn a_policy_for_one_namespace_leaves_the_others_unchanged() {
    play(scenario(), async |world| {
        canary_is_for_one_namespace(world, "2").await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&widget_in("canary", "w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        until_edition(world, "canary:ConfigMap/w", "2").await;
        world.delete("kaos-system:ConfigMap/canary").await;
        until_edition(world, "canary:ConfigMap/w", "1").await;
    });
}

#[test]
fn the_clusters_policy_is_the_fallback_of_a_namespaces_policy() {
    play(scenario(), async |world| {
        canary_is_for_one_namespace(world, "2 traps").await;
        until_state(world, "canary", "Active").await;
        world.apply(&widget_in("canary", "good", &json!({}))).await;
        world.apply(&widget_in("canary", "crafted", &json!({"fragile": true}))).await;
        until_edition(world, "canary:ConfigMap/good", "2").await;
        until_edition(world, "canary:ConfigMap/crafted", "1").await;
        let told = world.look("canary:Widget/crafted").await;
        assert_eq!(condition(&told, "PolicyFallback")["status"], "True", "{told}");
        world.apply(&package("widgets", "3", "")).await;
        until_edition(world, "canary:ConfigMap/crafted", "3").await;
    });
}

/// Installs the first edition for all objects, and another edition only for objects that pin this edition. Returns the
/// revision that an object can pin.
async fn next_can_be_chosen(world: &World, edition: &str) -> Value {
    define(world).await;
    world.apply(&package("widgets", "1", "")).await;
    world.apply(&package("next", edition, "scope: {pinned: true}")).await;
    until_state(world, "next", "Active").await
}

#[test]
fn a_pinned_object_gets_its_plan_from_the_named_policy() {
    play(scenario(), async |world| {
        let next = next_can_be_chosen(world, "2").await;
        let mut pinned = widget("pinned", &json!({}));
        pinned["metadata"]["annotations"] = json!({"kaos.tools/policy": next["spec"]["digest"]});
        world.apply(&pinned).await;
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/pinned", "2").await;
        until_edition(world, "ConfigMap/w", "1").await;
        let status = async |source| until_state(world, source, "Active").await["status"].clone();
        let counts = |status: &Value| (status["objects"].as_i64(), status["outstanding"].as_i64());
        let told = async || (counts(&status("widgets").await), counts(&status("next").await));
        let all = ((Some(1), Some(0)), (Some(1), Some(0)));
        world.until_true("no revision waits for an object with another pin", async || told().await == all).await;
        world.patch("Widget/w", &json!({"metadata": {"annotations": {"kaos.tools/policy": "nobody"}}})).await;
        let told = world
            .until("Widget/w has the reason PolicyNotFound for Applied", "Widget/w", |widget| {
                condition(widget, "Applied")["reason"] == "PolicyNotFound"
            })
            .await;
        let message = condition(&told, "Applied")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("`nobody`") && message.contains("widget 1.0.0"), "{message}");
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "the existing child stays unchanged");
    });
}

#[test]
fn one_failing_pinned_object_quarantines_no_policy() {
    play(scenario(), async |world| {
        let next = next_can_be_chosen(world, "2 traps").await;
        for (name, fragile) in [("crafted", true), ("good", false)] {
            let mut pinned = widget(name, &json!({"fragile": fragile}));
            pinned["metadata"]["annotations"] = json!({"kaos.tools/policy": next["spec"]["digest"]});
            world.apply(&pinned).await;
        }
        until_edition(world, "ConfigMap/good", "2").await;
        world
            .until("the condition PolicyFallback of Widget/crafted is True", "Widget/crafted", |told| {
                condition(told, "PolicyFallback")["status"] == "True"
            })
            .await;
        world.quiet().await;
        until_state(world, "next", "Active").await;
        assert_eq!(world.look("ConfigMap/good").await["data"]["edition"], "2");
    });
}

#[test]
fn the_older_of_two_packages_for_a_place_serves_and_the_newer_is_in_conflict() {
    play(scenario(), async |world| {
        widget_waits(world).await;
        world.apply(&package("older", "1", "")).await;
        until_edition(world, "ConfigMap/w", "1").await;
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        world.apply(&package("newer", "2", "")).await;
        let newer = until_state(world, "newer", "Conflict").await;
        assert!(newer["status"]["message"].as_str().unwrap().contains("older-"), "{newer}");
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.delete("kaos-system:ConfigMap/older").await;
        until_edition(world, "ConfigMap/w", "2").await;
        until_state(world, "newer", "Active").await;
    });
}

#[test]
fn the_newer_of_two_settings_packages_for_a_value_is_in_conflict() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&settings("older", "{name: widget, settings: {size: 2}}")).await;
        world.until("the older package's settings apply", "ConfigMap/w", |live| live["data"]["size"] == "2").await;
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        world.apply(&settings("newer", "{name: widget, settings: {size: 3}}")).await;
        let newer = until_state(world, "newer", "Conflict").await;
        let message = newer["status"]["message"].as_str().unwrap();
        assert!(message.contains("older-") && message.contains("`size`"), "{message}");
        world.restart().await;
        world.quiet().await;
        until_state(world, "newer", "Conflict").await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["size"], "2");
        world.delete("kaos-system:ConfigMap/older").await;
        world.until("the newer package's settings apply", "ConfigMap/w", |live| live["data"]["size"] == "3").await;
        until_state(world, "newer", "Active").await;
    });
}

#[test]
fn an_older_config_map_filled_later_does_not_displace_the_active_policy() {
    for before in [json!({}), json!({"policy.yaml": "name: nobody\nsettings: {}\n"})] {
        play(scenario(), async |world| {
            widget_waits(world).await;
            let mut older = settings("older", "{name: widget, settings: {size: 2}}");
            older["data"] = before.clone();
            world.apply(&older).await;
            until_state(world, "older", "Refused").await;
            world.pass_time(Duration::from_secs(2)).await;
            world.apply(&package("newer", "1", "")).await;
            until_edition(world, "ConfigMap/w", "1").await;
            world.apply(&package("older", "2", "")).await;
            let waits = until_state(world, "older", "Conflict").await;
            let message = waits["status"]["message"].as_str().unwrap();
            assert!(message.contains("newer-") && message.contains("already claims"), "{message}");
            for restarts in [false, true] {
                if restarts {
                    world.restart().await;
                }
                world.quiet().await;
                until_state(world, "newer", "Active").await;
                assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "restarted: {restarts}");
            }
            // Install a new edition of the active package. The package keeps its place, so the package `older` still
            // waits.
            world.apply(&package("newer", "3", "")).await;
            until_edition(world, "ConfigMap/w", "3").await;
            world.delete("kaos-system:ConfigMap/newer").await;
            until_edition(world, "ConfigMap/w", "2").await;
        });
    }
}

/// Installs the first edition for the cluster, and the edition `second` for the namespace `test`. Creates a Widget in
/// this namespace and a Widget in the namespace `other`. Waits until the edition `second` serves the first of these
/// Widgets.
async fn tenant_has_its_own(world: &World, second: &str) {
    define(world).await;
    world.apply(&namespace("other")).await;
    world.apply(&package("widgets", "1", "")).await;
    world.apply(&package_in("test", "own", second, "")).await;
    world.apply(&widget("w", &json!({}))).await;
    world.apply(&widget_in("other", "w", &json!({}))).await;
    until_edition(world, "ConfigMap/w", "2").await;
}

#[test]
fn policies_of_namespaces_serve_only_where_a_flag_allows_them() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&package_in("test", "own", "2", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.quiet().await;
        assert!(revisions(world, "own").await.is_empty());
    });
    play(kaos_tests::harness::Scenario::embedded("namespaces").installing(true), async |world| {
        tenant_has_its_own(world, "2").await;
        until_edition(world, "other:ConfigMap/w", "1").await;
        let reads = "grants: {reads: [{apiVersion: v1, kind: ConfigMap, namespace: other, names: [w]}]}";
        for (file, reason) in [("scope: {namespaces: [other]}", "ScopeTooWide"), (reads, "GrantsNotAllowed")] {
            world.apply(&package_in("test", "own", "2", file)).await;
            world
                .until_true(&format!("the package is refused: {reason}"), async || {
                    revisions(world, "own").await.iter().any(|it| it["status"]["reason"] == reason)
                })
                .await;
        }
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "2", "the older revision keeps serving");
    });
}

#[test]
fn settings_of_the_cluster_win_over_a_tenants_policy() {
    play(kaos_tests::harness::Scenario::embedded("namespaces").installing(true), async |world| {
        tenant_has_its_own(world, "2 small").await;
        world.apply(&settings("sizes", "{name: widget, settings: {size: 5}}")).await;
        world
            .until("the settings apply in the other namespace", "other:ConfigMap/w", |live| live["data"]["size"] == "5")
            .await;
        let told = until_state(world, "own", "Conflict").await;
        assert!(told["status"]["message"].as_str().unwrap().contains("that apply in the same namespaces"), "{told}");
        assert_eq!(told["status"]["reason"], "BadSettings");
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&settings("sizes", "{name: widget, settings: {size: 2}}")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        until_state(world, "own", "Active").await;
        world.delete("kaos-system:ConfigMap/sizes").await;
        world.apply(&own_config("7")).await;
        world
            .until("the package of the operator's namespace applies", "other:ConfigMap/w", |live| {
                live["data"]["size"] == "7"
            })
            .await;
    });
}

#[test]
fn packages_with_similar_names_have_separate_revisions() {
    play(kaos_tests::harness::Scenario::embedded("namespaces").installing(true), async |world| {
        define(world).await;
        world.apply(&package_in("test", "widgets", "1", "")).await;
        until_state(world, "widgets", "Active").await;
        world.apply(&package("test.widgets", "1", "")).await;
        until_state(world, "test.widgets", "Active").await;
        assert_eq!(revisions(world, "widgets").await.len(), 1);
    });
}

#[test]
fn on_a_fresh_cluster_only_the_winning_package_creates_children() {
    play(scenario().idle(), async |world| {
        widget_waits(world).await;
        world.apply(&package("a-cluster", "1", "")).await;
        world.apply(&package("b-scoped", "2", "scope: {namespaces: [test]}")).await;
        let told = world.history("Widget/w").await;
        // Slow down the check, so that a pass could run between the activations of the two packages.
        let review = Fault::on(&["create"]).of("selfsubjectrulesreviews");
        world.break_it(review.slow(Duration::from_secs(2)));
        world.start().await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.quiet().await;
        let told = told.states();
        let by_the_first = |state: &Value| state["status"]["policy"]["version"] == "1.0.0";
        assert!(!told.iter().any(by_the_first), "{told:#?}");
    });
}
