//! Checks the state of the cluster after all changes.

use kaos_tests::harness::World;
pub(crate) use kaos_tests::harness::replicas::second_writers;
use kaos_tests::harness::requests::Sort;
pub(crate) use kaos_tests::harness::state::{State, differences, strays};

/// Returns the requests that the operator has sent although it should be idle.
pub(crate) fn noise(w: &World) -> Vec<String> {
    let sorts = [Sort::Write, Sort::Refused, Sort::DryRun, Sort::Event, Sort::Read, Sort::Discovery];
    let requests = sorts.into_iter().flat_map(|sort| w.requests(sort));
    requests
        .map(|entry| format!("although nothing has changed, the operator sent: {time} {entry}", time = entry.at))
        .collect()
}
