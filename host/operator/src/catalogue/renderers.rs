//! Renderers of what answers, made anew when the served types change.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{
    contract::{Cluster, ResourceType},
    guard::UserPrivileges,
    kubernetes::Checks,
    manifest::Privilege,
    memo::Memo,
    render::Renderer,
    settings::SettingsErrors,
};

use super::{Kind, made::Made};
use crate::locking::lock;

/// The renderers in use.
pub(crate) struct Renderers {
    cluster: Cluster,
    user_privileges: UserPrivileges,
    grantable: Option<BTreeSet<Privilege>>,
    memo: Arc<Memo>,
}

impl Renderers {
    /// `cluster` without what is served, which changes while we run. `grantable` are the privileges that settings may
    /// raise which somebody installs, and `memo` is how many bytes of answers are kept.
    pub(crate) fn new(
        cluster: Cluster,
        user_privileges: UserPrivileges,
        grantable: Option<BTreeSet<Privilege>>,
        memo: usize,
    ) -> Self {
        Self { cluster, user_privileges, grantable, memo: Arc::new(Memo::new(memo)) }
    }

    /// The renderer for a kind.
    pub(crate) fn of(
        &self,
        kind: &Kind,
        is_served: impl Fn(&ResourceType) -> bool,
    ) -> Result<Arc<Renderer>, SettingsErrors> {
        let served = kind.served(is_served);
        let mut made = lock(&kind.made);
        if let Some(made) = made.as_ref().filter(|made| made.served == served) {
            return Ok(Arc::clone(&made.renderer));
        }
        let renderer = kind
            .renderer_on(&self.cluster, served.clone())?
            .with_memo(Arc::clone(&self.memo))
            .with_user_privileges(self.user_privileges)
            .with_grantable_privileges(self.grantable.clone())
            // The server may be newer and have fields that this program does not know: it says so itself.
            .with_checks(Checks::Values);
        let renderer = Arc::new(renderer);
        *made = Some(Made { served, renderer: Arc::clone(&renderer) });
        Ok(renderer)
    }
}
