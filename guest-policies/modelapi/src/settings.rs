//! The settings of the kind `ModelAPI`: every value of a plan that does not come from the object.
//!
//! The values come only from the implementation of `Default`. A test generates `settings.schema.json` from this type.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use kaos_policy_sdk::{Decode, json, object};
use kaos_workload::Rare;
use kaos_workload::security::SecuritySettings;
use kaos_workload::settings::{Gateway, Probe, PullPolicy, Raw, ServiceType, TelemetrySettings};
use serde_json::Value;
#[cfg(feature = "schema")]
use {schemars::JsonSchema, serde::Serialize};

/// The settings.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// The server of mode Proxy.
    pub proxy: Server,
    /// The configuration file of the proxy.
    pub proxy_config: ProxyConfigFile,
    /// The server of mode Hosted.
    pub hosted: Server,
    /// Command and arguments of the server of mode Hosted.
    pub hosted_run: HostedRun,
    /// The volume of the hosted model.
    pub model_store: ModelStore,
    /// The pull of the hosted model.
    pub model_pull: ModelPull,
    /// Log level of servers that set no level: `LITELLM_LOG` (proxy), `OLLAMA_DEBUG` (hosted).
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "DEFAULT_LOG_LEVEL")))]
    pub log_level: String,
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
    /// Telemetry of the proxy.
    pub telemetry: TelemetrySettings,
    /// Finalizer for a deletion of the children in order, for example `kaos.tools/modelapi-finalizer`. If empty, Kubernetes
    /// deletes the children.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::any_finalizer"))]
    pub finalizer: String,
}

/// Settings of one server: the proxy, or the server of a hosted model.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Server {
    /// The image.
    pub image: String,
    /// Pull policy of images.
    pub image_pull_policy: PullPolicy,
    /// Port that the server listens on.
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
}

/// Command and arguments of the server of mode Hosted.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostedRun {
    /// The command. An empty list selects the command of the image.
    pub command: Vec<String>,
    /// The arguments. An empty list selects the arguments of the image.
    pub args: Vec<String>,
}

/// The configuration file of the proxy, mounted from a ConfigMap or from the user's Secret.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProxyConfigFile {
    /// Directory of the configuration file.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::directory"))]
    pub mount_path: String,
    /// Name of the file.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::file_name"))]
    pub file_name: String,
    /// Name of the volume.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::label_name"))]
    pub volume_name: String,
    /// Whether the proxy drops parameters unknown to a provider.
    pub drop_params: bool,
    /// Name of LiteLLM's callback, if telemetry is enabled.
    pub telemetry_callback: String,
    /// Arguments after file and port.
    pub extra_args: Vec<String>,
    /// Whether LiteLLM 1.104 starts without a master key.
    pub without_master_key: bool,
    /// Older ModelAPIs do not get `withoutMasterKey`, unless their image names LiteLLM 1.104 or later.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^([-0-9]{10}T[:0-9]{8}Z)?$", "x-env" = "TAKEOVER_TIME")))]
    pub without_master_key_since: String,
}

/// The volume of the hosted model.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelStore {
    /// Directory of the volume.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::directory"))]
    pub mount_path: String,
    /// Name of the volume.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::label_name"))]
    pub volume_name: String,
    /// The source of the volume, as in a pod spec.
    pub source: Raw,
}

/// The init container that pulls the hosted model.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelPull {
    /// Whether pods have the init container that pulls the model.
    pub enabled: bool,
    /// Name of the init container.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::label_name"))]
    pub name: String,
    /// Image of the init container. Empty selects the server's image.
    pub image: String,
    /// Command that runs the script.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub command: Vec<String>,
    /// The script. `{model}` is the quoted name of the model. `{--}` is `--` if the name looks like an option.
    pub script: String,
}

