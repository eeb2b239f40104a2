//! The memory that a running process uses.

use std::fs;

/// Returns the number of bytes of memory that a process uses for its heap and its stacks, without the pages of its
/// program's file. On a system that does not show this number, the pages of files count, too. Returns `None` if the
/// process has ended, and on systems without `/proc`.
pub(super) fn memory(process: u32) -> Option<u64> {
    anonymous(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

/// Reads the memory from the text of `/proc/<process>/status`.
fn anonymous(status: &str) -> Option<u64> {
    let amount = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let amount = amount("RssAnon:").or_else(|| amount("VmRSS:"))?;
    Some(amount.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_program_do_not_count() {
        let status = "Name:\tkaos-operator\nVmRSS:\t   60592 kB\nRssAnon:\t   25436 kB\nRssFile:\t   34932 kB\n";
        assert_eq!(anonymous(status), Some(25436 << 10));
        assert_eq!(anonymous("VmRSS:\t   60592 kB\n"), Some(60592 << 10));
    }

    #[test]
    fn an_ended_process_uses_no_memory() {
        assert_eq!(anonymous("Name:\tkaos-operator\nState:\tZ (zombie)\n"), None);
        assert_eq!(memory(u32::MAX), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory() {
        assert!(memory(std::process::id()).is_some_and(|bytes| bytes > 0));
    }
}
