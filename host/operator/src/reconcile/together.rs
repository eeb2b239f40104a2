//! Objects that are applied together: the first pods of one wait a moment for the others that it names, lest they start
//! without them and are rolled as soon as these are known.
//!
//! A gate is the policy's word and binds for as long as it stands. This is the host's, and is over after a moment: what is
//! named and never comes holds nothing up.

use std::time::Duration;

use kaos_policy::{
    contract::Target,
    lookup::{Lookup as _, Sighting},
    render::Rendered,
};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{context::Context, memory::Memory};

/// How long, at most. Clients send the objects of a file one after the other.
const MOMENT: Duration = Duration::from_secs(2);

impl Context {
    /// How long a first plan has to wait yet: while an object that it names, of a kind that policies answer for, is not
    /// there or had no pass.
    pub(super) fn awaits(&self, rendered: &Rendered, memory: &mut Memory) -> Option<Duration> {
        let catalogue = self.catalogue.load()?;
        let lookup = self.watch.lookup();
        let comes = |target: &Target| match target {
            Target::Named(named) if catalogue.of(&named.of()).is_some() => match lookup.look_up(target) {
                Sighting::Objects(found) => found.first().is_none_or(|object| had_no_pass(object)),
                Sighting::Secret(_) | Sighting::Unserved | Sighting::Forbidden(_) => false,
            },
            Target::Named(_) | Target::Labelled(_) => false,
        };
        if !rendered.needs.iter().any(|need| comes(&need.target)) {
            return None;
        }
        let since = memory.awaiting.get_or_insert_with(Instant::now);
        MOMENT.checked_sub(since.elapsed()).filter(|left| !left.is_zero())
    }
}

fn had_no_pass(object: &Value) -> bool {
    object["status"].as_object().is_none_or(Map::is_empty)
}
