//! Tests that the policy answers every object with a plan or a refusal, and never panics.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../sdk/tests/support/anything.rs"]
mod anything;
#[path = "../../mcpserver/tests/support/hostile.rs"]
mod hostile;
#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use anything::anything;
use hostile::{assert_answers, with};
use kaos_authorization::Authorization;
use kaos_policy_sdk::testing;
use proptest::prelude::*;
use serde_json::{Value, json};

const WORDS: [&str; 6] = ["", "Agent", "Group", "automated", "manual", "n"];

const PLACES: [&str; 6] =
    ["/spec/subjects", "/spec/resources", "/spec/namespaces", "/spec/configMap", "/spec/dataSource", "/metadata/name"];

/// The paths in a resource of an AccessGrant that the tests replace.
const PARTS: [&str; 4] = ["/kind", "/name", "/selector", "/selector/matchExpressions"];

const OTHERS: [&str; 6] =
    ["/spec", "/spec/modelAPI", "/spec/agentNetwork/access", "/spec/config", "/spec/resources", "/status/grants"];

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "n"}, "spec": spec})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_object_gets_an_answer(
        is_grant in any::<bool>(),
        place in prop::sample::select(&PLACES[..]),
        value in anything(&WORDS),
        part in prop::sample::select(&PARTS[..]),
        inner in anything(&WORDS),
        other in prop::sample::select(&OTHERS[..]),
        beside in anything(&WORDS),
    ) {
        let subjects = json!([{"kind": "Agent", "name": "a"}]);
        let resource = with(json!({"kind": "MCPServer", "selector": {"matchLabels": {"a": "b"}}}), part, inner);
        let resources = json!([resource]);
        let grant = object("AccessGrant", "g", &json!({"subjects": subjects, "resources": resources}));
        let projection = object("AuthorizationPolicy", "kaos-authz", &json!({"namespaces": ["n"]}));
        let agent = object("Agent", "a", &json!({"modelAPI": "llm", "mcpServers": ["s"]}));
        let server = object("MCPServer", "s", &json!({}));
        let mut settings = support::default_settings::<Authorization>();
        settings["enabled"] = json!(true);
        settings["agents"]["issuer"] = json!("https://cluster");
        settings["agents"]["jwks"] = json!(r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#);
        let subject = with(if is_grant { grant.clone() } else { projection }, place, value);
        let found = [with(agent, other, beside.clone()), with(grant, other, beside), server];
        let subject = testing::subject(&subject).settings(&settings).beside::<Authorization>(&found).build();
        assert_answers::<Authorization>(&subject);
    }
}
