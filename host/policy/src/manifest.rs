//! `policy.yaml`: what whoever installs a policy says about it, beside the component.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;

use crate::{contract::ResourceType, digest::Digest, limits::Limits, yaml};

/// Stands in a grant for the namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "$(OPERATOR_NAMESPACE)";

/// Keys and values that the file may have. It is kept as long as it counts, and each of them takes up to some hundred
/// bytes of memory, whatever few it has as text.
const NODES: usize = 10_000;

/// `policy.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyFile {
    /// The policy's name; must be the one that it gives itself.
    pub name: Option<String>,
    /// The policy's version; must be the one that it gives itself.
    pub version: Option<String>,
    /// The component's digest; other bytes are refused.
    pub sha256: Option<Digest>,
    /// Where the policy holds.
    pub scope: Scope,
    /// Settings that come with it.
    pub settings: Value,
    /// Bounds of one pass; never above those that the operator allows.
    pub limits: Option<Limits>,
    /// What it may do beyond the object's own namespace and the user's own words.
    pub grants: Grants,
    /// What happens to an object that it refuses and that what served before takes.
    #[serde(skip_serializing_if = "OnRefusal::is_told")]
    pub on_refusal: OnRefusal,
}

/// What happens to an object that a policy refuses and that what served before takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnRefusal {
    /// It is refused: a refusal is an answer, and a stricter policy is a legitimate one.
    #[default]
    Tell,
    /// What served before goes on answering for it.
    Hold,
    /// The same, and it speaks against the policy as a failure does: one that several objects are refused by is put
    /// aside.
    RollBack,
}

impl OnRefusal {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
    fn is_told(&self) -> bool {
        *self == Self::Tell
    }
}

/// Where a policy holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Scope {
    /// These namespaces; with none listed, the whole cluster.
    pub namespaces: Vec<String>,
    /// Only objects that name it in their annotation `kaos.tools/policy`.
    pub pinned: bool,
}

/// What a policy may do beyond what any policy may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Grants {
    /// Objects outside the namespace of the object that it answers for.
    pub reads: Vec<ReadGrant>,
    /// Fields that it may set although the user did not write them.
    pub privileges: BTreeSet<Privilege>,
    /// Secrets that its pods may use although the user did not name them.
    pub secrets: BTreeSet<String>,
    /// PersistentVolumeClaims that its pods may mount although the user did not name them.
    pub persistent_volume_claims: BTreeSet<String>,
    /// Finalizers outside the group of the claimed kind that it may set or retire.
    pub finalizers: BTreeSet<String>,
}

/// Objects that a policy may read in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadGrant {
    /// Their API version.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// Their namespace, or [`OPERATOR_NAMESPACE`]; without one, cluster-scoped objects.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Their names.
    pub names: Vec<String>,
}

impl ReadGrant {
    /// The type that may be read.
    pub fn of(&self) -> ResourceType {
        ResourceType::new(&self.api_version, &self.kind)
    }
}

/// A field that gives more power over the node, the network or the API than a pod or Service has by itself.
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
    /// A seccomp or `AppArmor` profile `Unconfined`, as a field or as an annotation, or `SELinux` options.
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
    /// `serviceAccountName` other than `default` and those of the same plan, and Secrets that hold tokens.
    ServiceAccounts,
    /// `nodeName`
    NodeName,
    /// `priorityClassName`
    PriorityClass,
    /// `runtimeClassName`
    RuntimeClass,
    /// The host of a probe or of a lifecycle hook.
    ProbeHosts,
    /// Volumes of a type that reaches outside the namespace.
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
    /// A projected `serviceAccountToken` for an audience.
    TokenAudiences,
    /// Sources of a projected volume that reach outside the namespace: `podCertificate`, `clusterTrustBundle`.
    ProjectedSources,
}

impl fmt::Display for Privilege {
    /// As `policy.yaml` writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl PolicyFile {
    /// Reads the file; unknown fields are errors, since a grant that is misspelt must not look like one. A text comes to
    /// no more than stands in it: nothing is repeated by anchors and aliases.
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

/// What the parser says, with the field where a value is of another form than it takes; of what is ours to bound, what to
/// do.
fn told(error: &serde_saphyr::Error, place: &str) -> String {
    let (breach, location) = match error.without_snippet() {
        serde_saphyr::Error::Budget { breach, location } => (breach, location),
        serde_saphyr::Error::Unexpected { .. } if place != "." => return format!("{place}: {}", yaml::told(error, 0)),
        _ => return yaml::told(error, 0),
    };
    let why = match breach {
        BudgetBreach::Anchors { .. } => "an anchor (`&`): write what is repeated as often as it is meant".to_owned(),
        BudgetBreach::Nodes { .. } => format!(
            "more than {NODES} keys and values: settings are values, and long lists belong into ConfigMaps that a policy \
             reads"
        ),
        _ => return yaml::told(error, 0),
    };
    format!("line {}: {why}", location.line())
}

/// Why a policy file is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy.yaml is not usable: {0}")]
pub struct PolicyFileError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_a_policy_may_do() -> Result<(), PolicyFileError> {
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
    fn what_is_wrong_is_one_line_that_says_where() {
        let told = |text: &str| PolicyFile::parse(text).unwrap_err().to_string();
        assert_eq!(
            told("name: a\nname: b\n"),
            "policy.yaml is not usable: the field name is there twice at line 2, column 1"
        );
        assert_eq!(told("hello\n"), "policy.yaml is not usable: fields with values are expected at line 1, column 1");
        let list = told("name: a\nscope: {namespaces: team}\n");
        assert!(
            list.starts_with("policy.yaml is not usable: scope.namespaces: a list is expected: write [one, "),
            "{list}"
        );
        assert!(list.ends_with(" at line 2, column 21"), "{list}");
        let names = told("grants:\n  reads:\n  - {apiVersion: v1, kind: ConfigMap, names: sizes}\n");
        assert!(names.starts_with("policy.yaml is not usable: grants.reads[0].names: a list is expected"), "{names}");
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
        assert!(
            told(&repeated).starts_with("policy.yaml is not usable: line 3: an anchor (`&`): "),
            "{}",
            told(&repeated)
        );
        let list = |items: usize| format!("name: agent\nsettings: {{a: [{}]}}\n", "{k: 1},".repeat(items));
        assert!(PolicyFile::parse(&list(3_000)).is_ok());
        let many = told(&list(4_000));
        assert!(many.starts_with("policy.yaml is not usable: line 2: more than 10000 keys and values: "), "{many}");
    }
}
