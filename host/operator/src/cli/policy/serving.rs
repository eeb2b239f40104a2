//! Reads which policies serve, for verbs that show objects. If the user lacks the right to read the policies in the
//! cluster, a verb uses the default policies.

use std::sync::Arc;

use kaos_policy::contract::Cluster;
use kube::Client;

use super::{
    answering::{Installed, PolicySet},
    connection::is_answered,
    in_force::standing,
    output::complain,
};
use crate::{
    catalogue::{Catalogue, Snapshot},
    error_text::with_causes,
    policies::Loader,
};

/// Returns the policies that serve. If the user lacks the right to read the installed policies, prints a note and
/// returns the default policies.
pub(in crate::cli) async fn serving(client: &Client, cluster: &Cluster) -> anyhow::Result<Arc<Snapshot>> {
    let loader = Loader::cached(cluster.clone())?.accepting_all();
    let (own, home) = (loader.load(&[])?, &cluster.operator_namespace);
    let policies = match standing(client, &loader, &own, home).await {
        Ok(policies) => policies,
        // The cluster has no CRD of PolicyRevisions, so no policy was ever installed.
        Err(error) if is_answered(&error, 404) => PolicySet::new(&own, Vec::new(), home)?,
        Err(error) if is_answered(&error, 403) => {
            let so = "only the default policies are known, so the output leaves out objects of other kinds, and the \
                      objects that they use";
            complain("note", format_args!("{}: {so}", with_causes(error.as_ref())));
            PolicySet::new(&own, Vec::new(), home)?
        }
        Err(error) => return Err(error),
    };
    let Installed { snapshot, .. } = policies.install(&Catalogue::default())?;
    Ok(snapshot)
}
