//! Every recorded Agent gets the children of the Go operator, or children with the deviation that the case describes.
//!
//! If the Agent of a case refers to other objects, the test gives each of these objects the status that the policy of
//! the referenced object would write in its first pass. The golden tests in the root workspace compare the output of
//! the whole operator, including the host's metadata and the statuses.

mod cases;

use cases::{Case, rendered};
use kaos_policy_sdk::types::{EnvSource, Refusal};
use kaos_policy_sdk::{Object, testing};
use serde_json::{Value, json};

#[test]
fn recorded_agents_render_as_recorded() {
    let mut seen = 0;
    for case in Case::all() {
        let Some(expected) = case.expected() else { continue };
        let plan = case.plan().unwrap_or_else(|refused| panic!("{}: {refused:?}", case.name));
        assert_eq!(rendered(&plan), expected, "{}", case.name);
        seen += 1;
    }
    assert!(seen > 40, "only {seen} cases were compared");
}

#[test]
fn every_plan_says_where_each_variable_comes_from() {
    for case in Case::all() {
        let Ok(plan) = case.plan() else { continue };
        let deployment = testing::manifest(&plan, "Deployment");
        let containers = |list| deployment.at(&["spec", "template", "spec", list]).and_then(Value::as_array);
        let all = ["initContainers", "containers"].into_iter().filter_map(containers).flatten();
        let listed: usize = all.map(|container| container["env"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(plan.env.len(), listed, "{}", case.name);
        assert!(plan.env.iter().all(|var| !var.origin.is_empty()), "{}", case.name);
    }
}

#[test]
fn recorded_refusals_are_refusals_with_the_recorded_message() {
    let refused = |name: &str| Case::named(name).plan().unwrap_err();
    for (name, path) in [
        ("agent-model-hosted-mismatch", "spec.model"),
        ("agent-model-not-allowed", "spec.model"),
        ("agent-model-wildcard-other-provider", "spec.model"),
        ("agent-rejected-gateway-timeout", "spec.gatewayRoute.timeout"),
        ("agent-rejected-memory-type", "spec.config.memory.type"),
        ("agent-rejected-name-uppercase", "metadata.name"),
        ("agent-rejected-no-model", "spec.model"),
        ("agent-rejected-steps-21", "spec.config.reasoningLoopMaxSteps"),
        ("agent-name-dot", "metadata.name"),
    ] {
        let Refusal::Invalid(violations) = refused(name) else { panic!("{name} must be invalid") };
        assert_eq!(violations[0].path, path, "{name}: {violations:?}");
        let recorded = Case::named(name).recorded["status"]["message"].clone();
        if path == "spec.model" && !recorded.is_null() {
            assert_eq!(recorded, violations[0].message, "{name}");
        }
    }
    for (name, message) in [
        ("agent-modelapi-missing", "ModelAPI ghost not found"),
        ("agent-mcp-missing-nowait", "MCPServer ghost not found"),
    ] {
        let Refusal::Waiting(blockers) = refused(name) else { panic!("{name} must wait") };
        assert_eq!(blockers[0].message, message);
    }
}

#[test]
fn recorded_waits_are_gates_with_the_recorded_message() {
    for name in ["agent-modelapi-unready-wait", "agent-mcp-one-of-two-unready", "agent-sample-3-hierarchy"] {
        let case = Case::named(name);
        let gates = case.plan().unwrap().gates;
        assert_eq!(case.recorded["status"]["message"], gates[0].message, "{name}");
    }
    assert!(Case::named("agent-minimal-nowait").plan().unwrap().gates.is_empty());
}

#[test]
fn wanted_deviations_are_made() {
    let pod = |name: &str| {
        let plan = Case::named(name).plan().unwrap();
        testing::manifest(&plan, "Deployment").at(&["spec", "template", "spec"]).unwrap().clone()
    };
    let ignored = &pod("agent-container-ignored")["containers"][0];
    assert_eq!(ignored["image"], "custom-agent:v2");
    assert_eq!(ignored["resources"]["requests"]["cpu"], "200m");
    assert_eq!(ignored["command"], json!(["python", "main.py"]));

    let probe = &pod("agent-podspec-probe-override")["containers"][0]["livenessProbe"];
    assert!(probe.get("httpGet").is_none() && probe["tcpSocket"]["port"] == 8000, "{probe}");

    let sidecar = pod("agent-podspec-sidecar");
    assert_eq!(sidecar["containers"][0]["name"], "agent");
    assert_eq!(sidecar["containers"][1]["name"], "sidecar");

    assert_eq!(pod("agent-rejected-podspec-no-containers")["nodeSelector"], json!({"x": "y"}));

    let plan = Case::named("agent-podspec-env-valuefrom").plan().unwrap();
    let url = plan.env.iter().find(|var| var.name == "MODEL_API_URL").unwrap();
    assert!(matches!(&url.source, EnvSource::SecretKey(key) if key.name == "creds"), "{url:?}");

    let itself = Case::named("agent-network-self").plan().unwrap();
    assert!(itself.env.iter().all(|var| var.name != "PEER_AGENTS"));
    assert!(itself.notes.iter().any(|note| note.reason == "SelfReference"));

    let own = Case::named("agent-telemetry-global-endpoint-only").plan().unwrap();
    assert_eq!(testing::env_value(&own.env, "agent", "OTEL_EXPORTER_OTLP_ENDPOINT"), Some("http://own:4317"));

    for (name, reason) in [
        ("agent-network-peer-missing", "PeerNotFound"),
        ("agent-network-peer-unexposed", "PeerNotExposed"),
        ("agent-telemetry-enabled-no-endpoint", "TelemetryWithoutEndpoint"),
    ] {
        let notes = Case::named(name).plan().unwrap().notes;
        assert!(notes.iter().any(|note| note.reason == reason), "{name}: {notes:?}");
    }
}

#[test]
fn recorded_statuses_are_reported() {
    let mut seen = 0;
    for case in Case::all() {
        let recorded = &case.recorded["status"];
        if case.deviates() || recorded["deployment"].is_null() {
            continue;
        }
        let report = case.report();
        let fields: Value = serde_json::from_str(&report.fields).unwrap();
        let fields = Object::new(fields);
        assert_eq!(report.phase, recorded["phase"].as_str().unwrap(), "{}", case.name);
        assert_eq!(report.ready, recorded["ready"] == true, "{}", case.name);
        assert_eq!(report.message, recorded["message"].as_str().unwrap(), "{}", case.name);
        assert_eq!(fields.at(&["endpoint"]), recorded.get("endpoint"), "{}", case.name);
        assert_eq!(fields.at(&["deployment"]), recorded.get("deployment"), "{}", case.name);
        assert_eq!(
            fields.at(&["linkedResources", "modelapi"]),
            recorded["linkedResources"].get("modelapi"),
            "{}",
            case.name
        );
        seen += 1;
    }
    assert!(seen > 30, "only {seen} statuses were compared");
}
