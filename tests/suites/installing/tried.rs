//! Tests that the operator tries new settings before it uses them, and refuses settings that would break every object.

use kaos_tests::gadget::{gadget, hold::Hold};
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{World, play};
use serde_json::json;

use crate::support::{
    define, namespace, own_config_of, own_edition_serves, package, package_in, restart_writes_nothing, retry, scenario,
    settings, until_edition, until_state, widget,
};

/// The key of the ConfigMap `kaos-operator-config`.
const OWN: &str = "kaos-system:ConfigMap/kaos-operator-config";

#[test]
fn settings_that_no_pod_can_have_are_refused_by_the_gate() {
    play(scenario(), async |world| {
        world.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        world.until_ready("Agent/a").await;
        let file = |more: &str| format!("name: agent\nsettings: {{image: 'x:2', {more}}}\n");
        world.apply(&settings("tuned", &file("resources: {limit: {memory: 1Gi}}"))).await;
        let refused = until_state(world, "tuned", "Refused").await;
        let status = &refused["status"];
        assert_eq!(status["reason"], "BadSettings", "{status}");
        let told = status["message"].as_str().unwrap();
        assert!(
            told.contains("resources.limit: Kubernetes 1.36 has no field")
                && told.contains("setting agent.resources.limit"),
            "{told}"
        );
        world.until_ready("Agent/a").await;
        world.apply(&settings("tuned", &file("resources: {limits: {memory: 1Gi}}"))).await;
        until_state(world, "tuned", "Active").await;
        world
            .until("the settings apply", "Deployment/agent-a", |it| {
                it["spec"]["template"]["spec"]["containers"][0]["image"] == "x:2"
            })
            .await;
    });
}

/// Writes the port of Gadgets into the ConfigMap `kaos-operator-config`.
async fn port_is(world: &World, port: &str) {
    world.apply(&own_config_of(&json!({"GADGET_PORT": port}))).await;
}

async fn until_served_at(world: &World, service: &str, port: u32) {
    world.until(&format!("{service} has the port {port}"), service, |it| it["spec"]["ports"][0]["port"] == port).await;
}

#[test]
fn operator_settings_that_no_child_can_have_are_reported_before_use() {
    play(scenario(), async |world| {
        port_is(world, "8080").await;
        world.apply(&gadget("g", &json!({}))).await;
        until_served_at(world, "Service/g", 8080).await;
        world.until_ready("Gadget/g").await;
        port_is(world, "70000").await;
        world.until_warned(OWN, "BadSettings").await;
        let events = world.events(OWN).await;
        let told = &events[0].2;
        assert!(events.len() == 1 && told.contains("ports[0].port: 70000") && told.contains("GADGET_PORT"), "{told}");
        // The last good settings must stay in effect, even for new objects and after a restart. The operator must
        // accept another package although `kaos-operator-config` is invalid.
        world.restart().await;
        world.apply(&gadget("later", &json!({}))).await;
        until_served_at(world, "Service/later", 8080).await;
        world.apply(&settings("tuned", "{name: agent, settings: {logLevel: DEBUG}}")).await;
        until_state(world, "tuned", "Active").await;
        world.until_ready("Gadget/g").await;
        port_is(world, "9090").await;
        until_served_at(world, "Service/g", 9090).await;
        until_served_at(world, "Service/later", 9090).await;
        world.until_ready("Gadget/later").await;
        world.quiet().await;
        restart_writes_nothing(world).await;
    });
}

#[test]
fn the_first_start_waits_for_operator_settings_that_no_child_can_have() {
    play(scenario().idle(), async |world| {
        port_is(world, "70000").await;
        world.apply(&gadget("g", &json!({}))).await;
        world.spawn();
        let named = |missing: Vec<String>| missing.iter().any(|it| it.contains("GADGET_PORT"));
        world.until_true("the operator says what it waits for", async || world.probe().ready().is_err_and(named)).await;
        world.until_warned(OWN, "BadSettings").await;
        assert!(world.look("Gadget/g").await["status"].is_null());
        port_is(world, "8080").await;
        until_served_at(world, "Service/g", 8080).await;
    });
}

#[test]
fn a_field_of_a_newer_server_is_passed_on_and_reported() {
    // Create no Agent: the embedded API server does not know the field `newer`, so it would reject the Agent's
    // Deployment.
    play(scenario(), async |world| {
        let file = "{name: agent, settings: {resources: {newer: {memory: 1Gi}}}}";
        world.apply(&settings("tuned", file)).await;
        let refused = until_state(world, "tuned", "Refused").await;
        let message = refused["status"]["message"].as_str().unwrap();
        assert!(message.contains("Kubernetes 1.36 has no field"), "{message}");
        // Let the cluster report a newer version: the operator then lets the API server decide whether the field
        // exists. After a retry request, the operator must accept the package that it refused before.
        world.embedded().say_minor(37);
        retry(world, &refused).await;
        until_state(world, "tuned", "Active").await;
        // The operator must still refuse settings that are invalid on every server.
        let file = "{name: mcpserver, settings: {resources: {limits: {memory: lots}}}}";
        world.apply(&settings("wrong", file)).await;
        let refused = until_state(world, "wrong", "Refused").await;
        assert!(refused["status"]["message"].as_str().unwrap().contains("lots"), "{refused}");
    });
}

