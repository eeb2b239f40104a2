//! Standard output and standard error of the verbs.

use std::{
    fmt::Display,
    io::{self, BufWriter, IsTerminal as _, Stdout, Write},
};

use serde::Serialize;

/// Buffered standard output. A reader that goes away (`| head`) is no error: see [`is_broken_pipe`].
#[derive(Debug)]
pub(super) struct Output(BufWriter<Stdout>);

impl Output {
    /// Standard output.
    pub(super) fn stdout() -> Self {
        Self(BufWriter::with_capacity(64 * 1024, io::stdout()))
    }

    /// Writes text as it is.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())
    }

    /// Writes a value as JSON for people and programs: indented, with a final newline.
    pub(super) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.0, value)?;
        self.text("\n")
    }

    /// Hands everything on.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// One message on standard error. Nothing can be done when even that fails.
pub(super) fn complain(severity: &str, message: impl Display) {
    let _ = writeln!(io::stderr(), "{severity}: {}", printable(&message.to_string()));
}

/// How many characters fit into a line of standard output; none where it is no terminal, or does not say.
pub(super) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|_| io::stdout().is_terminal())?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// A text without characters that a terminal would obey, or that hide what stands beside them: they may be an object's
/// or a policy's.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            // What joins, takes no room, or turns the direction of writing.
            '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => shown.extend(c.escape_unicode()),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether something failed because nobody reads our output any more.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_told_can_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{7}\u{9b}é\u{202e}\r\n c"), "a\\u{1b}[2Jb\\u{7}\\u{9b}é\\u{202e}\\r\n c");
    }
}
