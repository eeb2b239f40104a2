//! Tests swaps: users apply packages, and the packages start to serve.

use kaos_tests::harness::{condition, play, reason, samples};
use serde_json::{Value, json};

use crate::support::{
    define, first_edition_serves, namespace, own_config, package, restart_writes_nothing, revisions, scenario,
    settings, until_edition, until_state, widget, widget_in, widget_waits,
};

#[test]
fn a_kind_unknown_to_the_host_is_reconciled_without_a_restart() {
    play(scenario(), async |world| {
        widget_waits(world).await;
        world.apply(&package("widgets", "1", "")).await;
        let config = until_edition(world, "ConfigMap/w", "1").await;
        assert_eq!(config["metadata"]["ownerReferences"][0]["kind"], "Widget");
        let revision = until_state(world, "widgets", "Active").await;
        assert_eq!(revision["status"]["policy"], "widget");
        assert_eq!(revision["status"]["version"], "1.0.0");
        assert_eq!(revision["status"]["kinds"], json!(["test.example.com/v1 Widget"]));
        world.until_ready("Widget/w").await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_swap_writes_only_children_that_the_new_revision_changes() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&widget("follows", &json!({}))).await;
        world.apply(&widget("stays", &json!({"edition": "any"}))).await;
        until_edition(world, "ConfigMap/follows", "1").await;
        let stays = until_edition(world, "ConfigMap/stays", "0").await;
        world.until_ready("Widget/stays").await;
        world.quiet().await;
        world.apply(&package("widgets", "2", "")).await;
        until_edition(world, "ConfigMap/follows", "2").await;
        world.quiet().await;
        let same = world.look("ConfigMap/stays").await;
        assert_eq!(same["metadata"]["resourceVersion"], stays["metadata"]["resourceVersion"]);
        let told = world.look("Widget/stays").await;
        assert_eq!(told["status"]["policy"]["version"], "2.0.0");
        let all = revisions(world, "widgets").await;
        let states: Vec<_> = all.iter().map(|revision| revision["status"]["state"].as_str().unwrap()).collect();
        assert!(states.contains(&"Active") && states.contains(&"Superseded"), "{states:?}");
        let active = until_state(world, "widgets", "Active").await;
        assert_eq!((&active["status"]["objects"], &active["status"]["outstanding"]), (&json!(2), &json!(0)));
    });
}

#[test]
fn a_settings_package_changes_the_children() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "settings: {size: 2}")).await;
        world.apply(&widget("w", &json!({}))).await;
        world.until("the settings of the package apply", "ConfigMap/w", |live| live["data"]["size"] == "2").await;
        world.apply(&settings("larger", "{name: widget, scope: {namespaces: [elsewhere]}, settings: {size: 7}}")).await;
        world.apply(&namespace("elsewhere")).await;
        world.apply(&widget_in("elsewhere", "w", &json!({}))).await;
        world
            .until("the settings apply in the other namespace", "elsewhere:ConfigMap/w", |live| {
                live["data"]["size"] == "7"
            })
            .await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["size"], "2");
        world.delete("kaos-system:ConfigMap/larger").await;
        world.until("the settings no longer apply", "elsewhere:ConfigMap/w", |live| live["data"]["size"] == "2").await;
    });
}

#[test]
fn edits_of_the_operators_config_map_apply_without_a_restart() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        world.until("the default applies", "ConfigMap/w", |live| live["data"]["size"] == "1").await;
        world.apply(&own_config("5")).await;
        world.until("the settings of the ConfigMap apply", "ConfigMap/w", |live| live["data"]["size"] == "5").await;
        world.apply(&own_config("ten")).await;
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["size"], "5", "invalid settings must not apply");
        world.apply(&own_config("6")).await;
        world.until("valid settings apply", "ConfigMap/w", |live| live["data"]["size"] == "6").await;
    });
}

#[test]
fn policies_can_be_swapped_while_the_operators_config_map_is_invalid() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&own_config("ten")).await;
        world.quiet().await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        world
            .until("no policy answers for the Widget", "Widget/w", |widget| reason(widget, "Accepted") == "NoPolicy")
            .await;
    });
}

#[test]
fn edits_of_the_runtime_registry_apply_without_a_restart() {
    play(scenario(), async |world| {
        let runtimes = |image: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kaos-mcp-runtimes", "namespace": "kaos-system"},
                "data": {"runtimes.yaml": format!("runtimes: {{own: {{image: '{image}', paramsEnvVar: TOOLS}}}}")}})
        };
        world.apply(&runtimes("registry.example/own:1")).await;
        let mut server = samples::mcp_server("tools");
        server["spec"] = json!({"runtime": "own", "params": "p"});
        world.apply(&server).await;
        let runs =
            |image: &'static str| move |it: &Value| it["spec"]["template"]["spec"]["containers"][0]["image"] == image;
        let deployment = "Deployment/mcpserver-tools";
        world.until("the server runs the image of the registry", deployment, runs("registry.example/own:1")).await;
        world.until_ready("MCPServer/tools").await;
        world.apply(&runtimes("registry.example/own:2")).await;
        world.until("the changed image applies", deployment, runs("registry.example/own:2")).await;
        world.delete("kaos-system:ConfigMap/kaos-mcp-runtimes").await;
        let told = world
            .until("the status names the missing runtime", "MCPServer/tools", |told| {
                condition(told, "Accepted")["status"] == "False"
            })
            .await;
        assert!(condition(&told, "Accepted")["message"].as_str().unwrap().contains("own"), "{told}");
        assert!(runs("registry.example/own:2")(&world.look(deployment).await), "the existing child stays unchanged");
        world.apply(&runtimes("registry.example/own:3")).await;
        world.until("the image of the restored registry applies", deployment, runs("registry.example/own:3")).await;
    });
}

#[test]
fn neither_a_settled_cluster_nor_a_restart_causes_writes() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        world.until_ready("Widget/w").await;
        world.quiet().await;
        restart_writes_nothing(world).await;
    });
}
