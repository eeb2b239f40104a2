//! All inputs of the policies in one pass, in a form that a file can hold.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Rendered, Renderer, binding::Binding};
use crate::{
    contract::{Answer, Cluster, Need, ResourceType, SecretFacts},
    guard::UserPrivileges,
    kubernetes::Checks,
    limits::Limits,
    manifest::{Grants, Privilege},
    policy::PolicyId,
    settings::RecordedSettings,
};

/// The inputs of one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassInputs {
    /// The object as the policies saw it, without its status.
    pub object: Value,
    /// Whether the host ever applied a plan of the object in full.
    pub applied: bool,
    /// The facts about the cluster.
    pub cluster: Cluster,
    /// Whether the fields that a user writes can raise privileges.
    pub user_privileges: UserPrivileges,
    /// The privileges that settings of packages and of the operator's own ConfigMap can raise. `None` means all
    /// privileges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grantable: Option<BTreeSet<Privilege>>,
    /// The checks of manifests.
    pub checks: Checks,
    /// The policy, and then its overlays, the lowest first.
    pub layers: Vec<LayerInputs>,
}

/// The inputs of one layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerInputs {
    /// The policy of the layer.
    pub policy: PolicyId,
    /// The policy's grants.
    pub grants: Grants,
    /// The limits of the policy's passes.
    pub limits: Limits,
    /// The settings of the layer for this object.
    pub settings: RecordedSettings,
    /// The needs that the policy named, with their answers.
    pub needs: Vec<AnsweredNeed>,
}

/// A need with its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnsweredNeed {
    /// The need.
    #[serde(flatten)]
    pub need: Need,
    /// Whether the target's type is cluster-scoped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cluster_scoped: bool,
    /// The answer.
    pub answer: RecordedAnswer,
}

/// The answer to a need, with parsed objects. The objects have only the fields that the policy reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordedAnswer {
    /// The existing objects; empty if no object exists.
    Objects(Vec<Value>),
    /// Facts of a Secret, without its values.
    Secret(SecretFacts),
    /// The cluster does not serve the type.
    Unserved,
    /// The operator or the policy is not allowed to read the object.
    Forbidden(String),
}

impl From<&Answer> for RecordedAnswer {
    fn from(answer: &Answer) -> Self {
        match answer {
            Answer::Objects(texts) => {
                let parsed = |text: &String| serde_json::from_str(text).unwrap_or_default();
                Self::Objects(texts.iter().map(parsed).collect())
            }
            Answer::Secret(facts) => Self::Secret(facts.clone()),
            Answer::Unserved => Self::Unserved,
            Answer::Forbidden(reason) => Self::Forbidden(reason.clone()),
        }
    }
}

impl Renderer {
    /// Returns the inputs of a pass that this renderer made. Leaves out needs whose targets the policy is not allowed
    /// to see, because a repeated pass refuses these needs again.
    pub fn inputs(&self, rendered: &Rendered, is_cluster_scoped: impl Fn(&ResourceType) -> bool) -> PassInputs {
        let mut layers = Vec::new();
        for (at, ((policy, _), settings)) in self.layers().zip(&rendered.settings).enumerate() {
            // If a pass ended early, the host asked only some of the layers.
            let found = match at.checked_sub(1) {
                None => rendered.subject.found.as_slice(),
                Some(overlay) => rendered.overlay_found.get(overlay).map_or(&[][..], Vec::as_slice),
            };
            let prefix = format!("{}/", policy.id().name);
            let answered = |need: &Need| {
                let id = need.id.strip_prefix(&prefix)?;
                let answer = RecordedAnswer::from(&found.iter().find(|found| found.id == id)?.answer);
                let cluster_scoped = is_cluster_scoped(&need.target.of());
                Some(AnsweredNeed { need: Need { id: id.to_owned(), ..need.clone() }, cluster_scoped, answer })
            };
            layers.push(LayerInputs {
                policy: policy.id().clone(),
                grants: policy.grants().clone(),
                limits: *policy.limits(),
                settings: RecordedSettings::of(settings),
                needs: rendered.needs.iter().filter_map(answered).collect(),
            });
        }
        let Binding { cluster, user_privileges, grantable, checks, .. } = &self.0;
        PassInputs {
            object: serde_json::from_str(&rendered.subject.object).unwrap_or_default(),
            applied: rendered.subject.applied,
            cluster: cluster.clone(),
            user_privileges: *user_privileges,
            grantable: grantable.clone(),
            checks: *checks,
            layers,
        }
    }
}