impl Server {
    /// Returns the settings of a server whose probes send GET requests to `path`.
    fn of(image: &str, port: u16, path: &str) -> Self {
        let probe = |delay, period| Probe { timeout_seconds: 5, ..Probe::http(path, delay, period) };
        Self {
            image: image.to_owned(),
            image_pull_policy: PullPolicy::IfNotPresent,
            container_port: port,
            service_port: port,
            port_name: "http".to_owned(),
            service_type: ServiceType::ClusterIP,
            liveness_probe: probe(30, 10),
            readiness_probe: probe(15, 5),
            resources: Raw::new(),
            security_context: Raw::new(),
            pod_security_context: Raw::new(),
            automount_service_account_token: None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            proxy: Server::of("ghcr.io/berriai/litellm:main-stable", 8000, "/health/liveliness"),
            proxy_config: ProxyConfigFile {
                mount_path: "/etc/litellm".to_owned(),
                file_name: "config.yaml".to_owned(),
                volume_name: "litellm-config".to_owned(),
                drop_params: true,
                telemetry_callback: "otel".to_owned(),
                extra_args: Vec::new(),
                without_master_key: false,
                without_master_key_since: String::new(),
            },
            hosted: Server::of("alpine/ollama:latest", 11434, "/"),
            hosted_run: HostedRun { command: Vec::new(), args: Vec::new() },
            model_store: ModelStore {
                mount_path: "/root/.ollama".to_owned(),
                volume_name: "ollama-data".to_owned(),
                source: empty_dir(),
            },
            model_pull: ModelPull {
                enabled: true,
                name: "pull-model".to_owned(),
                image: String::new(),
                command: vec!["/bin/sh".to_owned(), "-c".to_owned()],
                script: "ollama serve & OLLAMA_PID=$! && sleep 5 && ollama pull {--}{model} && kill $OLLAMA_PID"
                    .to_owned(),
            },
            log_level: "INFO".to_owned(),
            extra_labels: Raw::new(),
            extra_annotations: Raw::new(),
            gateway: Gateway::off("120s"),
            security: Rare::default(),
            telemetry: TelemetrySettings::off("/health"),
            finalizer: String::new(),
        }
    }
}

fn empty_dir() -> Raw {
    let mut source = Raw::new();
    source.insert("emptyDir".to_owned(), Value::Object(Raw::new()));
    source
}

impl ModelStore {
    /// Returns the volume. A volume has one source in Kubernetes, but the merge of two settings layers can leave two
    /// sources. In this case, the default `emptyDir` gives way to the other source.
    pub(crate) fn volume(&self) -> Value {
        let mut volume = self.source.clone();
        let others = volume.iter().filter(|(name, source)| *name != "emptyDir" && !source.is_null()).count();
        json::keep(&mut volume, &|name, source| !source.is_null() && (others == 0 || name != "emptyDir"));
        volume.insert("name".to_owned(), self.volume_name.as_str().into());
        Value::Object(volume)
    }

    /// Returns the volume mount for a container.
    pub(crate) fn mount(&self) -> Value {
        object! { "name": self.volume_name.as_str(), "mountPath": self.mount_path.as_str() }
    }
}

#[cfg(feature = "schema")]
impl Settings {
    /// Generates the text of `settings.schema.json`.
    pub fn schema_text() -> String {
        kaos_workload::schema::text::<Self>(&kaos_workload::schema::Extras {
            env: &[
                ("proxy.image", "DEFAULT_LITELLM_IMAGE"),
                ("hosted.image", "DEFAULT_OLLAMA_IMAGE"),
                ("gateway.timeout", "GATEWAY_DEFAULT_MODELAPI_TIMEOUT"),
                ("security.agents.audience", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE"),
            ],
            owned: &["security"],
            rare: &[("security", kaos_workload::schema::defaults::<SecuritySettings>())],
            // An object's annotations can change these settings. Do not list a setting that gives pods more rights: a
            // user who can write the object could grant these rights.
            annotations: &[
                "proxy.image",
                "proxy.imagePullPolicy",
                "proxy.containerPort",
                "proxy.servicePort",
                "proxy.portName",
                "proxy.livenessProbe",
                "proxy.readinessProbe",
                "proxy.resources",
                "proxyConfig.mountPath",
                "proxyConfig.fileName",
                "proxyConfig.volumeName",
                "proxyConfig.dropParams",
                "proxyConfig.telemetryCallback",
                "proxyConfig.withoutMasterKey",
                "proxyConfig.withoutMasterKeySince",
                "hosted.image",
                "hosted.imagePullPolicy",
                "hosted.containerPort",
                "hosted.servicePort",
                "hosted.portName",
                "hosted.livenessProbe",
                "hosted.readinessProbe",
                "hosted.resources",
                "modelStore.mountPath",
                "modelStore.volumeName",
                "modelPull.enabled",
                "modelPull.image",
                "logLevel",
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
        assert_eq!(settings, Settings::default(), "write it again: cargo test -p kaos-modelapi --features schema");
    }
}
