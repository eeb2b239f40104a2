//! Who operators are on a real cluster: the service account of the chart, with the rights that `kaos-operator rbac` gives it
//! and no others.

use anyhow::Result;
use kaos_operator::operator::Options;
use kaos_operator::rbac::{Duties, manifests, rules};
use kaos_policy::policy::Policy;
use kube::Config;
use serde_json::json;

use super::World;
use super::scenario::SYSTEM;
use crate::control_plane::chart::Account;

/// The service account's name, as it stands in [`super::faults::OPERATOR`].
const NAME: &str = "kaos-operator";

/// Gives the operator what it needs for these policies with these options, and the way to the API server as its own user.
pub(super) async fn config(world: &World, admin: &Config, options: &Options) -> Result<Config> {
    let duties = Duties {
        scope: options.namespaces.clone(),
        operator_namespace: options.operator_namespace.clone(),
        secrets: options.secrets,
        leader_election: false,
        namespace_policies: false,
    };
    let policies = world.policies();
    let policies: Vec<&Policy> = policies.iter().map(|policy| &**policy).collect();
    for object in manifests(&rules(&policies, &duties), &duties, NAME) {
        world.try_apply(&object).await?;
    }
    let token = Account::new(SYSTEM, NAME).token(&world.client).await?;
    let mut own = admin.clone();
    own.auth_info = serde_json::from_value(json!({"token": token}))?;
    Ok(own)
}
