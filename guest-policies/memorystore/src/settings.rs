//! The settings of the kind `MemoryStore`: every value of a plan that does not come from the object.
//!
//! The values come only from the implementation of `Default`. A test generates `settings.schema.json` from this type.

use alloc::{borrow::ToOwned, string::String};

use kaos_policy_sdk::Decode;
use kaos_workload::security::SecuritySettings;
use kaos_workload::settings::{Gateway, Probe, PullPolicy, Raw, ServiceType, TelemetrySettings};
use kaos_workload::{Extra, PodDefaults, Rare};
#[cfg(feature = "schema")]
use {schemars::JsonSchema, serde::Serialize};

/// The settings.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// Image of stores that set no image.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), extend("x-env" = "DEFAULT_MEMORY_SERVICE_IMAGE")))]
    pub image: String,
    /// Pull policy of the image.
    pub image_pull_policy: PullPolicy,
    /// Port that stores listen on.
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
    /// Resources of stores that set no resources.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::resources"))]
    pub resources: Raw,
    /// Security context of the container.
    pub security_context: Raw,
    /// Security context of the pod.
    pub pod_security_context: Raw,
    /// Whether pods get a token. null selects Kubernetes' default.
    pub automount_service_account_token: Option<bool>,
    /// The volume of stores with local storage.
    pub volume: Volume,
    /// Minimum number of available pods while nodes are drained, for stores with two or more pods. 0 creates no
    /// PodDisruptionBudget.
    pub min_available: u16,
    /// Whether stores accept only requests for an identified user. If true, pods get `KAOS_MEMORY_REQUIRE_PRINCIPAL`.
    pub require_principal: bool,
    /// Whether stores accept only requests of an Agent with an identity. If true, pods get
    /// `KAOS_MEMORY_REQUIRE_AGENT_IDENTITY`.
    pub require_agent_identity: bool,
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
    /// Finalizer with which the operator deletes the children in order, for example `kaos.tools/memorystore-finalizer`.
    /// If empty, Kubernetes' garbage collector deletes the children.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::any_finalizer"))]
    pub finalizer: String,
}

/// The volume of stores with local storage.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Volume {
    /// Name of the volume.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::label_name"))]
    pub name: String,
    /// Mount directory of the volume.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::directory"))]
    pub mount_path: String,
    /// Access mode of volume claims.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^Read(WriteOnce|WriteMany|WriteOncePod)$")))]
    pub access_mode: String,
    /// StorageClass of volume claims. Empty selects the cluster's default. An existing volume claim keeps its class.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::any_object_name"))]
    pub storage_class: String,
    /// Whether volume claims stay when their store is deleted.
    pub keep: bool,
    /// Name of an existing volume claim to use. If empty, the store gets its own volume claim. Set this name only for a
    /// single object, in an annotation of the object.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::any_object_name"))]
    pub claim: String,
    /// Strategy with which the Deployment replaces a pod.
    pub strategy: Strategy,
}

/// Strategy with which the Deployment replaces a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Decode)]
#[cfg_attr(feature = "schema", derive(Serialize, JsonSchema))]
pub enum Strategy {
    /// The old pod stops first.
    Recreate,
    /// The new pod starts first. This is Kubernetes' default.
    RollingUpdate,
}

impl Default for Settings {
    fn default() -> Self {
        let probe = |path, delay, period| Probe { timeout_seconds: 5, ..Probe::http(path, delay, period) };
        Self {
            image: "axsauze/kaos-memory-service:0.4.8-dev".to_owned(),
            image_pull_policy: PullPolicy::IfNotPresent,
            container_port: 8080,
            service_port: 8080,
            port_name: "http".to_owned(),
            service_type: ServiceType::ClusterIP,
            liveness_probe: probe("/healthz", 10, 15),
            readiness_probe: probe("/readyz", 5, 10),
            resources: Raw::new(),
            security_context: Raw::new(),
            pod_security_context: Raw::new(),
            automount_service_account_token: None,
            volume: Volume {
                name: "data".to_owned(),
                mount_path: "/data/memory".to_owned(),
                access_mode: "ReadWriteOnce".to_owned(),
                storage_class: String::new(),
                keep: false,
                claim: String::new(),
                strategy: Strategy::Recreate,
            },
            min_available: 1,
            require_principal: false,
            require_agent_identity: false,
            extra_labels: Raw::new(),
            extra_annotations: Raw::new(),
            gateway: Gateway::off("30s"),
            security: Rare::default(),
            telemetry: TelemetrySettings::off("/health,/ready"),
            finalizer: String::new(),
        }
    }
}

impl Settings {
    /// Returns the labels and annotations for every child.
    pub(crate) fn extra(&self) -> Extra<'_> {
        Extra { labels: &self.extra_labels, annotations: &self.extra_annotations }
    }

    /// Returns the settings for pods.
    pub(crate) fn pod(&self) -> PodDefaults<'_> {
        PodDefaults {
            path: "settings",
            image: &self.image,
            image_pull_policy: self.image_pull_policy,
            container_port: self.container_port,
            port_name: &self.port_name,
            liveness_probe: &self.liveness_probe,
            readiness_probe: &self.readiness_probe,
            resources: &self.resources,
            security_context: &self.security_context,
            pod_security_context: &self.pod_security_context,
            automount_service_account_token: self.automount_service_account_token,
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
                ("gateway.timeout", "GATEWAY_DEFAULT_MEMORYSTORE_TIMEOUT"),
                ("security.agents.audience", "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE"),
            ],
            owned: &["security"],
            rare: &[("security", kaos_workload::schema::defaults::<SecuritySettings>())],
            // An object's annotations can change these settings. Do not list a setting that gives pods more rights: a
            // user who can write the object could grant these rights.
            annotations: &[
                "image",
                "imagePullPolicy",
                "containerPort",
                "servicePort",
                "portName",
                "livenessProbe",
                "readinessProbe",
                "resources",
                "volume",
                "minAvailable",
                "gateway.timeout",
                "telemetry",
            ],
        })
    }
}
