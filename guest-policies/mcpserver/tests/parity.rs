//! Compares the policy with the recordings of KAOS, and tests the deliberate deviations.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod support;

use kaos_mcpserver::McpServer;
use kaos_policy_sdk::types::{Outcome, Plan, Refusal, Subject};
use kaos_policy_sdk::{Policy, testing};
use serde_json::{Value, json};
use support::{Case, children, first_report, main_container, violation};

fn container(plan: &Plan) -> Value {
    main_container(&children(plan), "mcp-server")
}

fn is_told(case: &Case, subject: &Subject, plan: &Plan, condition: &str) {
    let report = first_report::<McpServer>(subject, plan);
    assert!(report.conditions.iter().any(|c| c.type_ == condition), "{}: {:?}", case.name, report.conditions);
}

/// Checks that the answer for a case deviates from the recording exactly as intended.
fn assert_deviation(case: &Case, subject: &Subject, answer: &Result<Plan, Refusal>) {
    match (case.name.as_str(), answer) {
        ("mcpserver-custom-no-image", Err(refused)) => {
            assert_eq!(
                violation(refused),
                ("spec.container.image", "custom runtime requires container.image to be set")
            );
        }
        ("mcpserver-unknown-runtime" | "mcpserver-runtime-to-unknown", Err(refused)) => {
            let (path, message) = violation(refused);
            assert_eq!(path, "spec.runtime");
            assert!(
                message.starts_with("unknown runtime: ") && message.contains("(not found in registry)"),
                "{message}"
            );
            let seen = testing::observation(Outcome::Refused(refused.clone())).build();
            let report = McpServer::assess(subject, &seen);
            assert_eq!((report.phase.as_str(), report.ready), ("Failed", false));
            assert!(report.conditions.iter().any(|condition| condition.type_ == "RuntimeResolved"));
        }
        // Only later reports deviate: they say why no pod starts. So the plan and the first report must match the
        // recording.
        ("mcpserver-serviceaccount-missing", Ok(_)) => case.assert_same::<McpServer>(subject, answer),
        ("mcpserver-custom-params", Ok(plan)) => {
            case.assert_same::<McpServer>(subject, answer);
            is_told(case, subject, plan, "ParamsApplied");
        }
        ("mcpserver-env-collision", Ok(plan)) => {
            let container = container(plan);
            let env: Vec<(&str, &str)> = container["env"]
                .as_array()
                .unwrap()
                .iter()
                .map(|var| (var["name"].as_str().unwrap(), var["value"].as_str().unwrap()))
                .collect();
            let expected = [
                ("MCP_TOOLS_STRING", "user"),
                ("LOG_LEVEL", "ERROR"),
                ("OTEL_SERVICE_NAME", "mine"),
                ("OTEL_SDK_DISABLED", "false"),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://o:4317"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=parity,kaos.resource.name=t"),
                ("OTEL_PYTHON_FASTAPI_EXCLUDED_URLS", "/health,/ready"),
            ];
            assert_eq!(env, expected);
        }
        ("mcpserver-full-override-empty-lists", Ok(plan)) => {
            let container = container(plan);
            assert_eq!((&container["command"], &container["args"]), (&Value::Null, &Value::Null));
        }
        ("mcpserver-podspec-http-probe", Ok(plan)) => {
            let probe = &container(plan)["readinessProbe"];
            assert_eq!(probe["httpGet"], json!({"path": "/healthz", "port": 8000}));
            assert_eq!(probe["tcpSocket"], Value::Null);
            assert_eq!(probe["initialDelaySeconds"], 15);
        }
        ("mcpserver-unknown-fields", Ok(plan)) => {
            assert_eq!(
                container(plan)["env"],
                json!([
                    {"name": "MCP_TOOLS_STRING", "value": "def a(): pass"},
                    {"name": "A", "value": "1"},
                    {"name": "LOG_LEVEL", "value": "INFO"},
                ])
            );
            is_told(case, subject, plan, "Deprecated");
        }
        (name, answer) => panic!("{name}: not what is wanted: {answer:?}"),
    }
}

#[test]
fn every_recorded_case_matches_the_recording_or_its_deviation() {
    for case in support::cases("mcpserver-", "MCPServer") {
        let subject = case.subject::<McpServer>();
        let answer = testing::plan::<McpServer>(&subject);
        if case.deviates {
            assert_deviation(&case, &subject, &answer);
        } else if case.recorded["status"]["phase"] == "Failed" {
            case.assert_refused::<McpServer>(&subject, &answer);
        } else if case.recorded["rejected"].is_null() {
            case.assert_same::<McpServer>(&subject, &answer);
        } else {
            assert!(answer.is_err(), "{}", case.name);
        }
    }
}
