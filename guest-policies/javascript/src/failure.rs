//! Ends the sandbox with a message for the author of the script. The message has the form `policy.js:LINE:COLUMN:
//! problem: remedy`.

use kaos_policy_sdk::__tell_panic;

/// The maximum length of a message in characters. The record of the SDK's module `panics` has room for this length.
const ROOM: usize = 600;

/// Ends the sandbox. The host reads the message from the sandbox's memory.
pub(crate) fn fail(message: &str) -> ! {
    __tell_panic(&cut(message));
    core::arch::wasm32::unreachable()
}

/// Returns the message on one line, and cuts a message that is too long.
pub(crate) fn cut(message: &str) -> String {
    let mut line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(ROOM) {
        line.truncate(at);
        line.push('…');
    }
    line
}
