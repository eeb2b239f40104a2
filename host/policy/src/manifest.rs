//! `policy.yaml`: the declarations of the user who installs a policy. The file is next to the component.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;

use crate::{contract::ResourceType, digest::Digest, limits::Limits, rollout::Rollout, yaml};

/// The placeholder for the operator's namespace in a grant.
pub const OPERATOR_NAMESPACE: &str = "$(OPERATOR_NAMESPACE)";
/// The name in [`Grants::namespaces`] that means all namespaces.
pub const EVERY_NAMESPACE: &str = "*";

/// The maximum number of keys and values in the file. The operator keeps the parsed file in memory while it uses the
/// package. In memory, even a short key or value can take some hundred bytes.
const NODES: usize = 10_000;

/// The contents of `policy.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyFile {
    /// The policy's name, which must equal the name in the component's description.
    pub name: Option<String>,
    /// The policy's version, which must equal the version in the component's description.
    pub version: Option<String>,
    /// The component's digest. The gate refuses a component with another digest.
    pub sha256: Option<Digest>,
    /// The scope of the policy.
    pub scope: Scope,
    /// The settings of the package.
    pub settings: Value,
    /// The limits of one pass. The operator's own limits are the maximum.
    pub limits: Option<Limits>,
    /// Permissions for actions that the guard forbids otherwise.
    pub grants: Grants,
    /// How the operator handles an object that this policy refuses and that its predecessor accepts.
    #[serde(skip_serializing_if = "OnRefusal::is_told")]
    pub on_refusal: OnRefusal,
    /// The limits for the effect of the package, which the operator checks before the package serves, and the steps in
    /// which the package starts to serve.
    #[serde(skip_serializing_if = "Rollout::is_unset")]
    pub rollout: Rollout,
}

/// How the operator handles an object that a policy refuses and that the policy's predecessor accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnRefusal {
    /// The refusal applies: a refusal is an answer, and a policy can be stricter than its predecessor.
    #[default]
    Tell,
    /// The predecessor answers for the object as before.
    Hold,
    /// The predecessor answers for the object as before. The operator counts the refusal as a failure, so after
    /// refusals of several objects, the operator quarantines the policy.
    RollBack,
}

impl OnRefusal {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
    fn is_told(&self) -> bool {
        *self == Self::Tell
    }
}

/// The scope of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Scope {
    /// The namespaces. If empty, the scope is the whole cluster.
    pub namespaces: Vec<String>,
    /// Whether the policy answers only for objects that name it in their annotation `kaos.tools/policy`.
    pub pinned: bool,
}

/// Permissions for actions that the guard forbids to a policy by default. `policy.yaml` lists these permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Grants {
    /// Objects that the policy can read outside the namespace of the object for which it answers.
    pub reads: Vec<ReadGrant>,
    /// Namespaces in which the policy can read objects when it answers for an object in the operator's namespace. The
    /// policy can read objects of the types in its claim's `reads`, by name and by label, but no Secrets.
    /// [`EVERY_NAMESPACE`] means all namespaces.
    pub namespaces: BTreeSet<String>,
    /// Privileged fields that the policy can set although the user did not write them.
    pub privileges: BTreeSet<Privilege>,
    /// Secrets that the policy's pods can use although the user did not name them.
    pub secrets: BTreeSet<String>,
    /// PersistentVolumeClaims that the policy's pods can mount although the user did not name them.
    pub persistent_volume_claims: BTreeSet<String>,
    /// Finalizers outside the claimed kind's group that the policy can set.
    pub finalizers: BTreeSet<String>,
}

impl Grants {
    /// Returns whether the grants `other` include everything that these grants allow.
    pub fn is_within(&self, other: &Self) -> bool {
        let Self { reads, namespaces, privileges, secrets, persistent_volume_claims, finalizers } = self;
        reads.iter().all(|read| other.reads.contains(read))
            && namespaces.is_subset(&other.namespaces)
            && privileges.is_subset(&other.privileges)
            && secrets.is_subset(&other.secrets)
            && persistent_volume_claims.is_subset(&other.persistent_volume_claims)
            && finalizers.is_subset(&other.finalizers)
    }

