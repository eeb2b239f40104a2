//! Counts the changes that `policy plan` prints.

use std::fmt;

use serde::Serialize;

use crate::plan::{Difference, Said, Side};

/// The numbers of changes that `policy plan` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Objects that the package answers for, or that change.
    pub(super) objects: usize,
    /// Objects that change.
    pub(super) changed: usize,
    /// The number of workloads with pods that Kubernetes will replace.
    pub(super) rolls: usize,
    /// Objects that are refused only after the change.
    pub(super) refused: usize,
    /// Objects on which the policy fails.
    pub(super) failed: usize,
    /// Fuel of a pass before and after the change.
    pub(super) fuel: (Fuel, Fuel),
}

/// The fuel that a pass takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Fuel {
    /// The median fuel of all objects.
    pub(super) median: u64,
    /// The maximum fuel of all objects.
    pub(super) most: u64,
}

impl Fuel {
    fn of(mut each: Vec<u64>) -> Self {
        each.sort_unstable();
        let at = |place: usize| each.get(place).copied().unwrap_or_default();
        Self { median: at(each.len() / 2), most: at(each.len().saturating_sub(1)) }
    }
}

impl Summary {
    /// Counts the differences.
    pub(super) fn of(objects: usize, differences: &[Difference]) -> Self {
        let sides = |side: fn(&Difference) -> &Option<Side>| {
            Fuel::of(
                differences.iter().filter_map(|difference| side(difference).as_ref().map(|side| side.fuel)).collect(),
            )
        };
        let refused = |side: &Option<Side>| matches!(side, Some(Side { said: Said::Refused(..), .. }));
        let failed = |side: &Option<Side>| matches!(side, Some(Side { said: Said::Failed(_), .. }));
        let count = |fits: &dyn Fn(&&Difference) -> bool| differences.iter().filter(fits).count();
        Self {
            objects,
            changed: count(&|difference| difference.is_change()),
            rolls: differences.iter().flat_map(|difference| &difference.children).filter(|child| child.rolls).count(),
            refused: count(&|difference| refused(&difference.after) && !refused(&difference.before)),
            failed: count(&|difference| failed(&difference.after)),
            fuel: (sides(|difference| &difference.before), sides(|difference| &difference.after)),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, changed, rolls, refused, failed, fuel: (before, after) } = self;
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
        write!(
            f,
            "\nFuel of a pass: {} -> {} (median), {} -> {} (most).",
            before.median, after.median, before.most, after.most
        )
    }
}
