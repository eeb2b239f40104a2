//! Tests the start of an operator while the policies of namespaces take a long time to load.

use std::time::Duration;

use kaos_tests::harness::read::{finalizers, name};
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{World, condition, play};
use serde_json::{Value, json};

use crate::support::{
    define, namespace, own_edition_serves, package, package_in, packed, scenario, settings, states, until_edition,
    until_state, widget, widget_in,
};

/// Returns whether the operator is ready although it still loads a policy of the namespace `test`.
fn loads_for_test(world: &World) -> bool {
    world.probe().ready().is_ok() && world.probe().loading().iter().any(|it| it.ends_with(" Widget in test"))
}

/// Makes the second edition of a namespace's own policy serve the Widget `w`. Then restarts the operator with a
/// compiler that fails on the first edition.
async fn serves_without_what_was_before(world: &World) {
    own_edition_serves(world).await;
    world.apply(&package_in("test", "own", "2 traps", "")).await;
    until_edition(world, "ConfigMap/w", "2").await;
    world.quiet().await;
    world.kill_compiler_over(Some("EDITION=1"));
    world.restart().await;
    world.until_hit().await;
    world.kill_compiler_over(None);
}

#[test]
fn a_slowly_loading_policy_of_a_namespace_delays_only_its_own_objects() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        world.apply(&namespace("other")).await;
        world.apply(&package_in("other", "theirs", "2", "")).await;
        for namespace in ["other", "default"] {
            world.apply(&widget_in(namespace, "w", &json!({}))).await;
        }
        until_edition(world, "other:ConfigMap/w", "2").await;
        until_edition(world, "default:ConfigMap/w", "3").await;
        world.quiet().await;
        let told = world.history("Widget/w").await;

        world.hold_compiler_over(Some("EDITION=1"));
        world.stop_all().await;
        world.spawn();
        world.until_meanwhile("the operator loads the policy", async || world.held() == (1, 1)).await;
        for namespace in ["test", "other", "default"] {
            world.delete(&format!("{namespace}:ConfigMap/w")).await;
        }
        let is_made = async |namespace: &str| !world.look(&format!("{namespace}:ConfigMap/w")).await.is_null();
        let others = async || is_made("other").await && is_made("default").await;
        world.until_meanwhile("the other objects are served", others).await;
        assert!(loads_for_test(world), "{:?} {:?}", world.probe().ready(), world.probe().loading());
        world.apply(&package("widgets", "4", "")).await;
        let is_new = async || world.look("default:ConfigMap/w").await["data"]["edition"] == "4";
        world.until_meanwhile("the owner's next edition serves", is_new).await;
        assert!(!is_made("test").await, "no other policy serves the namespace");
        assert!(loads_for_test(world), "{:?} {:?}", world.probe().ready(), world.probe().loading());

        world.hold_compiler_over(None);
        until_edition(world, "ConfigMap/w", "1").await;
        world.until_true("the operator has loaded all policies", async || world.probe().loading().is_empty()).await;
        let is_unserved = |state: &Value| condition(state, "Accepted")["reason"] == "NoPolicy";
        let told = told.states();
        assert!(!told.iter().any(is_unserved), "{told:#?}");
    });
}

#[test]
fn a_new_package_of_a_namespace_waits_for_the_loading_of_admitted_ones() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        world.hold_compiler_over(Some("EDITION=2"));
        world.stop_all().await;
        world.apply(&package_in("test", "more", "2", "scope: {pinned: true}")).await;
        world.delete("ConfigMap/w").await;
        world.spawn();
        world.until_meanwhile("the operator checks the new package", async || world.held() == (1, 1)).await;
        let is_made = async || world.look("ConfigMap/w").await["data"]["edition"] == "1";
        world.until_meanwhile("the earlier package serves", is_made).await;
        world.hold_compiler_over(None);
        until_state(world, "more", "Active").await;
    });
}

#[test]
fn a_new_package_waits_for_one_load_of_another_namespace_and_not_for_all() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        world.apply(&package_in("test", "more", "2", "scope: {pinned: true}")).await;
        until_state(world, "more", "Active").await;
        world.apply(&namespace("other")).await;
        world.hold_compiler_over(Some("EDITION=4"));
        world.stop_all().await;
        world.apply(&package_in("other", "theirs", "4", "")).await;
        world.spawn();
        world.until_meanwhile("the operator checks the new package", async || world.held() == (1, 1)).await;
        assert!(!world.probe().loading().is_empty(), "the other namespace has more to load");
        world.hold_compiler_over(None);
        until_state(world, "theirs", "Active").await;
        world.until_true("the operator has loaded all policies", async || world.probe().loading().is_empty()).await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_replacement_is_checked_before_the_load_of_its_predecessor() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        world.apply(&namespace("other")).await;
        world.apply(&package_in("other", "theirs", "1", "")).await;
        until_state(world, "theirs", "Active").await;
        world.hold_compiler_over(Some("EDITION=1"));
        world.stop_all().await;
        world.apply(&package_in("test", "own", "2", "")).await;
        world.spawn();
        let is_new = async || world.look("ConfigMap/w").await["data"]["edition"] == "2";
        world.until_meanwhile("the replacement serves", is_new).await;
        world.hold_compiler_over(None);
        world.until_true("the operator has loaded all policies", async || world.probe().loading().is_empty()).await;
    });
}

