//! Records in the catalogue's ledger which revisions answer for an object, and which it does without.

use kaos_policy::contract::Outcome;

use super::{applied::Applied, subject::Subject};
use crate::catalogue::{Catalogue, Descent, Without};

/// Records the result of a pass. An open dry run is neither service nor failure, so it is not recorded.
pub(crate) fn record(catalogue: &Catalogue, subject: &Subject<'_>, applied: &Applied) {
    if applied.is_open {
        return;
    }
    let Descent { kind, without, .. } = &subject.selected.descent;
    let is_served = matches!(applied.outcome, Outcome::Applied | Outcome::Gated);
    // If the predecessor does not serve the object either, the object proves nothing against the revision.
    let without: Vec<Without> =
        without.iter().map(|it| Without { counts: it.counts && is_served, ..it.clone() }).collect();
    catalogue.ledger().served(subject.key, kind.revisions(), &without);
}
