//! Whatever an object, a registry or settings hold: a plan or a refusal with a path, never a panic.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "support/hostile.rs"]
mod hostile;
mod support;

use hostile::{assert_answers, with};
use kaos_mcpserver::McpServer;
use kaos_policy_sdk::testing;
use proptest::prelude::*;
use serde_json::{Value, json};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("python-string".to_owned()),
        Just("custom".to_owned()),
        Just("x\"\n$(id) `id` ' \u{0} \u{2028} é".to_owned()),
        Just("a".repeat(100_000)),
        "\\PC{0,12}",
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    let names = prop_oneof![Just("name".to_owned()), Just("value".to_owned()), Just("key".to_owned()), "\\PC{0,5}"];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

const PLACES: [&str; 21] = [
    "/spec/runtime",
    "/spec/params",
    "/spec/serviceAccountName",
    "/spec/replicas",
    "/spec/type",
    "/spec/resources",
    "/spec/container",
    "/spec/container/image",
    "/spec/container/env",
    "/spec/container/command",
    "/spec/container/resources",
    "/spec/podSpec",
    "/spec/podSpec/containers",
    "/spec/gatewayRoute/timeout",
    "/spec/telemetry",
    "/spec/telemetry/endpoint",
    "/spec/config",
    "/spec/config/mcp",
    "/spec/config/tools",
    "/spec/config/toolsString",
    "/metadata/name",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_object_gets_a_plan_or_a_refusal(
        changes in prop::collection::vec((prop::sample::select(&PLACES[..]), any_value()), 0..5),
        registry in prop_oneof![any_text(), any_value().prop_map(|value| json!({"runtimes": value}).to_string())],
    ) {
        let object = json!({"metadata": {"name": "t", "namespace": "n"}, "spec": {"runtime": "python-string"}});
        let object = changes.into_iter().fold(object, |object, (place, value)| with(object, place, value));
        let registry = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kaos-mcp-runtimes", "namespace": "kaos-system"},
            "data": {"runtimes.yaml": registry},
        });
        let settings = support::default_settings::<McpServer>();
        let builder = testing::subject(&object).settings(&settings);
        assert_answers::<McpServer>(&builder.clone().build());
        assert_answers::<McpServer>(&builder.beside::<McpServer>(&[registry]).build());
    }
}
