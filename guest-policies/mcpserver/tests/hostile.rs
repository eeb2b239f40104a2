//! For every object, registry and settings, the policy returns a plan or a refusal with a path, and never panics.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../sdk/tests/support/anything.rs"]
mod anything;
#[path = "support/hostile.rs"]
mod hostile;
mod support;

use anything::{any_text, anything};
use hostile::{assert_answers, with};
use kaos_mcpserver::McpServer;
use kaos_policy_sdk::testing;
use proptest::prelude::*;
use serde_json::json;

const WORDS: [&str; 3] = ["", "python-string", "custom"];

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
        changes in prop::collection::vec((prop::sample::select(&PLACES[..]), anything(&WORDS)), 0..5),
        registry in prop_oneof![any_text(&WORDS), anything(&WORDS).prop_map(|value| json!({"runtimes": value}).to_string())],
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
