//! Reads which policies serve, for commands that show objects. If the user lacks the right to read the policies in the
//! cluster, a command uses the default policies.

use std::sync::Arc;

use kube::Client;

use super::{
    answering::{Installed, PolicySet},
    connection::is_answered,
    facts::OperatorFacts,
    in_force::standing,
    output::complain,
};
use crate::{
    catalogue::{Catalogue, Snapshot},
    error_text::with_causes,
    policies::Loader,
};

/// The policies that serve in a cluster.
pub(in crate::cli) struct ServingPolicies {
    #[cfg(feature = "console")]
    pub(in crate::cli) policies: PolicySet,
    pub(in crate::cli) snapshot: Arc<Snapshot>,
    /// Why `snapshot` has only the default policies; `None` if `snapshot` has all policies.
    pub(in crate::cli) note: Option<String>,
}

/// Returns the policies that serve. If the user lacks the right to read the installed policies, prints a note and
/// returns the default policies.
pub(in crate::cli) async fn serving(client: &Client, operator: &OperatorFacts) -> anyhow::Result<Arc<Snapshot>> {
    let ServingPolicies { snapshot, note, .. } = serving_policies(client, operator, &Catalogue::default()).await?;
    if let Some(note) = note {
        complain("note", note);
    }
    Ok(snapshot)
}

/// Returns the policies that serve. If the user lacks the right to read the installed policies, returns the default
/// policies with a note. Installs the policies into `catalogue`. The catalogue keeps its entries for policies that did
/// not change.
pub(in crate::cli) async fn serving_policies(
    client: &Client,
    OperatorFacts { cluster, policies }: &OperatorFacts,
    catalogue: &Catalogue,
) -> anyhow::Result<ServingPolicies> {
    let loader = Loader::cached(cluster.clone())?.accepting_all();
    let (own, home) = (loader.load(policies)?, &cluster.operator_namespace);
    let (policies, note) = match standing(client, &loader, &own, home).await {
        Ok(policies) => (policies, None),
        // The cluster has no CRD of PolicyRevisions, so no policy was ever installed.
        Err(error) if is_answered(&error, 404) => (PolicySet::new(&own, Vec::new(), home)?, None),
        Err(error) if is_answered(&error, 403) => {
            let so = "only the default policies are known, so the output leaves out objects of other kinds, and the \
                      objects that they use";
            (PolicySet::new(&own, Vec::new(), home)?, Some(format!("{}: {so}", with_causes(error.as_ref()))))
        }
        Err(error) => return Err(error),
    };
    let Installed { snapshot, .. } = policies.install(catalogue)?;
    Ok(ServingPolicies {
        #[cfg(feature = "console")]
        policies,
        snapshot,
        note,
    })
}
