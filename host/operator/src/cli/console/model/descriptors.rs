//! Finds how many watches this process can have. Each watch is a connection, and the system limits the open files of a
//! process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of open files that the console asks the system for. Some systems refuse more open files than this.
const WANTED: u64 = 10_240;
/// The number of open files that the console reserves for connections of browsers, for requests of pages, and for the
/// process itself.
const RESERVED: u64 = 200;
/// The maximum number of namespaces that the console watches one by one, even if the process may open more files.
const MOST: usize = 100;

/// Raises the limit for open files, as far as the system allows.
pub(super) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if current.is_some_and(|current| current < wanted) {
        // Ignore a refusal: with fewer files, the console watches fewer namespaces.
        let _refused = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Returns the number of namespaces in which the console can watch this number of types.
pub(super) fn most_namespaces(types: usize) -> usize {
    namespaces_within(getrlimit(Resource::Nofile).current.unwrap_or(WANTED), types)
}

fn namespaces_within(files: u64, types: usize) -> usize {
    let watches = usize::try_from(files.saturating_sub(RESERVED)).unwrap_or(usize::MAX);
    (watches / types.max(1)).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watches_of_all_namespaces_fit_the_limit_for_open_files() {
        for (files, namespaces) in [(0, 1), (256, 4), (1024, 63), (10_240, MOST), (u64::MAX, MOST)] {
            assert_eq!(namespaces_within(files, 13), namespaces, "{files}");
        }
    }
}
