//! Reads the resource usage of a process from `/proc`.

use std::{fs, ops::Range, time::Duration};

/// The length of a tick. `/proc` counts processor time in ticks.
const TICK: Duration = Duration::from_millis(10);

/// Returns the processor time of a process without its children. Returns `None` if the process has ended.
pub fn own_processor(process: u32) -> Option<Duration> {
    ticks(process, 11..13)
}

/// Returns the processor time of a process and of its ended children. Returns `None` if the process has ended.
pub fn processor(process: u32) -> Option<Duration> {
    ticks(process, 11..15)
}

/// Returns the memory that a process occupies now, in bytes. Returns `None` if the process has ended.
pub fn resident(process: u32) -> Option<u64> {
    memory(process, "VmRSS:")
}

/// Returns the peak memory of a process in bytes. Returns `None` if the process has ended.
pub fn peak(process: u32) -> Option<u64> {
    memory(process, "VmHWM:")
}

/// Returns the running children of a process.
pub fn children(process: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// Returns the sum of the given fields of `/proc/PID/stat`, or `None` if the process has ended. Index 0 is the field
/// after the process name.
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
