//! What a process uses, from `/proc`.

use std::{fs, ops::Range, time::Duration};

/// A tick of the clock that `/proc` counts processor time with.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of a process itself; nothing if it is gone.
pub fn own_processor(process: u32) -> Option<Duration> {
    ticks(process, 11..13)
}

/// Its own processor time and that of children that ended and were waited for; nothing if it is gone.
pub fn processor(process: u32) -> Option<Duration> {
    ticks(process, 11..15)
}

/// Bytes of it that are in memory now; nothing if it is gone.
pub fn resident(process: u32) -> Option<u64> {
    memory(process, "VmRSS:")
}

/// The most bytes of it that ever were; nothing if it is gone.
pub fn peak(process: u32) -> Option<u64> {
    memory(process, "VmHWM:")
}

/// Processes that a process started and that still run.
pub fn children(process: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// The sum of some of the numbers that come after its name.
fn ticks(process: u32, fields: Range<usize>) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let all: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: Option<u32> = all.get(fields)?.iter().map(|field| field.parse::<u32>().ok()).sum();
    Some(TICK * ticks?)
}

fn memory(process: u32, of: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(of))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}
