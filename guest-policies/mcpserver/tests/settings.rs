//! The committed schema matches the code. Each row lists a setting and all paths in the plan that the setting changes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "support/settings.rs"]
mod changes;
#[path = "support/committed.rs"]
mod committed;
mod support;

use changes::{probe, row};
use kaos_mcpserver::{McpServer, Settings};
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
    let spec = match setting {
        "packageImage" => json!({"config": {"mcp": "mcp-server-time"}}),
        "commandFlagsAsArgs" => json!({"runtime": "flags"}),
        _ => json!({"runtime": "python-string", "params": "def a(): pass"}),
    };
    let object = json!({"metadata": {"name": "t", "namespace": "n"}, "spec": spec});
    let registry = |name: &str, image: &str| {
        let runtime = format!("runtimes: {{python-string: {{image: {image}, paramsEnvVar: MCP_TOOLS_STRING}}}}");
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kaos-system"},
            "data": {"runtimes.yaml": runtime, "changed": runtime.replace(image, "other-key:1"),
                     "flags": "runtimes: {flags: {image: i, command: [\"--x\"]}}"},
        })
    };
    let mut settings = settings.clone();
    let beside = match setting {
        "registry.configMap" => vec![registry("kaos-mcp-runtimes", "a:1"), registry("changed", "b:1")],
        "registry.key" => vec![registry("kaos-mcp-runtimes", "a:1")],
        "commandFlagsAsArgs" => {
            settings = schema::with(&settings, "registry.key", json!("flags"));
            vec![registry("kaos-mcp-runtimes", "a:1")]
        }
        _ => Vec::new(),
    };
    let subject = testing::subject(&object)
        .settings(&settings)
        .serves("gateway.networking.k8s.io/v1", "HTTPRoute")
        .serves("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy")
        .serves("networking.k8s.io/v1", "NetworkPolicy")
        .beside::<McpServer>(&beside)
        .build();
    testing::plan::<McpServer>(&subject).unwrap_or_else(|refused| panic!("{setting}: {refused:?}"))
}

#[test]
fn every_setting_changes_exactly_the_listed_places() {
    let mut settings = support::default_settings::<McpServer>();
    settings["gateway"] = json!({"enabled": true, "name": "g", "namespace": "gn", "timeout": "30s"});
    settings["telemetry"]["enabled"] = json!(true);
    settings["telemetry"]["endpoint"] = json!("http://o");
    let runtimes = json!({"python-string": {"image": "c:1", "paramsEnvVar": "MCP_TOOLS_STRING"}});
    let everywhere = "Deployment:/metadata/KEY Deployment:/spec/template/metadata/KEY Service:/metadata/KEY \
                      HTTPRoute:/metadata/KEY";
    let route = "HTTPRoute:/spec/rules/0";
    let mut rows = vec![
        row("registry.configMap", json!("changed"), "@/image"),
        row("registry.key", json!("changed"), "@/image"),
        row("runtimes", runtimes, "@/image"),
        row("commandFlagsAsArgs", json!(true), "@/command @/args"),
        row("packageImage", json!("p:1"), "@/image"),
        row("logLevel", json!("DEBUG"), "@/env/6/value"),
        row("imagePullPolicy", json!("Always"), "@/imagePullPolicy"),
        row(
            "containerPort",
            json!(9),
            "@/ports/0/containerPort @/livenessProbe/tcpSocket/port @/readinessProbe/tcpSocket/port \
             Service:/spec/ports/0/targetPort",
        ),
        row("servicePort", json!(9), &format!("Service:/spec/ports/0/port {route}/backendRefs/0/port")),
        row("portName", json!("web"), "@/ports/0/name Service:/spec/ports/0/name"),
        row("serviceType", json!("NodePort"), "Service:/spec/type"),
        row("resources", json!({"limits": {"cpu": "1"}}), "@/resources"),
        row("securityContext", json!({"runAsNonRoot": true}), "@/securityContext"),
        row("podSecurityContext", json!({"runAsNonRoot": true}), "Deployment:/spec/template/spec/securityContext"),
        row(
            "automountServiceAccountToken",
            json!(false),
            "Deployment:/spec/template/spec/automountServiceAccountToken",
        ),
        row("extraLabels", json!({"team": "x"}), &everywhere.replace("KEY", "labels/team")),
        row("extraAnnotations", json!({"team": "x"}), &everywhere.replace("KEY", "annotations")),
        row("gateway.enabled", json!(false), "HTTPRoute:"),
        row("gateway.name", json!("other"), "HTTPRoute:/spec/parentRefs/0/name"),
        row("gateway.namespace", json!("other"), "HTTPRoute:/spec/parentRefs/0/namespace"),
        row("gateway.timeout", json!("1m"), &format!("{route}/timeouts/request")),
        row("telemetry.enabled", json!(false), "@/env"),
        row("telemetry.endpoint", json!("http://x"), "@/env/3/value"),
        row("telemetry.excludedUrls", json!("/x"), "@/env/5/value"),
        // No manifest contains the finalizer. The plan names the finalizer, and the host adds it to the object.
        row("finalizer", json!("kaos.tools/mcpserver-finalizer"), ""),
    ];
    rows.extend(probe("livenessProbe", "livenessProbe", "tcpSocket"));
    rows.extend(probe("readinessProbe", "readinessProbe", "tcpSocket"));
    rows.extend(changes::security());
    changes::assert_each_changes_its_places::<McpServer>(&settings, &rows, plan);
}

