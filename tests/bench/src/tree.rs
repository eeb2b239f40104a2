//! What a process and its children use, from `/proc`.

use std::fs;
use std::time::Duration;

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

/// A tick of the clock that `/proc` counts processor time with.
const TICK: Duration = Duration::from_millis(10);

/// Looks at a process; nothing if it is gone.
pub(crate) fn usage(process: u32) -> Option<Usage> {
    let peak = peak(process)?;
    let mut usage = Usage { processor: TICK * ticks(process)?, peak, peaks: peak };
    for child in below(process) {
        // One that ends meanwhile is counted by its parent the next time.
        let (Some(ticks), Some(peak)) = (ticks(child), self::peak(child)) else { continue };
        usage.processor += TICK * ticks;
        usage.peaks += peak;
    }
    Some(usage)
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

/// Its own processor time and that of children that ended and were waited for.
fn ticks(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    fields.get(11..15)?.iter().map(|field| field.parse::<u32>().ok()).sum()
}

fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}
