//! What a process and its children use, from `/proc`.

use std::fs;
use std::time::Duration;

use kaos_tests::usage;

/// What a process and all below it have used, and use.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Processor time, that of ended children among it.
    pub(crate) processor: Duration,
    /// Peak memory of the process itself, in bytes.
    pub(crate) peak: u64,
    /// Peaks of the process and of all below it that run now, together.
    pub(crate) peaks: u64,
}

/// Looks at a process; nothing if it is gone.
pub(crate) fn usage(process: u32) -> Option<Usage> {
    let peak = usage::peak(process)?;
    let mut used = Usage { processor: usage::processor(process)?, peak, peaks: peak };
    for child in below(process) {
        // One that ends meanwhile is counted by its parent the next time.
        let (Some(processor), Some(peak)) = (usage::processor(child), usage::peak(child)) else { continue };
        used.processor += processor;
        used.peaks += peak;
    }
    Some(used)
}

/// The processes below one.
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
