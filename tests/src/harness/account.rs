//! The identity of an operator with limited rights: the chart's service account, with exactly the rights that
//! `kaos-operator rbac` prints.

use anyhow::Result;
use kaos_operator::operator::Options;
use kaos_operator::rbac::{Duties, Rights, manifests, rules};
use kaos_policy::policy::Policy;
use kube::Config;
use serde_json::json;

use super::World;
use super::scenario::SYSTEM;
use crate::control_plane::chart::Account;

/// The service account's name, as in [`super::faults::OPERATOR`].
const NAME: &str = "kaos-operator";

/// Grants the rights that an operator with these options needs. Returns a client configuration for the operator's
/// service account.
pub(super) async fn config(world: &World, admin: &Config, options: &Options) -> Result<Config> {
    grant(world, options).await?;
    let token = Account::new(SYSTEM, NAME).token(&world.client).await?;
    let mut own = admin.clone();
    own.auth_info = serde_json::from_value(json!({"token": token}))?;
    Ok(own)
}

/// Grants the rights that an operator with these options needs. Returns these rights.
async fn grant(world: &World, options: &Options) -> Result<Rights> {
    let duties = Duties {
        scope: options.namespaces.clone(),
        operator_namespace: options.operator_namespace.clone(),
        secrets: options.secrets,
        leader_election: false,
        namespace_policies: false,
        left_out: options.left_out.clone(),
        decision_point: options.decision_point.is_some(),
    };
    let policies = world.policies();
    let policies: Vec<&Policy> = policies.iter().map(|policy| &**policy).collect();
    let rights = rules(&policies, &duties);
    for object in manifests(&rights, &duties, NAME) {
        world.try_apply(&object).await?;
    }
    Ok(rights)
}

impl World {
    /// Restricts the operator to the rights that `kaos-operator rbac` prints, on the embedded cluster. Returns these
    /// rights.
    ///
    /// # Panics
    /// If the API server rejects the roles or bindings.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn grant_what_is_printed(&self) -> Rights {
        let granted = grant(self, &self.setting.options()).await;
        let rights = granted.unwrap_or_else(|error| panic!("the rights cannot be given: {error:#}"));
        self.embedded().authorise_by_rbac();
        rights
    }
}
