//! Delays the first pods of an object for a short time, if other objects that it names are missing. A user probably
//! applies all these objects together. Without this wait, the pods would start without the named objects, and restart
//! as soon as these objects appear.
//!
//! A plan gate comes from the policy and has no time limit. This wait comes from the host and is short, so a missing
//! object does not delay pods for long.

use std::time::Duration;

use kaos_policy::{
    contract::Target,
    lookup::{Lookup as _, Sighting},
    render::Rendered,
};
use tokio::time::Instant;

use crate::{catalogue::Catalogue, reconcile::memory::Memory, status::is_unwritten, watch::Watch};

/// The maximum wait. It must be long enough for a client to send the objects of a file one after the other.
const STARTUP_GRACE: Duration = Duration::from_secs(2);

/// Returns the time for which a first plan must still wait, or `None` if it need not wait. The plan waits while an
/// object that a need names is missing or had no pass yet. This applies only to needed objects of kinds that a policy
/// answers for.
pub(crate) fn wait(catalogue: &Catalogue, watch: &Watch, rendered: &Rendered, memory: &mut Memory) -> Option<Duration> {
    let catalogue = catalogue.load()?;
    let lookup = watch.lookup();
    let comes = |target: &Target| match target {
        Target::Named(named) if catalogue.of(&named.of()).is_some() => match lookup.look_up(target) {
            Sighting::Objects(found) => found.first().is_none_or(|object| is_unwritten(&object["status"])),
            Sighting::Secret(_) | Sighting::Unserved | Sighting::Forbidden(_) => false,
        },
        Target::Named(_) | Target::Labelled(_) => false,
    };
    if !rendered.needs.iter().any(|need| comes(&need.target)) {
        return None;
    }
    let since = memory.plan.waits_since.get_or_insert_with(Instant::now);
    STARTUP_GRACE.checked_sub(since.elapsed()).filter(|left| !left.is_zero())
}
