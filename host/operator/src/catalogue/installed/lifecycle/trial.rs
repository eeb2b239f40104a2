//! The result of a trial of the operator's own ConfigMap.

use std::collections::BTreeSet;

use kaos_policy::settings::Layer;

use crate::catalogue::installed::revision_set::Unfit;

/// A content of the operator's own ConfigMap, the revisions that served when it was tried, and the reason if it does
/// not fit.
pub(super) struct Trial {
    pub(super) config: Option<Layer>,
    pub(super) serving: BTreeSet<String>,
    pub(super) unfit: Option<Unfit>,
}