    /// Returns whether the policy can read objects of `namespace` when it answers for an object in the operator's
    /// namespace.
    pub(crate) fn reads_namespace(&self, namespace: &str) -> bool {
        [namespace, EVERY_NAMESPACE].iter().any(|granted| self.namespaces.contains(*granted))
    }
}

/// Objects that a policy can read in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadGrant {
    /// The API version of the objects.
    pub api_version: String,
    /// The kind of the objects.
    pub kind: String,
    /// The namespace of the objects, or [`OPERATOR_NAMESPACE`]; `None` for cluster-scoped objects.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The names of the objects.
    pub names: Vec<String>,
}

impl ReadGrant {
    /// Returns the type of the objects.
    pub fn of(&self) -> ResourceType {
        ResourceType::new(&self.api_version, &self.kind)
    }
}

/// A group of fields that give a pod or a Service more power over the node, the network or the API than it has by
/// default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Privilege {
    /// `securityContext.privileged`
    Privileged,
    /// `securityContext.allowPrivilegeEscalation`
    AllowPrivilegeEscalation,
    /// `securityContext.capabilities.add`
    AddedCapabilities,
    /// `securityContext.procMount`
    ProcMount,
    /// A seccomp or `AppArmor` profile that is `Unconfined` or is a file of the node. The profile can be in a field or
    /// in an annotation. This privilege also covers `SELinux` options.
    Unconfined,
    /// `securityContext.sysctls`
    Sysctls,
    /// `hostNetwork`
    HostNetwork,
    /// `hostPID`
    #[serde(rename = "hostPID")]
    HostPid,
    /// `hostIPC`
    #[serde(rename = "hostIPC")]
    HostIpc,
    /// `ports[].hostPort`
    HostPorts,
    /// A volume `hostPath`
    HostPath,
    /// `windowsOptions.hostProcess`
    HostProcess,
    /// `serviceAccountName`, except `default` and ServiceAccounts of the same plan. This privilege also covers Secrets
    /// that hold tokens of ServiceAccounts, and Windows accounts (`gmsaCredentialSpecName`).
    ServiceAccounts,
    /// `nodeName`
    NodeName,
    /// `priorityClassName`
    PriorityClass,
    /// `runtimeClassName`
    RuntimeClass,
    /// The host of a probe or of a lifecycle hook.
    ProbeHosts,
    /// Volumes of a type that gives access to data outside the namespace.
    OtherVolumes,
    /// `externalIPs` and `externalName` of a Service.
    ExternalTraffic,
    /// Services of type `NodePort`.
    NodePorts,
    /// Services of type `LoadBalancer`.
    LoadBalancers,
    /// `volumeName` of a `PersistentVolumeClaim`.
    VolumeName,
    /// `resourceClaims` of a pod.
    ResourceClaims,
    /// A projected `serviceAccountToken` that names its own audience.
    TokenAudiences,
    /// Sources of projected volumes that give access to data outside the namespace: `podCertificate`,
    /// `clusterTrustBundle`.
    ProjectedSources,
}

impl fmt::Display for Privilege {
    /// Formats the privilege as `policy.yaml` spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl PolicyFile {
    /// Parses the file. Unknown fields are errors, because a misspelled grant must not go unnoticed. Anchors and
    /// aliases are errors, so that the parsed file is no larger than its text.
    pub fn parse(text: &str) -> Result<Self, PolicyFileError> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_anchors: 0, max_nodes: NODES },
        };
        let mut place = String::new();
        let parsed = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
            serde_path_to_error::deserialize(deserializer).map_err(|error| {
                place = error.path().to_string();
                error.into_inner()
            })
        });
        parsed.map_err(|error| PolicyFileError(told(&error, &place)))
    }
}

