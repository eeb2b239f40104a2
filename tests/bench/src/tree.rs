//! Measures the resource usage of a process and its descendants, from `/proc`.

use std::fs;
use std::time::Duration;

use kaos_tests::usage;

/// The resource usage of a process and its descendants.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Processor time, including the processor time of ended children.
    pub(crate) processor: Duration,
    /// Peak memory of the process itself, in bytes.
    pub(crate) peak: u64,
    /// The sum of the peak memory of the process and of each running descendant, in bytes.
    pub(crate) peaks: u64,
}

/// Measures a process. Returns `None` if the process has ended.
pub(crate) fn usage(process: u32) -> Option<Usage> {
    let peak = usage::peak(process)?;
    let mut used = Usage { processor: usage::processor(process)?, peak, peaks: peak };
    for child in below(process) {
        // Skip a child that has just ended: from now on, its processor time counts as its parent's.
        let (Some(processor), Some(peak)) = (usage::processor(child), usage::peak(child)) else { continue };
        used.processor += processor;
        used.peaks += peak;
    }
    Some(used)
}

/// Returns the process IDs of all descendants.
pub(crate) fn below(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for thread in threads {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            found.push(child);
            found.extend(below(child));
        }
    }
    found
}
