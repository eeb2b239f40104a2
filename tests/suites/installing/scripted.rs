//! Tests packages with a script.
//!
//! A ConfigMap with only the key `policy.js` is a package. If a user edits the script, the change takes effect without
//! a build.

use kaos_tests::harness::{World, kinds::Kind, play};
use serde_json::{Value, json};

use crate::support::{
    define, package, restart_writes_nothing, revisions, scenario, states, until_edition, until_state, widget,
};

/// Returns a package as `kubectl create configmap --from-file=policy.js` creates it, and adds the label of packages.
fn script(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"policy.js": text},
        "metadata": {"name": "widgets", "namespace": "kaos-system", "labels": {"kaos.tools/policy": "package"}}})
}

/// Returns the script of an edition of the Widgets' policy. `check` is a statement at the start of the function
/// `translate`.
fn edition(number: &str, check: &str) -> String {
    format!(
        "export function describe() {{
  return {{
    name: 'widget', version: '{number}.0.0',
    claims: [{{
      primary: {{apiVersion: 'test.example.com/v1', kind: 'Widget'}},
      emits: [{{apiVersion: 'v1', kind: 'ConfigMap'}}],
      samples: [{{name: 'one', object: {{apiVersion: 'test.example.com/v1', kind: 'Widget',
        metadata: {{name: 'sample', namespace: 'default'}}, spec: {{}}}}}}],
    }}],
  }};
}}
export function translate({{object}}) {{
  {check}
  const {{name, namespace}} = object.metadata;
  return {{manifests: [{{apiVersion: 'v1', kind: 'ConfigMap', metadata: {{name, namespace}}, data: {{edition: '{number}'}}}}]}};
}}
"
    )
}

async fn first_script_serves(world: &World) {
    define(world).await;
    world.apply(&script(&edition("1", ""))).await;
    world.apply(&widget("w", &json!({}))).await;
    until_edition(world, "ConfigMap/w", "1").await;
}

#[test]
fn a_script_serves_and_an_edit_serves_again() {
    play(scenario(), async |world| {
        first_script_serves(world).await;
        let active = until_state(world, "widgets", "Active").await;
        let engine = kaos_policy::engine::ScriptEngine::shipped().unwrap().digest.to_string();
        assert_eq!(active["status"]["scriptEngine"], engine);
        let digest = kaos_policy::digest::Digest::of(edition("1", "").as_bytes()).to_string();
        assert_eq!(active["spec"]["digest"], digest);
        world.apply(&script(&edition("2", ""))).await;
        until_edition(world, "ConfigMap/w", "2").await;
        until_state(world, "widgets", "Superseded").await;
        world.quiet().await;
        restart_writes_nothing(world).await;
    });
}

#[test]
fn a_broken_edit_of_a_script_leaves_the_last_good_one_and_names_the_line() {
    play(scenario(), async |world| {
        first_script_serves(world).await;
        world.apply(&script(&edition("2", "let x = ;"))).await;
        let refused = until_state(world, "widgets", "Refused").await;
        let message = refused["status"]["message"].as_str().unwrap();
        assert!(
            message.contains("policy.js:13:11: SyntaxError: ") && message.contains("correct the syntax"),
            "{message}"
        );
        assert_eq!(refused["status"]["reason"], "BadScript");
        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_script_that_throws_on_one_object_shows_the_line_in_the_status_of_the_object() {
    play(scenario(), async |world| {
        first_script_serves(world).await;
        world.apply(&script(&edition("2", "if (object.spec?.fragile) object.spec.size.trim();"))).await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.apply(&widget("fragile", &json!({"fragile": true}))).await;
        let told = |live: &Value| live["status"].to_string().contains("policy.js:13:");
        world.until("the status names the line", "Widget/fragile", told).await;
    });
}

#[test]
fn an_edit_with_an_endless_loop_is_refused_with_the_line_of_the_loop() {
    play(scenario(), async |world| {
        first_script_serves(world).await;
        world.apply(&script(&edition("2", "let turns = 0; for (;;) turns += 1;"))).await;
        let refused = until_state(world, "widgets", "Refused").await;
        assert_eq!(refused["status"]["reason"], "FailsSample");
        let message = refused["status"]["message"].as_str().unwrap();
        let told = ["policy.js:13:", "translate ran out of fuel: ", "end the loop, or compute less"];
        assert!(told.iter().all(|part| message.contains(part)), "{message}");
        let events = world.list_in(Kind::named("Event"), "kaos-system").await;
        let is_told = |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("policy.js:13:"));
        assert!(events.iter().any(is_told), "{events:?}");
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_script_that_never_ends_on_one_object_shows_the_line_in_the_status_of_the_object() {
    play(scenario(), async |world| {
        first_script_serves(world).await;
        world.apply(&script(&edition("2", "while (object.spec?.fragile) JSON.stringify(object);"))).await;
        until_edition(world, "ConfigMap/w", "2").await;
        world.apply(&widget("fragile", &json!({"fragile": true}))).await;
        let told = |live: &Value| {
            let status = live["status"].to_string();
            status.contains("policy.js:13:") && status.contains("translate ran out of fuel")
        };
        world.until("the status names the line", "Widget/fragile", told).await;
    });
}

#[test]
fn a_script_takes_over_from_a_component_in_the_same_config_map() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        world.apply(&widget("w", &json!({}))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        let mut both = package("widgets", "1", "");
        both["data"]["policy.js"] = edition("2", "").into();
        world.apply(&both).await;
        let refused = until_state(world, "widgets", "Refused").await;
        let message = refused["status"]["message"].as_str().unwrap();
        assert!(message.contains("has policy.wasm.gz and policy.js: keep one of these keys"), "{message}");
        let gone = json!({"binaryData": null, "data": {"policy.yaml": null, "policy.js": edition("2", "")}});
        world.patch("kaos-system:ConfigMap/widgets", &gone).await;
        until_edition(world, "ConfigMap/w", "2").await;
        assert!(
            states(world, "widgets").await.contains(&"Active".to_owned()),
            "{:?}",
            revisions(world, "widgets").await
        );
    });
}
