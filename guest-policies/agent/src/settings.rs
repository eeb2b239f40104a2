//! The settings of the kind `Agent`: every value of a plan that does not come from the object.
//!
//! `Default` is the only source of the values. A test generates `settings.schema.json` from this type.

use alloc::{borrow::ToOwned, string::String};

use kaos_policy_sdk::Decode;
use kaos_workload::security::SecuritySettings;
use kaos_workload::settings::{Gateway, Probe, PullPolicy, Raw, ServiceType, TelemetrySettings};
use kaos_workload::{Extra, LeftOut, PodDefaults, Rare};
use serde_json::Value;
#[cfg(feature = "schema")]
use {schemars::JsonSchema, serde::Serialize};

/// The settings.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// Image of agents that set no image.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), extend("x-env" = "DEFAULT_AGENT_IMAGE")))]
    pub image: String,
    /// Log level of agents that set no level, in the variable `LOG_LEVEL`.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "DEFAULT_LOG_LEVEL")))]
    pub log_level: String,
    /// Whether agents serve their memory for debugging.
    pub debug_memory_endpoints: bool,
    /// Pull policy of the image.
    pub image_pull_policy: PullPolicy,
    /// Port that agents listen on.
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
    /// Resources of agents that set no resources.
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
    /// Calls of agents through the Gateway.
    pub gateway_routing: Rare<RoutingSettings>,
    /// Telemetry.
    pub telemetry: TelemetrySettings,
    /// A ServiceAccount for each agent.
    pub service_account: AccountSettings,
    /// Coding harnesses.
    pub harness: HarnessSettings,
    /// Memory.
    pub memory: MemorySettings,
    /// The agents that get their identity in the variable `AGENT_IDENTITY`.
    pub agent_identity: AgentIdentity,
    /// The positions of users' variables among the policy's variables.
    pub user_variables: UserVariables,
    /// For each known image, the variables that some versions of the image ignore. For each variable, give the versions
    /// that read the variable: `0.4` for this version and newer versions, `<0.3` for older versions, or `never`. If an
    /// Agent asks for a variable that its image ignores, the policy adds a note. A name that ends in `*` stands for all
    /// names that begin with this text. You can leave out the registry in the name of an image. An entry for KAOS's
    /// image replaces the policy's own list for this image; an empty text turns these notes off.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::image_variables"))]
    pub image_variables: ImageVariables,
    /// Finalizer for a deletion of the children in order, for example `kaos.tools/agent-finalizer`. If empty, Kubernetes
    /// deletes the children.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::any_finalizer"))]
    pub finalizer: String,
}

/// Settings of agents that run in a coding harness.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HarnessSettings {
    /// ConfigMap in the operator's namespace. Its key `runtimes.yaml` lists the harnesses. The policy can read only
    /// this ConfigMap. To use another ConfigMap, add a grant in policy.yaml.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::object_name"))]
    pub registry: String,
    /// Image that clones the workspace.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub git_image: String,
    /// Branch of workspaces that set no branch.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub branch: String,
    /// Directory of the workspace.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::directory"))]
    pub workspace: String,
    /// Directory for the harness's own state.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::directory"))]
    pub state: String,
}

/// Settings of the `ServiceAccount` of each agent.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountSettings {
    /// Whether each agent gets a ServiceAccount of its own, and a token for `audience` as its only token.
    pub enabled: bool,
    /// Audience of the token. Required if `enabled` is true. Only settings for the cluster can set the audience,
    /// because the settings of a namespace must not raise privileges.
    pub audience: String,
    /// Lifetime of a token in seconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 600, max = 4_294_967_295_u32)))]
    pub expiration_seconds: u32,
    /// Path of the token's file. The directory of this file is a separate mount.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^/[^:]+/[-_a-zA-Z0-9][-._a-zA-Z0-9]*$")))]
    pub token_path: String,
}

/// The settings for direct calls, without the Gateway.
static DIRECT: RoutingSettings = RoutingSettings { enabled: false, host: String::new() };

impl LeftOut for RoutingSettings {
    fn left_out() -> &'static Self {
        &DIRECT
    }
}

/// Settings of calls through the Gateway.
#[derive(Clone, Debug, Default, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RoutingSettings {
    /// Whether agents call models, tools, peers and stores through the Gateway. `security.strict` does the same. A change
    /// restarts the pods of all agents.
    #[cfg_attr(feature = "schema", schemars(extend("x-env" = "SECURITY_GATEWAY_ROUTING_ENABLED")))]
    pub enabled: bool,
    /// Host of the Gateway, with its port unless the port is 80. Required if agents call through the Gateway: the
    /// policy cannot read the status of the Gateway.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::any_host", extend("x-env" = "SECURITY_GATEWAY_HOST")))]
    pub host: String,
}

/// Settings of memory.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemorySettings {
    /// Whether requests carry the identity of a user, so that agents can read a user's memories.
    pub user_identity: bool,
    /// Whether agents write memories only for an identified user. If true, pods get `MEMORY_REQUIRE_PRINCIPAL`.
    pub require_principal: bool,
    /// Whether agents write memories only with an identity. If true, pods get `MEMORY_REQUIRE_AGENT_IDENTITY`.
    pub require_agent_identity: bool,
    /// Local memory, without a store.
    pub local: LocalMemorySettings,
}

