//! Counts the changes that `policy plan` prints.

use std::fmt;

use crate::plan::{Counts, Difference, Effect, Fuel};

/// The numbers of changes that `policy plan` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    /// Objects that the package answers for, or that change.
    pub(super) objects: usize,
    /// Objects that change.
    pub(super) changed: u64,
    /// The number of workloads with pods that Kubernetes will replace.
    pub(super) rolls: u64,
    /// Objects that the policies refuse only after the change.
    pub(super) refused: u64,
    /// Objects on which the policy fails.
    pub(super) failed: u64,
    /// Objects that change only when their plan gates open.
    pub(super) waiting: u64,
    /// Fuel of a pass before and after the change.
    pub(super) fuel: (Fuel, Fuel),
}

impl Summary {
    /// Counts the differences.
    pub(super) fn of(objects: usize, differences: &[Difference]) -> Self {
        let effect = Effect::of(differences);
        let Counts { changed, rolls, refused, failing, waiting, .. } = effect.counts();
        Self { objects, changed, rolls, refused, failed: failing, waiting, fuel: effect.fuel().into() }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, changed, rolls, refused, failed, waiting, fuel: (before, after) } = self;
        if *changed == 0 {
            write!(f, "Nothing changes for {objects} objects.")?;
        } else {
            write!(f, "Objects that change: {changed} of {objects}. Workloads whose pods are replaced: {rolls}.")?;
        }
        if *refused > 0 {
            write!(f, " Objects that are newly refused: {refused}.")?;
        }
        if *failed > 0 {
            write!(f, " Objects that the policy fails on: {failed}.")?;
        }
        if *waiting > 0 {
            write!(f, " Objects that change when their plan gates open: {waiting}.")?;
        }
        write!(
            f,
            "\nFuel of a pass: {} -> {} (median), {} -> {} (most).",
            before.median, after.median, before.most, after.most
        )
    }
}