#[test]
fn a_slowly_loading_policy_to_pin_delays_only_objects_that_pin_it() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&package("widgets", "3", "")).await;
        world.apply(&package_in("test", "more", "2", "scope: {pinned: true}")).await;
        let more = until_state(world, "more", "Active").await;
        world.apply(&widget("w", &json!({}))).await;
        let mut naming = widget("naming", &json!({}));
        naming["metadata"]["annotations"] = json!({"kaos.tools/policy": more["spec"]["digest"]});
        world.apply(&naming).await;
        until_edition(world, "ConfigMap/w", "3").await;
        until_edition(world, "ConfigMap/naming", "2").await;
        world.quiet().await;
        let told = world.history("Widget/naming").await;
        world.hold_compiler_over(Some("EDITION=2"));
        world.stop_all().await;
        world.delete("ConfigMap/w").await;
        world.delete("ConfigMap/naming").await;
        world.spawn();
        world.until_meanwhile("the operator loads the policy", async || world.held() == (1, 1)).await;
        let is_made = async || world.look("ConfigMap/w").await["data"]["edition"] == "3";
        world.until_meanwhile("an object without a pin is served", is_made).await;
        assert!(world.look("ConfigMap/naming").await.is_null() && loads_for_test(world));
        world.hold_compiler_over(None);
        until_edition(world, "ConfigMap/naming", "2").await;
        let told = told.states();
        assert!(told.iter().all(|state| condition(state, "Accepted")["status"] != "False"), "{told:#?}");
    });
}

#[test]
fn recompiling_a_policy_of_one_namespace_delays_no_other() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        world.apply(&namespace("other")).await;
        world.apply(&widget_in("other", "w", &json!({}))).await;
        until_edition(world, "other:ConfigMap/w", "3").await;
        let bad = package_in("test", "own", "2 traps", "");
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        world.apply(&bad).await;
        until_state(world, "own", "Quarantined").await;
        until_state(world, "own", "Active").await;
        world.delete("ConfigMap/own").await;
        world
            .until_true("no revision of the package serves", async || {
                !states(world, "own").await.contains(&"Active".to_owned())
            })
            .await;
        until_edition(world, "ConfigMap/w", "3").await;
        world.quiet().await;

        world.hold_compiler_over(Some("EDITION=1"));
        world.stop_all().await;
        world.apply(&bad).await;
        world.spawn();
        world.until_meanwhile("the operator compiles the predecessor", async || world.held() == (1, 1)).await;
        world.until_meanwhile("the operator is ready and loads the policy", async || loads_for_test(world)).await;
        for namespace in ["other", "test"] {
            world.delete(&format!("{namespace}:ConfigMap/w")).await;
        }
        let is_made = async || world.look("other:ConfigMap/w").await["data"]["edition"] == "3";
        world.until_meanwhile("another namespace is served", is_made).await;
        world.apply(&package("widgets", "4", "")).await;
        let is_new = async || world.look("other:ConfigMap/w").await["data"]["edition"] == "4";
        world.until_meanwhile("the owner's next edition serves", is_new).await;
        assert!(
            world.look("ConfigMap/w").await.is_null() && loads_for_test(world),
            "no other policy serves the namespace"
        );
        world.hold_compiler_over(None);
        until_edition(world, "ConfigMap/w", "1").await;
        world.until_true("the operator has loaded all policies", async || world.probe().loading().is_empty()).await;
    });
}

