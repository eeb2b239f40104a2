//! Records the progress of the script in memory, so that the host can find the line at which a sandbox ended.
//!
//! A sandbox that runs out of fuel or memory ends at once, and cannot report a line. QuickJS polls at each jump and
//! each call whether it must stop the script, and every 16th poll calls a function of this module. The function counts
//! its calls. After the end of the sandbox, the host reads the count from the memory. Then the host repeats the same
//! calls in a second sandbox, and the second sandbox stops the script at this count. QuickJS reports the line of a
//! stopped script.

use core::cell::Cell;

/// The record that the host searches for. All numbers are little-endian.
#[repr(C, align(16))]
struct Record {
    mark: [u8; 16],
    /// The number of calls of [`poll`].
    polls: Cell<u64>,
    /// The value of `polls` when the running function of the script began.
    polls_before: Cell<u64>,
    /// The line and the column of the running function of the script. Both are 0 while the script loads.
    line: Cell<u32>,
    column: Cell<u32>,
}

// SAFETY: the component has one thread.
unsafe impl Sync for Record {}

#[used]
static RECORD: Record = Record {
    mark: *b"kaos:script-poll",
    polls: Cell::new(0),
    polls_before: Cell::new(0),
    line: Cell::new(0),
    column: Cell::new(0),
};

/// Counts a call of this function, and returns the count.
pub(crate) fn poll() -> u64 {
    let polls = RECORD.polls.get().wrapping_add(1);
    RECORD.polls.set(polls);
    polls
}

/// Records that a function of the script starts, and the line and column of its definition.
pub(crate) fn begin((line, column): (u32, u32)) {
    RECORD.polls_before.set(RECORD.polls.get());
    RECORD.line.set(line);
    RECORD.column.set(column);
}
