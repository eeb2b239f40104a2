//! Compares the policy with the recordings of KAOS, and tests the deliberate deviations.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use kaos_modelapi::ModelApi;
use kaos_policy_sdk::types::{Outcome, Plan, Refusal, Subject};
use kaos_policy_sdk::{Policy, testing};
use serde_json::{Value, json};
use support::{Case, children, first_report, main_container, violation};

fn container(plan: &Plan) -> Value {
    main_container(&children(plan), "model-api")
}

fn pod(plan: &Plan) -> Value {
    testing::manifest(plan, "Deployment").value()["spec"]["template"]["spec"].clone()
}

fn config(plan: &Plan) -> String {
    testing::manifest(plan, "ConfigMap").str_at(&["data", "config.yaml"]).unwrap().to_owned()
}

fn env(plan: &Plan) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    container(plan)["env"].as_array().unwrap().iter().map(|var| (text(&var["name"]), text(&var["value"]))).collect()
}

fn is_told(case: &Case, subject: &Subject, plan: &Plan, condition: &str) {
    let report = first_report::<ModelApi>(subject, plan);
    assert!(report.conditions.iter().any(|c| c.type_ == condition), "{}: {:?}", case.name, report.conditions);
}

fn is_refused(case: &Case, subject: &Subject, refused: &Refusal, wanted: &str) {
    assert_eq!(violation(refused).0, wanted, "{}", case.name);
    let report = ModelApi::assess(subject, &testing::observation(Outcome::Refused(refused.clone())).build());
    assert_eq!((report.phase.as_str(), report.ready), ("Failed", false), "{}", case.name);
    let (path, message) = violation(refused);
    assert_eq!(report.message, format!("{path}: {message}"), "{}", case.name);
}

/// Checks how the policy's plan for a case deviates from the recording.
fn assert_better(case: &Case, subject: &Subject, answer: &Result<Plan, Refusal>, plan: &Plan) {
    let same_and = |condition: &str| {
        case.assert_same::<ModelApi>(subject, answer);
        is_told(case, subject, plan, condition);
    };
    match case.name.as_str() {
        "modelapi-configyaml-empty-list" => same_and("ConfigValid"),
        "modelapi-hosted-telemetry" => same_and("TelemetryUnsupported"),
        "modelapi-proxy-telemetry-no-endpoint" => same_and("TelemetryConfigured"),
        "modelapi-proxy-models-update" => case.assert_same::<ModelApi>(subject, answer),
        "modelapi-configyaml-secretref" => {
            let secret = json!({"secretName": "cfg", "items": [{"key": "config.yaml", "path": "config.yaml"}]});
            assert_eq!(pod(plan)["volumes"], json!([{"name": "litellm-config", "secret": secret}]));
            assert!(plan.manifests.iter().all(|manifest| !manifest.contains("\"ConfigMap\"")));
        }
        "modelapi-container-ignored" => {
            let container = container(plan);
            assert_eq!((&container["image"], &container["command"]), (&json!("my/litellm:1"), &json!(["x"])));
            assert_eq!(
                (&container["args"], &container["resources"]),
                (&json!(["y"]), &json!({"limits": {"memory": "1Gi"}}))
            );
        }
        "modelapi-hosted-no-image" => assert_eq!(container(plan)["image"], "alpine/ollama:latest"),
        "modelapi-no-image" => assert_eq!(container(plan)["image"], "ghcr.io/berriai/litellm:main-stable"),
        "modelapi-hosted-podspec-pvc" => {
            let volume = json!({"name": "ollama-data", "persistentVolumeClaim": {"claimName": "models"}});
            assert_eq!(pod(plan)["volumes"], json!([volume]));
        }
        "modelapi-hosted-shell" => {
            let args = pod(plan)["initContainers"][0]["args"].clone();
            assert!(!args[0].as_str().unwrap().contains("pwned"), "{args}");
            assert_eq!(args[2], "smollm2:135m; touch /tmp/pwned $$(id) `id` 'q'");
        }
        "modelapi-provider-special-chars" => {
            assert!(!config(plan).contains("\n  master_key"), "{}", config(plan));
            assert!(
                config(plan).contains(r#"model: "x\"\nlitellm_settings:\n  master_key: \"pwn/m""#),
                "{}",
                config(plan)
            );
        }
        "modelapi-proxy-apikey-empty" => assert!(!config(plan).contains("api_key")),
        "modelapi-proxy-provider-double-prefix" => {
            assert!(
                config(plan).contains("model: \"openai/gpt-4o\"\n") && config(plan).contains("model: \"openai/*\"\n")
            );
        }
        "modelapi-proxy-container-env-collision" => {
            let expected = [
                ("PROXY_API_BASE", "http://user"),
                ("OTEL_SERVICE_NAME", "mine"),
                ("LITELLM_LOG", "INFO"),
                ("OTEL_EXPORTER", "otlp_grpc"),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://o:4317"),
                ("OTEL_PYTHON_EXCLUDED_URLS", "/health"),
            ];
            assert_eq!(env(plan), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        "modelapi-proxy-telemetry-global-endpoint-only" => {
            assert!(config(plan).contains("success_callback: [\"otel\"]"));
            let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), "http://own:4317".to_owned());
            assert!(env(plan).contains(&endpoint));
        }
        name => panic!("{name}: the test has no expectation for this case"),
    }
}

fn assert_deviation(case: &Case, subject: &Subject, answer: &Result<Plan, Refusal>) {
    match (case.name.as_str(), answer) {
        (
            "modelapi-configyaml-ready-then-bad" | "modelapi-configyaml-bad-yaml" | "modelapi-configyaml-bad-model",
            Err(refused),
        ) => {
            let (_, message) = violation(refused);
            let recorded = case.recorded["status"]["message"].as_str().unwrap();
            // Compare only the text before the YAML parser's message: the parsers of Go and of the SDK differ.
            let known = recorded.find("yaml: ").map_or(recorded, |end| &recorded[..end]);
            assert!(message.starts_with(known), "{}: {message}", case.name);
            is_refused(case, subject, refused, "spec.proxyConfig.configYaml.fromString");
        }
        ("modelapi-hosted-no-hostedconfig", Err(refused)) => is_refused(case, subject, refused, "spec.hostedConfig"),
        ("modelapi-proxy-no-proxyconfig", Err(refused)) => is_refused(case, subject, refused, "spec.proxyConfig"),
        ("modelapi-name-55", Err(refused)) => is_refused(case, subject, refused, "metadata.name"),
        (name, Err(refused)) => panic!("{name}: refused: {refused:?}"),
        (_, Ok(plan)) => assert_better(case, subject, answer, plan),
    }
}

#[test]
fn every_recorded_case_matches_the_recording_or_its_deviation() {
    for case in support::cases("modelapi-", "ModelAPI") {
        let subject = case.subject::<ModelApi>();
        let answer = testing::plan::<ModelApi>(&subject);
        if case.deviates {
            assert_deviation(&case, &subject, &answer);
        } else if !case.recorded["rejected"].is_null() {
            assert!(answer.is_err(), "{}", case.name);
        } else if case.recorded_children().is_empty() {
            case.assert_refused::<ModelApi>(&subject, &answer);
        } else {
            case.assert_same::<ModelApi>(&subject, &answer);
        }
    }
}