#[test]
fn an_object_deleted_while_its_policy_loads_is_released_in_time() {
    // Allow all types that the policy of Agents emits, including NetworkPolicies. A policy of a namespace can create an
    // object only if the operator's owner allows the object's type.
    let scenario = scenario().installing(true).tuned(|options| {
        let kinds = [
            "Deployment.apps",
            "HTTPRoute.gateway.networking.k8s.io",
            "NetworkPolicy.networking.k8s.io",
            "SecurityPolicy.gateway.envoyproxy.io",
            "Service",
            "ServiceAccount",
        ];
        options.grantable.emits = Some(kinds.map(|kind| kind.parse().unwrap()).into());
    });
    play(scenario, async |world| {
        // Leave out the grants of the shipped `policy.yaml`: only policies in the operator's namespace can have grants.
        let (component, _) = kaos_tests::shipped::embedded("agent").unwrap();
        let component = kaos_tests::shipped::with_section(component, "edition", b"EDITION=1").unwrap();
        let mut own = packed("own", Some(&component), "{}");
        own["metadata"]["namespace"] = json!("test");
        world.apply(&settings("agents", "{name: agent, settings: {finalizer: kaos.tools/first}}")).await;
        world.apply(&own).await;
        until_state(world, "own", "Active").await;
        world.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        world.until("Agent/a is held", "Agent/a", |agent| finalizers(agent) == ["kaos.tools/first"]).await;
        world.until_ready("Agent/a").await;
        world.quiet().await;
        world.hold_compiler_over(Some("EDITION=1"));
        world.stop_all().await;
        world.delete("Agent/a").await;
        world.spawn();
        world.until_meanwhile("the operator loads the policy", async || world.held() == (1, 1)).await;
        let is_gone = async || {
            tokio::time::advance(Duration::from_secs(1)).await;
            world.look("Agent/a").await.is_null()
        };
        world.until_meanwhile("the Agent is released", is_gone).await;
        assert!(!world.probe().loading().is_empty(), "the policy of the Agent is not loaded yet");
        world.hold_compiler_over(None);
    });
}

#[test]
fn a_namespaces_policy_falls_back_to_its_predecessor_after_a_restart() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&package_in("test", "own", "1", "")).await;
        world.apply(&widget("fragile", &json!({"fragile": true}))).await;
        for number in 0..4 {
            world.apply(&widget(&format!("sturdy-{number}"), &json!({}))).await;
        }
        until_edition(world, "ConfigMap/fragile", "1").await;
        world.apply(&package_in("test", "own", "2 traps", "")).await;
        until_edition(world, "ConfigMap/sturdy-0", "2").await;
        let fell_back = |it: &Value| condition(it, "PolicyFallback")["status"] == "True";
        world.until("Widget/fragile falls back", "Widget/fragile", fell_back).await;
        world.quiet().await;
        world.forget_requests();
        world.restart().await;
        world.quiet().await;
        assert_eq!(world.writes(), [""; 0], "a settled cluster does not change");
        world.delete("ConfigMap/fragile").await;
        until_edition(world, "ConfigMap/fragile", "1").await;
    });
}

#[test]
fn recompiling_a_policy_delays_no_other_work() {
    play(scenario().installing(true), async |world| {
        serves_without_what_was_before(world).await;
        world.hold_compiler_over(Some("EDITION=1"));
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        let fails = async || condition(&world.look("Widget/w").await, "PolicyFallback")["status"] == "True";
        world.until_meanwhile("the policy fails", fails).await;
        tokio::time::advance(Duration::from_secs(2)).await;
        world.until_meanwhile("the operator compiles the predecessor", async || world.held() == (1, 1)).await;
        let failing = until_state(world, "own", "Active").await;
        assert_eq!(failing["status"]["version"], "2.0.0", "no quarantine starts before the predecessor is loaded");
        world.apply(&settings("logs", "{name: agent, settings: {logLevel: DEBUG}}")).await;
        let serves = async || {
            let all = world.list_in(kaos_tests::harness::kinds::Kind::named("PolicyRevision"), "kaos-system").await;
            all.iter().any(|it| it["spec"]["source"]["configMap"] == "logs" && it["status"]["state"] == "Active")
        };
        world.until_meanwhile("another package serves", serves).await;
        world.hold_compiler_over(None);
        let aside = until_state(world, "own", "Quarantined").await;
        assert_eq!(name(&aside), name(&failing));
        let before = until_state(world, "own", "Active").await;
        assert_eq!((&before["status"]["version"], &before["status"]["reason"]), (&json!("1.0.0"), &json!("Restored")));
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn the_predecessor_of_a_rollout_in_a_namespace_is_loaded_in_the_background() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        world.apply(&widget_in("default", "w", &json!({}))).await;
        let rollout = "rollout: {mode: staged, steps: [1, 100%], pause: 1h}";
        world.apply(&package_in("test", "own", "2", rollout)).await;
        until_edition(world, "ConfigMap/w", "2").await;
        until_state(world, "own", "Yielding").await;
        world.quiet().await;

        world.hold_compiler_over(Some("EDITION=1"));
        world.stop_all().await;
        world.spawn();
        world.until_meanwhile("the operator loads the predecessor", async || world.held() == (1, 1)).await;
        world.apply(&package("widgets", "4", "")).await;
        let is_new = async || world.look("default:ConfigMap/w").await["data"]["edition"] == "4";
        world.until_meanwhile("the owner's next edition serves", is_new).await;
        world.hold_compiler_over(None);
        world.until_true("the operator has loaded all policies", async || world.probe().loading().is_empty()).await;
        until_state(world, "own", "Yielding").await;
    });
}