/// Formats a parser's error. If a value has the wrong form, adds the name of the value's field. If the text exceeds a
/// limit of this module, adds a remedy.
fn told(error: &serde_saphyr::Error, place: &str) -> String {
    let (breach, location) = match error.without_snippet() {
        serde_saphyr::Error::Budget { breach, location } => (breach, location),
        serde_saphyr::Error::Unexpected { .. } if place != "." => return format!("{place}: {}", yaml::told(error, 0)),
        _ => return yaml::told(error, 0),
    };
    let why = match breach {
        BudgetBreach::Anchors { .. } => "anchors (`&`) are not supported: write repeated values in full".to_owned(),
        BudgetBreach::Nodes { .. } => format!(
            "more than {NODES} keys and values: settings are for single values; put long lists into ConfigMaps that a policy reads"
        ),
        _ => return yaml::told(error, 0),
    };
    format!("line {}: {why}", location.line())
}

/// A reason why a policy file is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy.yaml is invalid: {0}")]
pub struct PolicyFileError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_file_contains_the_grants_of_the_policy() -> Result<(), PolicyFileError> {
        let file = PolicyFile::parse(concat!(
            "name: widget\nversion: 1.2.3\ngrants:\n  reads:\n",
            "  - {apiVersion: v1, kind: ConfigMap, namespace: $(OPERATOR_NAMESPACE), names: [sizes]}\n",
            "  privileges: [hostPath, hostPID, addedCapabilities]\n",
        ))?;
        assert_eq!(file.name.as_deref(), Some("widget"));
        assert_eq!(file.grants.reads[0].namespace.as_deref(), Some(OPERATOR_NAMESPACE));
        assert!(file.grants.privileges.contains(&Privilege::HostPid));
        assert_eq!(Privilege::HostPid.to_string(), "hostPID");
        Ok(())
    }

    #[test]
    fn an_error_is_one_line_with_its_place() {
        let told = |text: &str| PolicyFile::parse(text).unwrap_err().to_string();
        assert_eq!(
            told("name: a\nname: b\n"),
            "policy.yaml is invalid: the field name occurs twice at line 2, column 1"
        );
        assert_eq!(told("hello\n"), "policy.yaml is invalid: fields with values are expected at line 1, column 1");
        let list = told("name: a\nscope: {namespaces: team}\n");
        assert!(
            list.starts_with("policy.yaml is invalid: scope.namespaces: a list is expected: write [one, "),
            "{list}"
        );
        assert!(list.ends_with(" at line 2, column 21"), "{list}");
        let names = told("grants:\n  reads:\n  - {apiVersion: v1, kind: ConfigMap, names: sizes}\n");
        assert!(names.starts_with("policy.yaml is invalid: grants.reads[0].names: a list is expected"), "{names}");
    }

    #[test]
    fn a_misspelt_grant_is_an_error() {
        let error = PolicyFile::parse("grants: {privileges: [hostPaths]}").map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("hostPaths")));
        assert!(PolicyFile::parse("grant: {}").is_err());
    }

    #[test]
    fn a_small_file_does_not_become_a_large_one() {
        let told = |text: &str| PolicyFile::parse(text).unwrap_err().to_string();
        let repeated =
            format!("name: agent\nsettings:\n  a: &a [{}]\n  b: [{}]\n", "{k: 1},".repeat(100), "*a,".repeat(80));
        assert!(told(&repeated).starts_with("policy.yaml is invalid: line 3: anchors (`&`) "), "{}", told(&repeated));
        let list = |items: usize| format!("name: agent\nsettings: {{a: [{}]}}\n", "{k: 1},".repeat(items));
        assert!(PolicyFile::parse(&list(3_000)).is_ok());
        let many = told(&list(4_000));
        assert!(many.starts_with("policy.yaml is invalid: line 2: more than 10000 keys and values: "), "{many}");
    }
}
