//! The answer of `policy explain` about an object, for the console.

use kaos_policy::{
    contract::{Cluster, Need},
    kubernetes::Checks,
};

use super::{explain::explained, origins, serving::ServingPolicies, variables};
use crate::{input::Identity, live::Gathered, offline::Started};

/// The explanation of one object. Each array contains the cells of one row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Explanation {
    /// One sentence for each policy and each settings package that determines the answer.
    pub(in crate::cli) because: Vec<String>,
    /// Type, status, reason and message of each condition.
    pub(in crate::cli) conditions: Vec<[String; 4]>,
    /// Target of each need, whether the pass found it, and the fields that the policy reads.
    pub(in crate::cli) inputs: Vec<[String; 3]>,
    /// Policy, setting, value and layer of each setting that is not a default of the schema.
    pub(in crate::cli) settings: Vec<[String; 4]>,
    /// Container, name, value and origin of each variable.
    pub(in crate::cli) variables: Vec<[String; 4]>,
    /// Child, path and origin of each value in the children.
    pub(in crate::cli) origins: Vec<[String; 3]>,
}

/// Explains the object `identity`, which `gathered` already has.
pub(in crate::cli) async fn explanation(
    gathered: &mut Gathered,
    serving: &ServingPolicies,
    cluster: &Cluster,
    identity: &Identity,
) -> anyhow::Result<Explanation> {
    let started = Started { cluster: cluster.clone(), grantable: None, checks: Checks::Values };
    let told = explained(gathered, &serving.policies, &serving.snapshot, &started, identity).await?;
    let condition = |condition: &serde_json::Value| {
        ["type", "status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default().to_owned())
    };
    let input = |(need, word): (&Need, &'static str)| {
        let fields = if need.fields.is_empty() { "all".to_owned() } else { need.fields.join(", ") };
        [told.need(need), word.to_owned(), fields]
    };
    Ok(Explanation {
        conditions: told.conditions().iter().map(condition).collect(),
        inputs: told.needs().into_iter().map(input).collect(),
        settings: told.settings(),
        variables: variables(&told.entry),
        origins: origins::rows(&told.entry),
        because: told.because,
    })
}
