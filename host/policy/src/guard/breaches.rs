//! What an answer broke, told up to a number: a thousand breaches say no more than twenty, and cost more.

use std::fmt::Display;

use super::{Breach, Rule};

/// Breaches that are told at once.
pub(super) const TOLD: usize = 20;

/// The breaches so far.
#[derive(Debug, Default)]
pub(super) struct Breaches(Vec<Breach>);

impl Breaches {
    /// Notes a breach. Texts are made only of those that are told.
    pub(super) fn add(&mut self, rule: Rule, path: impl Display, message: impl Display) {
        if !self.is_full() {
            self.0.push(Breach { rule, path: path.to_string(), message: message.to_string() });
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
