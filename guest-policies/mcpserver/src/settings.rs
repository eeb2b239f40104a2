//! The settings of the kind `MCPServer`: every value of a plan that does not come from the object.
//!
//! `Default` is the only source of the values. A test generates `settings.schema.json` from this type.

use alloc::{borrow::ToOwned, string::String};

use kaos_policy_sdk::{Decode, object};
use kaos_workload::Rare;
use kaos_workload::security::SecuritySettings;
use kaos_workload::settings::{Gateway, Probe, PullPolicy, Raw, ServiceType, TelemetrySettings};
use serde_json::Value;
#[cfg(feature = "schema")]
use {schemars::JsonSchema, serde::Serialize};

use crate::registry::RegistrySource;
#[cfg(feature = "schema")]
use crate::registry::Runtime;

/// The settings.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// The ConfigMap with the registry of runtimes.
    pub registry: RegistrySource,
    /// The runtimes to use if the cluster does not have the registry's ConfigMap.
    #[cfg_attr(feature = "schema", schemars(with = "alloc::collections::BTreeMap<String, Runtime>"))]
    pub runtimes: Raw,
    /// Whether a registry command that begins with a flag becomes arguments of the image's entrypoint, instead of
    /// replacing the entrypoint.
    pub command_flags_as_args: bool,
    /// Image for packages of the older fields `config.mcp` and `config.tools.fromPackage`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub package_image: String,
    /// Log level of servers that set no level, in the variable `LOG_LEVEL`.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "DEFAULT_LOG_LEVEL")))]
    pub log_level: String,
    /// Pull policy of images.
    pub image_pull_policy: PullPolicy,
    /// Port that servers listen on.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub container_port: u16,
    /// Port of the Service, and of the endpoint.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub service_port: u16,
    /// Name of the port, also in the Service.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::port_name"))]
    pub port_name: String,
    /// Type of the Service.
    pub service_type: ServiceType,
    /// Liveness probe.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::liveness"))]
    pub liveness_probe: Probe,
    /// Readiness probe.
    pub readiness_probe: Probe,
    /// Resources of servers that set no resources.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::resources"))]
    pub resources: Raw,
    /// Security context of every container.
    pub security_context: Raw,
    /// Security context of the pod.
    pub pod_security_context: Raw,
    /// Whether pods get a token. null selects Kubernetes' default.
    pub automount_service_account_token: Option<bool>,
    /// Additional labels of every child and pod.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::labels"))]
    pub extra_labels: Raw,
    /// Additional annotations of every child and pod.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::annotations"))]
    pub extra_annotations: Raw,
    /// The Gateway.
    pub gateway: Gateway,
    /// Protection at the Gateway and in the network.
    pub security: Rare<SecuritySettings>,
    /// Telemetry.
    pub telemetry: TelemetrySettings,
    /// Finalizer for a deletion of the children in order, for example `kaos.tools/mcpserver-finalizer`. If empty, Kubernetes
    /// deletes the children.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::any_finalizer"))]
    pub finalizer: String,
}

impl Default for Settings {
    fn default() -> Self {
        let liveness_probe = Probe { timeout_seconds: 3, ..Probe::tcp(20, 10) };
        let readiness_probe = Probe { timeout_seconds: 3, failure_threshold: 2, ..Probe::tcp(15, 5) };
        Self {
            registry: RegistrySource::default(),
            runtimes: runtimes(),
            command_flags_as_args: false,
            package_image: "python:3.12-slim".to_owned(),
            log_level: "INFO".to_owned(),
            image_pull_policy: PullPolicy::IfNotPresent,
            container_port: 8000,
            service_port: 8000,
            port_name: "http".to_owned(),
            service_type: ServiceType::ClusterIP,
            liveness_probe,
            readiness_probe,
            resources: Raw::new(),
            security_context: Raw::new(),
            pod_security_context: Raw::new(),
            automount_service_account_token: None,
            extra_labels: Raw::new(),
            extra_annotations: Raw::new(),
            gateway: Gateway::off("30s"),
            security: Rare::default(),
            telemetry: TelemetrySettings::off("/health,/ready"),
            finalizer: String::new(),
        }
    }
}

/// Returns the runtimes that KAOS's chart registers. If the `command` of a runtime in the chart is a list of flags, the
/// runtime gets these flags as `args`.
fn runtimes() -> Raw {
    let mut runtimes = Raw::new();
    let mut add = |name: &str, kind: &str, image: &str, field: &str, value: Value| {
        let mut runtime = object! { "type": kind, "image": image, "transport": "http" };
        runtime[field] = value;
        runtimes.insert(name.to_owned(), runtime);
    };
    add(
        "python-string",
        "python",
        "axsauze/kaos-mcp-python-string:v0.1.4-dev",
        "paramsEnvVar",
        "MCP_TOOLS_STRING".into(),
    );
    add("kubernetes", "go", "ghcr.io/manusa/kubernetes-mcp-server:latest", "args", ["--port", "8000"].into());
    let args = ["--transport", "http", "--port", "8000"].into();
    add("slack", "nodejs", "zencoderai/slack-mcp:latest", "args", args);
    runtimes["slack"]["requiredEnv"] = ["SLACK_BOT_TOKEN", "SLACK_TEAM_ID"].into();
    runtimes
}

#[cfg(feature = "schema")]
impl Settings {
    /// Generates the text of `settings.schema.json`.
    pub fn schema_text() -> String {
        kaos_workload::schema::text::<Self>(&kaos_workload::schema::Extras {
            env: &[
                ("gateway.timeout", "GATEWAY_DEFAULT_MCP_TIMEOUT"),
                ("security.agents.audience", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE"),
            ],
            owned: &["security"],
            rare: &[("security", kaos_workload::schema::defaults::<SecuritySettings>())],
            // An object's annotations can change these settings. Do not list a setting that gives pods more rights: a
            // user who can write the object could grant these rights.
            annotations: &[
                "commandFlagsAsArgs",
                "packageImage",
                "logLevel",
                "imagePullPolicy",
                "containerPort",
                "servicePort",
                "portName",
                "livenessProbe",
                "readinessProbe",
                "resources",
                "gateway.timeout",
                "telemetry",
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_tree_has_the_defaults_of_the_code() {
        let defaults = kaos_policy_sdk::testing::defaults(include_str!("../settings.schema.json"));
        let settings: Settings = kaos_policy_sdk::decode(&defaults).unwrap();
        assert_eq!(settings, Settings::default(), "write it again: cargo test -p kaos-mcpserver --features schema");
    }
}
