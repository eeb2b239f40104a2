//! What an answer broke, told up to a number: a thousand breaches say no more than twenty, and cost more. Nor does one that
//! repeats a value of megabytes say more than one that is cut.

use std::fmt::Display;

use super::{Breach, Rule};
use crate::cut::{NOTE, cut};

/// Breaches that are told at once.
pub(super) const TOLD: usize = 20;

/// The breaches so far.
#[derive(Debug, Default)]
pub(super) struct Breaches(Vec<Breach>);

impl Breaches {
    /// Notes a breach. Texts are made only of those that are told.
    pub(super) fn add(&mut self, rule: Rule, path: impl Display, message: impl Display) {
        if !self.is_full() {
            let told = |text: String| cut(&text, NOTE).into_owned();
            self.0.push(Breach { rule, path: told(path.to_string()), message: told(message.to_string()) });
        }
    }

    /// Whether looking for more is work for nothing.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= TOLD
    }

    /// All of them.
    pub(super) fn into_vec(self) -> Vec<Breach> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_long_value_is_short() {
        let mut breaches = Breaches::default();
        breaches.add(Rule::ValidNames, "p".repeat(NOTE * 2), "m".repeat(4 << 20));
        let told = breaches.into_vec();
        assert!(told[0].path.len() <= NOTE && told[0].message.len() <= NOTE, "{told:?}");
    }
}