/// Settings of local memory, without a store.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LocalMemorySettings {
    /// Whether agents get the limits of local memory, in the variables `MEMORY_CONTEXT_LIMIT`, `MEMORY_MAX_SESSIONS`
    /// and `MEMORY_MAX_SESSION_EVENTS`.
    pub limits: bool,
    /// Whether agents without a scope also get `MEMORY_MAX_READ_SCOPE`.
    pub scope: bool,
}

/// The setting `imageVariables`. The module `ignored` decodes this setting itself, and only for an Agent that asks for
/// a variable. Other passes save the fuel for decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageVariables;

impl Decode for ImageVariables {
    fn decode(_: &Value) -> Result<Self, kaos_policy_sdk::DecodeError> {
        Ok(Self)
    }
}

#[cfg(feature = "schema")]
impl Serialize for ImageVariables {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Raw::new().serialize(serializer)
    }
}

/// The agents whose containers get the variable `AGENT_IDENTITY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum AgentIdentity {
    /// Agents with a store.
    Store,
    /// Agents with a memory block.
    Memory,
    /// All agents.
    Always,
}

/// The positions of users' variables among the policy's variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum UserVariables {
    /// Users' variables come after the instructions.
    Instructions,
    /// As in a strategic merge patch of Kubernetes: the policy's variables keep their order, and users' new variables
    /// come as early as possible.
    Merged,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image: "axsauze/kaos-agent:v0.1.4-dev".to_owned(),
            log_level: "INFO".to_owned(),
            debug_memory_endpoints: false,
            image_pull_policy: PullPolicy::IfNotPresent,
            container_port: 8000,
            service_port: 8000,
            port_name: "http".to_owned(),
            service_type: ServiceType::ClusterIP,
            liveness_probe: Probe::http("/health", 30, 10),
            readiness_probe: Probe::http("/ready", 10, 5),
            resources: Raw::new(),
            security_context: Raw::new(),
            pod_security_context: Raw::new(),
            automount_service_account_token: None,
            extra_labels: Raw::new(),
            extra_annotations: Raw::new(),
            gateway: Gateway::off("120s"),
            security: Rare::default(),
            gateway_routing: Rare::default(),
            telemetry: TelemetrySettings::off("/health,/ready"),
            harness: HarnessSettings {
                registry: "kaos-harness-runtimes".to_owned(),
                git_image: "alpine/git:2.45.2".to_owned(),
                branch: "main".to_owned(),
                workspace: "/workspace".to_owned(),
                state: "/state".to_owned(),
            },
            service_account: AccountSettings {
                enabled: false,
                audience: String::new(),
                expiration_seconds: 3600,
                token_path: "/var/run/secrets/kaos-agent/token".to_owned(),
            },
            memory: MemorySettings {
                user_identity: false,
                require_principal: false,
                require_agent_identity: false,
                local: LocalMemorySettings { limits: true, scope: false },
            },
            agent_identity: AgentIdentity::Store,
            user_variables: UserVariables::Instructions,
            image_variables: ImageVariables,
            finalizer: String::new(),
        }
    }
}

impl Settings {
    /// Returns the labels and annotations for every child.
    pub(crate) fn extra(&self) -> Extra<'_> {
        Extra { labels: &self.extra_labels, annotations: &self.extra_annotations }
    }

    /// Returns the audience of the tokens of agents.
    pub(crate) fn audience(&self) -> &str {
        let own = &self.security.agents.audience;
        if own.is_empty() { &self.service_account.audience } else { own }
    }

    /// Returns the settings for pods that run `image`.
    pub(crate) fn pod<'a>(&'a self, image: &'a str) -> PodDefaults<'a> {
        PodDefaults {
            path: "settings",
            image,
            image_pull_policy: self.image_pull_policy,
            container_port: self.container_port,
            port_name: &self.port_name,
            liveness_probe: &self.liveness_probe,
            readiness_probe: &self.readiness_probe,
            resources: &self.resources,
            security_context: &self.security_context,
            pod_security_context: &self.pod_security_context,
            automount_service_account_token: if self.service_account.enabled {
                Some(false)
            } else {
                self.automount_service_account_token
            },
            extra: self.extra(),
        }
    }
}

#[cfg(feature = "schema")]
impl Settings {
    /// Generates the text of `settings.schema.json`.
    pub fn schema_text() -> String {
        kaos_workload::schema::text::<Self>(&kaos_workload::schema::Extras {
            env: &[
                ("gateway.timeout", "GATEWAY_DEFAULT_AGENT_TIMEOUT"),
                ("serviceAccount.audience", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE"),
                ("serviceAccount.expirationSeconds", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_EXPIRATION_SECONDS"),
                ("serviceAccount.tokenPath", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_TOKEN_PATH"),
            ],
            owned: &["security", "gatewayRouting"],
            rare: &[
                ("security", kaos_workload::schema::defaults::<SecuritySettings>()),
                ("gatewayRouting", kaos_workload::schema::defaults::<RoutingSettings>()),
            ],
            // An object's annotations can change these settings. Do not list a setting that gives pods more rights: a
            // user who can write the object could grant these rights.
            annotations: &[
                "image",
                "logLevel",
                "debugMemoryEndpoints",
                "imagePullPolicy",
                "containerPort",
                "servicePort",
                "portName",
                "livenessProbe",
                "readinessProbe",
                "resources",
                "serviceAccount.enabled",
                "gateway.timeout",
                "telemetry",
            ],
        })
    }
}