#[test]
fn environment_variables_set_the_same_settings_as_in_kaos() {
    let fed: Vec<(String, String)> = schema::leaves(&support::schema::<McpServer>())
        .into_iter()
        .filter_map(|(path, leaf)| Some((path, leaf.get("x-env")?.as_str()?.to_owned())))
        .collect();
    let of = |path: &str, name: &str| (path.to_owned(), name.to_owned());
    let mut expected = vec![
        of("gateway.enabled", "GATEWAY_API_ENABLED"),
        of("gateway.name", "GATEWAY_NAME"),
        of("gateway.namespace", "GATEWAY_NAMESPACE"),
        of("gateway.timeout", "GATEWAY_DEFAULT_MCP_TIMEOUT"),
        of("logLevel", "DEFAULT_LOG_LEVEL"),
        of("security.pdp", "SECURITY_PDP_ENABLED"),
        of("security.authorizer", "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL"),
        of("security.agents.issuer", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER"),
        of("security.agents.jwks", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS"),
        of("security.agents.audience", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE"),
        of("security.users.issuer", "SECURITY_USER_AUTH_ISSUER"),
        of("security.users.audience", "SECURITY_USER_AUTH_AUDIENCE"),
        of("security.users.jwksUri", "SECURITY_USER_AUTH_JWKS_URI"),
        of("security.strict", "SECURITY_STRICT_GATEWAY_API_ENABLED"),
        of("security.networkPolicy.disabled", "SECURITY_NETWORK_POLICY_DISABLED"),
        of("security.networkPolicy.egress", "SECURITY_NETWORK_POLICY_EGRESS_ENABLED"),
        of("security.gatewayNamespace", "SECURITY_GATEWAY_NAMESPACE"),
        of("security.operatorNamespace", "SECURITY_OPERATOR_NAMESPACE"),
        of("telemetry.enabled", "DEFAULT_TELEMETRY_ENABLED"),
        of("telemetry.endpoint", "DEFAULT_TELEMETRY_ENDPOINT"),
    ];
    expected.sort();
    assert_eq!(fed, expected);
}

#[test]
fn the_plan_passes_the_finalizer_to_the_host() {
    let mut settings = support::default_settings::<McpServer>();
    assert_eq!(plan("finalizer", &settings).finalizer, None);
    settings["finalizer"] = json!("example.com/x");
    assert_eq!(plan("finalizer", &settings).finalizer.as_deref(), Some("example.com/x"));
}
