//! Records in the catalogue's ledger which revisions answer for an object, and which revisions the operator leaves out
//! because they fail on this object.

use kaos_policy::contract::Outcome;

use super::{applied::Applied, subject::Subject};
use crate::catalogue::{Catalogue, Descent, Without};

/// Records the result of a pass. Records nothing if the API server did not answer the dry run, because this is neither
/// a success nor a failure of the policy.
pub(crate) fn record(catalogue: &Catalogue, subject: &Subject<'_>, applied: &Applied) {
    if applied.is_open {
        return;
    }
    let Descent { kind, without, .. } = &subject.selected.descent;
    let is_served = matches!(applied.outcome, Outcome::Applied | Outcome::Gated);
    // Count a failure against a revision only if a fallback serves the object.
    let without: Vec<Without> =
        without.iter().map(|it| Without { counts: it.counts && is_served, ..it.clone() }).collect();
    catalogue.ledger().served(subject.key, kind.revisions(), &without);
}
