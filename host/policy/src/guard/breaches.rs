//! Collects the breaches of an answer, up to a limit. More breaches would not help the reader. This module shortens
//! paths and messages, so that a message does not repeat a value of several megabytes.

use std::fmt::Display;

use super::{Breach, Rule};
use crate::cut::{NOTE, cut};

/// The maximum number of breaches that are reported for one answer.
pub(super) const TOLD: usize = 20;

/// The breaches found so far.
#[derive(Debug, Default)]
pub(super) struct Breaches(Vec<Breach>);

impl Breaches {
    /// Adds a breach. Formats `path` and `message` only while the list is not full.
    pub(super) fn add(&mut self, rule: Rule, path: impl Display, message: impl Display) {
        if !self.is_full() {
            let told = |text: String| cut(&text, NOTE).into_owned();
            self.0.push(Breach { rule, path: told(path.to_string()), message: told(message.to_string()) });
        }
    }

    /// Returns whether the list is full, so that the caller can stop searching.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= TOLD
    }

    /// Returns all breaches.
    pub(super) fn into_vec(self) -> Vec<Breach> {
        self.0
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
