//! AuthorizationPolicy: the rules and data of the gateway's decision point, made from the objects of several namespaces.

use alloc::{string::String, vec::Vec};
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use kube::CustomResource;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of an AuthorizationPolicy that has an effect. Only one object has an effect: the object with this name in
/// the operator's namespace.
pub const PROJECTION_NAME: &str = "kaos-authz";
/// The maximum number of namespaces in an AuthorizationPolicy. Each namespace adds several needs to a pass, and a pass
/// has a maximum number of needs.
pub const MAX_NAMESPACES: usize = 100;

/// The desired state of the AuthorizationPolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(CustomResource, JsonSchema))]
#[cfg_attr(
    feature = "schema",
    kube(
        group = "kaos.tools",
        version = "v1alpha1",
        kind = "AuthorizationPolicy",
        plural = "authorizationpolicies",
        singular = "authorizationpolicy",
        shortname = "authz",
        category = "kaos",
        namespaced,
        status = "crate::access::AccessStatus",
        doc = "AuthorizationPolicy writes the ConfigMap with the rules and the data of the gateway's decision point.",
        printcolumn(name = "ConfigMap", type_ = "string", json_path = ".spec.configMap"),
        printcolumn(name = "Data", type_ = "string", json_path = ".spec.dataSource"),
        printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy.version", priority = 1),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationPolicySpec {
    /// The namespaces whose Agents and AccessGrants the data includes.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_NAMESPACES)))]
    pub namespaces: Vec<String>,
    /// The ConfigMap of the decision point, in the same namespace, with the keys policy.rego and data.json.
    #[serde(default = "config_map")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub config_map: String,
    /// The author of data.json.
    #[serde(default)]
    pub data_source: DataSource,
    /// Whether the user writes policy.rego. If true, the operator leaves policy.rego as it is.
    #[serde(default)]
    pub rego_override: bool,
}

fn config_map() -> String {
    "kaos-authz-policy".into()
}

/// The author of data.json.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum DataSource {
    /// The operator writes data.json from the objects of the namespaces.
    #[default]
    Automated,
    /// The user writes data.json, and the operator leaves data.json as it is.
    Manual,
}
