//! Collects the breaches of an answer, up to a limit. More breaches would not help the reader. This module shortens
//! paths and messages, because a value in them can have several megabytes.
//!
//! The plan of a policy contains the variables that its overlays set. So each breach has the number of the layer that
//! caused the breach. 0 is the layer whose plan the guard checks, and 1 is the lowest overlay.

use std::fmt::Display;

use super::{Breach, Rule};
use crate::cut::{NOTE, cut};

/// The maximum number of breaches that the guard reports for one answer.
pub(super) const TOLD: usize = 20;

/// The breaches found so far.
#[derive(Debug, Default)]
pub(super) struct Breaches(Vec<(usize, Breach)>);

impl Breaches {
    /// Adds a breach. Formats `path` and `message` only while the list is not full.
    pub(super) fn add(&mut self, rule: Rule, path: impl Display, message: impl Display) {
        self.add_of(0, rule, path, message);
    }

    /// Adds a breach that this layer caused.
    pub(super) fn add_of(&mut self, layer: usize, rule: Rule, path: impl Display, message: impl Display) {
        if !self.is_full() {
            let told = |text: String| cut(&text, NOTE).into_owned();
            self.0.push((layer, Breach { rule, path: told(path.to_string()), message: told(message.to_string()) }));
        }
    }

    /// Returns whether the list is full, so that the caller can stop searching.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= TOLD
    }

    /// Returns all breaches.
    pub(super) fn into_vec(self) -> Vec<Breach> {
        self.0.into_iter().map(|(_, breach)| breach).collect()
    }

    /// Returns the lowest layer that caused a breach, and its breaches. Returns `None` if there is no breach.
    pub(super) fn of_lowest(self) -> Option<(usize, Vec<Breach>)> {
        let lowest = self.0.iter().map(|(layer, _)| *layer).min()?;
        let its = self.0.into_iter().filter(|(layer, _)| *layer == lowest);
        Some((lowest, its.map(|(_, breach)| breach).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breach_about_a_long_value_is_cut() {
        let mut breaches = Breaches::default();
        breaches.add(Rule::ValidNames, "p".repeat(NOTE * 2), "m".repeat(4 << 20));
        let told = breaches.into_vec();
        assert!(told[0].path.len() <= NOTE && told[0].message.len() <= NOTE, "{told:?}");
    }
}
