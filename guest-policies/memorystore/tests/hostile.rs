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
use kaos_memorystore::MemoryStore;
use kaos_policy_sdk::testing;
use proptest::prelude::*;
use serde_json::json;

const WORDS: [&str; 6] = ["", "local", "external", "5Gi", "-1", "llm"];

const PLACES: [&str; 24] = [
    "/spec/engine",
    "/spec/storage",
    "/spec/storage/type",
    "/spec/storage/local/persistentVolume/size",
    "/spec/storage/local/collection",
    "/spec/storage/external",
    "/spec/storage/external/connectionSecretRef",
    "/spec/storage/external/embeddingDims",
    "/spec/replicas",
    "/spec/models",
    "/spec/models/summarization/modelAPI",
    "/spec/models/embedding/model",
    "/spec/shortTerm/tokenBudget",
    "/spec/mediumTerm",
    "/spec/mediumTerm/compactionTrigger",
    "/spec/longTerm/scoreThreshold",
    "/spec/longTerm/extraction/concurrency",
    "/spec/defaultFailureMode",
    "/spec/maxReadScope",
    "/spec/gatewayRoute/timeout",
    "/spec/telemetry",
    "/spec/container",
    "/spec/container/env",
    "/metadata/name",
];

const OTHERS: [&str; 8] = [
    "/spec/models",
    "/spec/mode",
    "/spec/proxyConfig/models",
    "/status",
    "/status/endpoint",
    "/spec/resources/requests/storage",
    "/spec/accessModes",
    "/metadata/ownerReferences",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_object_gets_a_plan_or_a_refusal(
        is_local in any::<bool>(),
        changes in prop::collection::vec((prop::sample::select(&PLACES[..]), anything(&WORDS)), 0..5),
        others in prop::collection::vec((prop::sample::select(&OTHERS[..]), anything(&WORDS)), 0..3),
    ) {
        let storage = if is_local {
            json!({"type": "local"})
        } else {
            json!({"type": "external", "external": {"connectionSecretRef": {"name": "pg", "key": "dsn"}}})
        };
        let model = json!({"modelAPI": "llm", "model": "m"});
        let spec = json!({"storage": storage, "models": {"summarization": model, "embedding": model}});
        let object = json!({"metadata": {"name": "t", "namespace": "n"}, "spec": spec});
        let object = changes.into_iter().fold(object, |object, (place, value)| with(object, place, value));
        let api = json!({
            "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "n"},
            "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": {"ready": true, "endpoint": "http://llm"},
        });
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "memorystore-t-data", "namespace": "n"},
        });
        let changed = |object| others.iter().fold(object, |object, (place, value)| with(object, place, value.clone()));
        let settings = support::default_settings::<MemoryStore>();
        let subject = testing::subject(&object).settings(&settings);
        assert_answers::<MemoryStore>(&subject.beside::<MemoryStore>(&[changed(api), changed(claim)]).build());
    }
}