/// Installs a package with settings in the operator's namespace. The settings set size 5 for the Widgets of one
/// namespace.
async fn size_is_5_in(world: &World, namespace: &str) {
    world
        .apply(&settings(
            "sizes",
            &format!("{{name: widget, scope: {{namespaces: [{namespace}]}}, settings: {{size: 5}}}}"),
        ))
        .await;
}

#[test]
fn settings_for_a_namespace_are_tried_with_the_version_that_serves_there() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&namespace("canary")).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&package("canary", "2 breaks at 5", "scope: {namespaces: [canary]}")).await;
        until_state(world, "canary", "Active").await;
        until_state(world, "widgets", "Active").await;
        size_is_5_in(world, "canary").await;
        let refused = until_state(world, "sizes", "Refused").await;
        assert_eq!(refused["status"]["reason"], "BadSettings", "{refused}");
        size_is_5_in(world, "test").await;
        until_state(world, "sizes", "Active").await;
    });
}

#[test]
fn settings_are_not_refused_for_a_version_that_serves_elsewhere() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&namespace("canary")).await;
        world.apply(&package("canary", "2 breaks at 5", "scope: {namespaces: [canary]}")).await;
        until_state(world, "canary", "Active").await;
        size_is_5_in(world, "test").await;
        until_state(world, "sizes", "Active").await;
    });
}

#[test]
fn settings_that_wait_for_an_older_package_are_tried_with_the_version_of_their_place() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1 breaks at 5", "")).await;
        until_state(world, "widgets", "Active").await;
        world.apply(&settings("older", "{name: widget, settings: {size: 2}}")).await;
        until_state(world, "older", "Active").await;
        world.apply(&settings("newer", "{name: widget, settings: {size: 5}}")).await;
        until_state(world, "newer", "Refused").await;
    });
}

#[test]
fn settings_of_a_namespace_wait_for_its_policy_to_be_loaded() {
    play(scenario().installing(true), async |world| {
        define(world).await;
        world.apply(&package("widgets", "3", "")).await;
        world.apply(&package_in("test", "own", "1 breaks at 5", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        until_state(world, "own", "Active").await;
        world.quiet().await;
        world.hold_compiler_over(Some("EDITION=1"));
        world.stop_all().await;
        let mut sizes = settings("sizes", "{name: widget, settings: {size: 5}}");
        sizes["metadata"]["namespace"] = json!("test");
        world.apply(&sizes).await;
        world.spawn();
        let waits = async || {
            let all = crate::support::revisions(world, "sizes").await;
            all.iter().any(|it| it["status"]["state"] == "Pending" && it["status"]["reason"] == "NotLoaded")
        };
        world.until_meanwhile("the settings wait for the policy", waits).await;
        world.hold_compiler_over(None);
        let refused = until_state(world, "sizes", "Refused").await;
        assert_eq!(refused["status"]["reason"], "BadSettings", "{refused}");
    });
}

#[test]
fn a_trial_of_a_namespaces_settings_delays_no_other_namespace() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        let hold = Hold::at(4999);
        let mut ports = settings("ports", "{name: gadget, settings: {port: 4999}}");
        ports["metadata"]["namespace"] = json!("test");
        world.apply(&ports).await;
        world.until_meanwhile("the operator tries the settings", async || hold.is_met()).await;
        world.apply(&package("widgets", "4", "")).await;
        let serves = async || {
            let all = crate::support::revisions(world, "widgets").await;
            all.iter().any(|it| it["status"]["state"] == "Active" && it["status"]["version"] == "4.0.0")
        };
        world.until_meanwhile("the owner's package serves", serves).await;
        drop(hold);
        until_state(world, "ports", "Active").await;
        world.apply(&gadget("g", &json!({}))).await;
        until_served_at(world, "Service/g", 4999).await;
    });
}

#[test]
fn a_trial_of_the_operators_settings_delays_nothing_else() {
    play(scenario(), async |world| {
        define(world).await;
        port_is(world, "8080").await;
        world.apply_all(&[gadget("g", &json!({})), package("widgets", "1", "")]).await;
        until_served_at(world, "Service/g", 8080).await;
        until_state(world, "widgets", "Active").await;
        let hold = Hold::at(4998);
        port_is(world, "4998").await;
        world.until_meanwhile("the operator tries the settings", async || hold.is_met()).await;
        // While the operator tries the settings, a new version of another package must start to serve, and must stop
        // after a user deletes this package.
        world.apply(&package("widgets", "2", "")).await;
        let is = async |state: &str| {
            let all = crate::support::revisions(world, "widgets").await;
            all.iter().any(|it| it["status"]["state"] == state && it["status"]["version"] == "2.0.0")
        };
        world.until_meanwhile("another package serves", async || is("Active").await).await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        world.until_meanwhile("the deleted package no longer serves", async || is("Superseded").await).await;
        // Until the operator has tried the new settings, the previous settings stay in effect.
        world.apply(&gadget("later", &json!({}))).await;
        let is_served = async || world.look("Service/later").await["spec"]["ports"][0]["port"] == 8080;
        world.until_meanwhile("the last good settings apply", is_served).await;
        drop(hold);
        until_served_at(world, "Service/g", 4998).await;
        until_served_at(world, "Service/later", 4998).await;
        world.quiet().await;
        restart_writes_nothing(world).await;
    });
}
