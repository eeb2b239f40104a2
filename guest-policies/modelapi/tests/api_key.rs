//! Pods read the key of the provider from the Secret or the ConfigMap that the object names.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use kaos_modelapi::ModelApi;
use kaos_policy_sdk::testing;
use serde_json::{Value, json};

/// Returns the `valueFrom` of the variable with the provider's key. The object's `apiKey` has this `value_from`.
fn source(value_from: &Value) -> Value {
    let proxy = json!({"models": ["m"], "apiKey": {"valueFrom": value_from}});
    let object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
        "metadata": {"name": "llm", "namespace": "n"}, "spec": {"mode": "Proxy", "proxyConfig": proxy}});
    let subject = testing::subject(&object).settings(&support::default_settings::<ModelApi>()).build();
    let plan = testing::plan::<ModelApi>(&subject).unwrap_or_else(|refused| panic!("{refused:?}"));
    let deployment = testing::manifest(&plan, "Deployment").value().clone();
    let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
    env.iter().find(|variable| variable["name"] == "PROXY_API_KEY").unwrap()["valueFrom"].clone()
}

#[test]
fn the_key_of_the_provider_is_optional_as_the_object_says() {
    for kind in ["secretKeyRef", "configMapKeyRef"] {
        let mut written = json!({kind: {"name": "provider", "key": "token"}});
        assert_eq!(source(&written), written);
        for optional in [true, false] {
            written[kind]["optional"] = json!(optional);
            // KAOS's operator sets the field to the same value, so an upgrade restarts no pod.
            assert_eq!(source(&written), written);
        }
    }
}
