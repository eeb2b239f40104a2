//! Whatever an object holds: a plan or a refusal with a path, never a panic.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/hostile.rs"]
mod hostile;
#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use hostile::{assert_answers, with};
use kaos_modelapi::ModelApi;
use kaos_policy_sdk::testing;
use proptest::prelude::*;
use serde_json::{Value, json};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("Hosted".to_owned()),
        Just("model_list: [{model_name: m}]".to_owned()),
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

const PLACES: [&str; 22] = [
    "/spec/mode",
    "/spec/proxyConfig",
    "/spec/proxyConfig/models",
    "/spec/proxyConfig/provider",
    "/spec/proxyConfig/apiBase",
    "/spec/proxyConfig/apiKey",
    "/spec/proxyConfig/apiKey/valueFrom",
    "/spec/proxyConfig/configYaml",
    "/spec/proxyConfig/configYaml/fromString",
    "/spec/proxyConfig/model",
    "/spec/proxyConfig/env",
    "/spec/hostedConfig/model",
    "/spec/hostedConfig/env",
    "/spec/serverConfig",
    "/spec/container",
    "/spec/container/env",
    "/spec/container/args",
    "/spec/podSpec",
    "/spec/gatewayRoute/timeout",
    "/spec/telemetry",
    "/spec/replicas",
    "/metadata/name",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_object_gets_a_plan_or_a_refusal(
        is_proxy in any::<bool>(),
        changes in prop::collection::vec((prop::sample::select(&PLACES[..]), any_value()), 0..5),
    ) {
        let spec = if is_proxy {
            json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}})
        } else {
            json!({"mode": "Hosted", "hostedConfig": {"model": "m"}})
        };
        let object = json!({"metadata": {"name": "t", "namespace": "n"}, "spec": spec});
        let object = changes.into_iter().fold(object, |object, (place, value)| with(object, place, value));
        let settings = support::default_settings::<ModelApi>();
        assert_answers::<ModelApi>(&testing::subject(&object).settings(&settings).build());
    }
}
