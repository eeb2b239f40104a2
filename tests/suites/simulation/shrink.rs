//! Finds the steps of a failed run that are necessary for the failure.

use std::collections::BTreeSet;

/// The maximum number of runs for one seed. A run takes about a second.
const RUNS: usize = 60;

/// Searches for a set of steps, as large as possible, without which the run still fails. Returns this set.
///
/// Tries to leave out half of the steps, then a quarter, and so on. `fails` runs the seed without some steps, and
/// returns whether that run fails.
pub(crate) fn superfluous(steps: usize, mut fails: impl FnMut(&BTreeSet<usize>) -> bool) -> BTreeSet<usize> {
    let mut without = BTreeSet::new();
    let (mut size, mut runs) = (steps.div_ceil(2), 0);
    while size > 0 {
        for first in (0..steps).step_by(size) {
            let more: BTreeSet<usize> = (first..(first + size).min(steps)).chain(without.iter().copied()).collect();
            if more.len() == without.len() {
                continue;
            }
            if runs == RUNS {
                return without;
            }
            runs += 1;
            if fails(&more) {
                without = more;
            }
        }
        size /= 2;
    }
    without
}

#[test]
fn only_the_steps_that_a_failure_needs_are_left() {
    let needed = BTreeSet::from([3, 17]);
    let mut runs = 0;
    let without = superfluous(28, |without| {
        runs += 1;
        needed.is_disjoint(without)
    });
    let left: BTreeSet<usize> = (0..28).filter(|step| !without.contains(step)).collect();
    assert_eq!(left, needed);
    assert!(runs <= RUNS, "{runs}");
    assert_eq!(superfluous(0, |_| true), BTreeSet::new());
    assert_eq!(superfluous(5, |_| false), BTreeSet::new());
}
