//! What must hold when it is quiet.

use kaos_cluster::faults::Entry;
use kaos_tests::harness::World;
use kaos_tests::harness::faults::is_operator;
use kaos_tests::harness::requests::Sort;
pub(crate) use kaos_tests::harness::state::{State, differences, strays};

/// Writes of a replica after another had taken the Lease.
pub(crate) fn second_writers(entries: &[Entry]) -> Vec<String> {
    let mut holder = None;
    let mut wrong = Vec::new();
    for entry in entries.iter().filter(|entry| is_operator(&entry.attempt.user)) {
        let user = Some(entry.attempt.user.as_str());
        match Sort::of(entry) {
            Sort::Lease if entry.attempt.verb.is_write() && (200..300).contains(&entry.code) => holder = user,
            Sort::Write | Sort::Event if (200..300).contains(&entry.code) && holder != user => {
                wrong.push(format!("it was not the one that writes: {} {entry}", entry.at));
            }
            _ => {}
        }
    }
    wrong
}

/// Requests of an operator that has nothing to do.
pub(crate) fn noise(w: &World) -> Vec<String> {
    let sorts = [Sort::Write, Sort::Refused, Sort::DryRun, Sort::Event, Sort::Read, Sort::Discovery];
    let requests = sorts.into_iter().flat_map(|sort| w.requests(sort));
    requests.map(|entry| format!("nothing has changed, and yet: {} {entry}", entry.at)).collect()
}
