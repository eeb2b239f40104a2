//! Computes the effect of settings on all objects, before a user installs the settings. Compares plans as `policy plan`
//! does, and only reads from the cluster.

use std::collections::BTreeSet;

use anyhow::bail;
use jiff::Timestamp;
use kaos_policy::{
    contract::{Cluster, ResourceType, Target},
    kubernetes::Checks,
    manifest::PolicyFile,
    settings::Origin,
};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        answering::{PLANNED, Shipped},
        package_name::usual,
        serving::ServingPolicies,
        shipment::name_for,
    },
    planned::Planned,
    sides::Sides,
    summary::Summary,
    table::rows,
};
use crate::{
    catalogue::{Age, reach},
    live::Gathered,
    offline::Started,
    plan::{Difference, Said, Side, Unstored},
    policies::Loader,
};

/// The effect of settings on all objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct CandidateEffect {
    /// The numbers of changes, as sentences.
    pub(in crate::cli) summary: String,
    /// Object, child, field, and the values before and after. Equal changes of many objects share a row.
    pub(in crate::cli) rows: Vec<[String; 5]>,
    /// The objects that the policies would refuse or fail on only after the change, each with the message.
    pub(in crate::cli) problems: Vec<[String; 2]>,
}

/// Computes the effect of a `policy.yaml` with settings on the objects that `gathered` has. If the caller cancels the
/// token `stop`, the computation ends early with an error.
pub(in crate::cli) async fn candidate_effect(
    gathered: &mut Gathered,
    serving: &ServingPolicies,
    cluster: &Cluster,
    text: &str,
    stop: &CancellationToken,
) -> anyhow::Result<CandidateEffect> {
    let new = shipped(PolicyFile::parse(text)?, &cluster.operator_namespace)?;
    let loader = Loader::cached(cluster.clone())?.accepting_all();
    let sides = Sides::of(&serving.policies, new, &loader)?;
    let started = Started { cluster: cluster.clone(), grantable: None, checks: Checks::Values };
    let (_, wishes) = sides.looked_at();
    let wishes: BTreeSet<ResourceType> = wishes.into_iter().cloned().collect();
    for of in &wishes {
        gathered.serves(of).await?;
    }
    loop {
        let documents = gathered.documents();
        let (hidden, is_read) = (|of: &ResourceType| gathered.hidden(of), |target: &Target| gathered.has_read(target));
        let unstored = Unstored { hidden: &hidden, is_read: &is_read };
        let comparison = sides.compare_until(stop, &documents, &gathered.scopes(), &started, &unstored)?;
        // Repeat, because the objects from this round may have needs of their own.
        if !gathered.read(comparison.needs).await? {
            let Planned { objects, differences } = Planned::of(&sides, &documents, comparison.differences);
            let summary = Summary::of(objects, &differences).to_string();
            return Ok(CandidateEffect { summary, rows: rows(&differences), problems: problems(&differences) });
        }
    }
}

/// Returns the package that `policy push` would install for these settings.
fn shipped(file: PolicyFile, home: &str) -> anyhow::Result<Shipped> {
    let Some(policy) = &file.name else {
        bail!("name: missing: write the name of the policy whose settings these are")
    };
    if !file.settings.is_object() {
        bail!("settings: missing: write the policy's settings as YAML fields");
    }
    let scope: BTreeSet<String> = file.scope.namespaces.iter().cloned().collect();
    let name = name_for(&format!("{}-settings", usual(policy)), &scope);
    reach(&file, home, home)?;
    Ok(Shipped {
        revision: PLANNED.into(),
        age: Age::new(None, home.to_owned(), name.clone()),
        source: (home.to_owned(), name),
        policy: None,
        file,
        written_in: Some(Origin::File("the text".to_owned())),
        since: Some(Timestamp::MAX),
        predecessor: None,
        stage: None,
    })
}

fn problems(differences: &[Difference]) -> Vec<[String; 2]> {
    let said = |side: &Option<Side>| side.as_ref().map(|side| side.said.clone());
    let problem = |difference: &Difference| {
        let after = said(&difference.after).filter(|after| *after != Said::Planned)?;
        (said(&difference.before).as_ref() != Some(&after)).then(|| [difference.object.to_string(), after.to_string()])
    };
    differences.iter().filter_map(problem).collect()
}
