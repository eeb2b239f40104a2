//! The committed schema matches the code. Each row lists a setting and all paths in the plan that the setting changes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/settings.rs"]
mod changes;
#[path = "../../mcpserver/tests/support/committed.rs"]
mod committed;
#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use changes::{Row, probe, row};
use kaos_modelapi::{ModelApi, Settings};
use kaos_policy_sdk::testing;
use kaos_policy_sdk::types::Plan;
use kaos_workload::schema;
use serde_json::{Value, json};

#[test]
fn the_committed_schema_matches_the_code() {
    committed::assert_schema(&Settings::schema_text());
}

/// Returns the plan with `settings` for an object that `setting` affects. Telemetry and routes are enabled.
fn plan(setting: &str, settings: &Value) -> Plan {
    let is_hosted =
        ["hosted.", "hostedRun.", "modelStore.", "modelPull."].iter().any(|prefix| setting.starts_with(prefix));
    let spec = if is_hosted {
        json!({"mode": "Hosted", "hostedConfig": {"model": "m"}})
    } else {
        json!({"mode": "Proxy", "proxyConfig": {"models": ["m"]}})
    };
    let metadata = json!({"name": "t", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let object = json!({"metadata": metadata, "spec": spec});
    let subject = testing::subject(&object)
        .settings(settings)
        .serves("gateway.networking.k8s.io/v1", "HTTPRoute")
        .serves("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy")
        .serves("networking.k8s.io/v1", "NetworkPolicy")
        .build();
    testing::plan::<ModelApi>(&subject).unwrap_or_else(|refused| panic!("{setting}: {refused:?}"))
}

/// Builds the rows about the settings of one server. `init` is the path of the server's init container, if it has one.
/// `port` is a further path in the plan at which the server's port must change.
fn server(setting: &str, init: Option<&str>, port: &str) -> Vec<Row> {
    let of = |leaf: &str, value: Value, paths: &str| row(&format!("{setting}.{leaf}"), value, paths);
    let both = |field: &str| {
        let before = init.map(|init| format!("{init}/{field}")).unwrap_or_default();
        format!("@/{field} {before}")
    };
    let ports = "@/ports/0/containerPort @/livenessProbe/httpGet/port @/readinessProbe/httpGet/port \
                 Service:/spec/ports/0/targetPort";
    let mut rows = vec![
        of("image", json!("i:1"), &both("image")),
        of("imagePullPolicy", json!("Always"), &both("imagePullPolicy")),
        of("containerPort", json!(9), &format!("{ports} {port}")),
        of("servicePort", json!(9), "Service:/spec/ports/0/port HTTPRoute:/spec/rules/0/backendRefs/0/port"),
        of("portName", json!("web"), "@/ports/0/name Service:/spec/ports/0/name"),
        of("serviceType", json!("LoadBalancer"), "Service:/spec/type"),
        of("resources", json!({"limits": {"cpu": "1"}}), "@/resources"),
        of("securityContext", json!({"runAsNonRoot": true}), &both("securityContext")),
        of("podSecurityContext", json!({"runAsNonRoot": true}), "Deployment:/spec/template/spec/securityContext"),
        of("automountServiceAccountToken", json!(false), "Deployment:/spec/template/spec/automountServiceAccountToken"),
    ];
    for field in ["livenessProbe", "readinessProbe"] {
        rows.extend(probe(&format!("{setting}.{field}"), field, "httpGet"));
    }
    rows
}

#[test]
fn every_setting_changes_exactly_the_listed_places() {
    let mut settings = support::default_settings::<ModelApi>();
    settings["gateway"] = json!({"enabled": true, "name": "g", "namespace": "gn", "timeout": "30s"});
    settings["telemetry"]["enabled"] = json!(true);
    settings["telemetry"]["endpoint"] = json!("http://o");
    settings["proxyConfig"]["withoutMasterKey"] = json!(true);
    let everywhere = "Deployment:/metadata/KEY Deployment:/spec/template/metadata/KEY Service:/metadata/KEY \
                      HTTPRoute:/metadata/KEY ConfigMap:/metadata/KEY";
    let config = "ConfigMap:/data/config.yaml";
    let init = "Deployment:/spec/template/spec/initContainers/0";
    let volume = "Deployment:/spec/template/spec/volumes/0";
    let mut rows = vec![
        row("proxyConfig.mountPath", json!("/x"), "@/volumeMounts/0/mountPath @/args/1"),
        row("proxyConfig.fileName", json!("x.yaml"), "@/args/1 ConfigMap:/data/config.yaml ConfigMap:/data/x.yaml"),
        row("proxyConfig.volumeName", json!("x"), &format!("@/volumeMounts/0/name {volume}/name")),
        row("proxyConfig.dropParams", json!(false), config),
        row("proxyConfig.telemetryCallback", json!("x"), config),
        row("proxyConfig.extraArgs", json!(["--detailed_debug"]), "@/args"),
        row("proxyConfig.withoutMasterKey", json!(false), "@/env"),
        row("proxyConfig.withoutMasterKeySince", json!("2027-01-01T00:00:00Z"), "@/env"),
        row(
            "modelStore.mountPath",
            json!("/x"),
            &format!("@/volumeMounts/0/mountPath {init}/volumeMounts/0/mountPath"),
        ),
        row(
            "modelStore.volumeName",
            json!("x"),
            &format!("@/volumeMounts/0/name {init}/volumeMounts/0/name {volume}/name"),
        ),
        row("modelStore.source", json!({"hostPath": {"path": "/x"}}), &format!("{volume}/emptyDir {volume}/hostPath")),
        row("hostedRun.command", json!(["ollama"]), "@/command"),
        row("hostedRun.args", json!(["serve"]), "@/args"),
        row("modelPull.enabled", json!(false), "Deployment:/spec/template/spec/initContainers"),
        row("modelPull.name", json!("x"), &format!("{init}/name")),
        row("modelPull.image", json!("x"), &format!("{init}/image")),
        row("modelPull.command", json!(["/bin/bash", "-c"]), &format!("{init}/command/0")),
        row("modelPull.script", json!("ollama pull {model}"), &format!("{init}/args/0")),
        row("logLevel", json!("DEBUG"), "@/env/0/value"),
        row("extraLabels", json!({"team": "x"}), &everywhere.replace("KEY", "labels/team")),
        row("extraAnnotations", json!({"team": "x"}), &everywhere.replace("KEY", "annotations")),
        row("gateway.enabled", json!(false), "HTTPRoute:"),
        row("gateway.name", json!("other"), "HTTPRoute:/spec/parentRefs/0/name"),
        row("gateway.namespace", json!("other"), "HTTPRoute:/spec/parentRefs/0/namespace"),
        row("gateway.timeout", json!("1m"), "HTTPRoute:/spec/rules/0/timeouts/request"),
        row("telemetry.enabled", json!(false), &format!("@/env {config}")),
        row("telemetry.endpoint", json!("http://x"), "@/env/2/value"),
        row("telemetry.excludedUrls", json!("/x"), "@/env/4/value"),
        // No manifest contains the finalizer. The plan names the finalizer, and the host adds it to the object.
        row("finalizer", json!("kaos.tools/modelapi-finalizer"), ""),
    ];
    rows.extend(server("proxy", None, "@/args/3"));
    rows.extend(server("hosted", Some(init), ""));
    rows.extend(changes::security());
    changes::assert_each_changes_its_places::<ModelApi>(&settings, &rows, plan);
}

#[test]
fn the_plan_passes_the_finalizer_to_the_host() {
    let mut settings = support::default_settings::<ModelApi>();
    assert_eq!(plan("finalizer", &settings).finalizer, None);
    settings["finalizer"] = json!("example.com/x");
    assert_eq!(plan("finalizer", &settings).finalizer.as_deref(), Some("example.com/x"));
}

#[test]
fn a_protected_model_api_may_reach_providers_outside_of_the_cluster() {
    let settings = changes::secured(&support::default_settings::<ModelApi>());
    let settings = schema::with(&settings, "security.networkPolicy.egress", json!(true));
    let policy = testing::manifest(&plan("security", &settings), "NetworkPolicy").value().clone();
    let rules = policy["spec"]["egress"].as_array().unwrap();
    // KAOS allows only IPv4.
    let anywhere = json!({"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]});
    assert_eq!((rules.len(), &rules[2]), (3, &anywhere));
}
