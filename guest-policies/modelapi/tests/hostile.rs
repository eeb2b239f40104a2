//! For every object, the policy returns a plan or a refusal with a path, and never panics.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../sdk/tests/support/anything.rs"]
mod anything;
#[path = "../../mcpserver/tests/support/hostile.rs"]
mod hostile;
#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use anything::anything;
use hostile::{assert_answers, with};
use kaos_modelapi::ModelApi;
use kaos_policy_sdk::testing;
use proptest::prelude::*;
use serde_json::json;

const WORDS: [&str; 4] = ["", "Hosted", "Proxy", "model_list: [{model_name: m}]"];

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
        changes in prop::collection::vec((prop::sample::select(&PLACES[..]), anything(&WORDS)), 0..5),
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
