//! Standard output and standard error of the commands.

use std::{
    fmt::Display,
    io::{self, BufWriter, IsTerminal as _, Stdout, Write},
};

use kaos_policy::printable::{printable_json, printable_lines};
use serde::Serialize;

/// Buffered standard output.
#[derive(Debug)]
pub(super) struct Output(BufWriter<Heard<Stdout>>);

impl Output {
    /// Opens standard output.
    pub(super) fn stdout() -> Self {
        Self(BufWriter::with_capacity(64 * 1024, Heard::new(io::stdout())))
    }

    /// Writes text for people. Escapes control characters, because the text may come from an object or a policy.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(printable_lines(text).as_bytes())
    }

    /// Writes text of this program unchanged: a script, or YAML whose writer already escaped the control
    /// characters by the rules of YAML.
    pub(super) fn verbatim(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())
    }

    /// Writes a line of a log. On a terminal, escapes control characters, because a program in a pod wrote the line.
    pub(super) fn log(&mut self, line: &[u8]) -> io::Result<()> {
        if io::stdout().is_terminal() { self.text(&String::from_utf8_lossy(line)) } else { self.0.write_all(line) }
    }

    /// Writes a value as indented JSON with a final newline.
    pub(super) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        write_json(&mut self.0, value)?;
        self.text("\n")
    }

    /// Flushes the buffer.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(printable_json(&serde_json::to_string_pretty(value)?).as_bytes())
}

/// A writer for output that a reader can close early, such as `| head`. After the reader has closed the output, the
/// writer drops the rest, and the command's exit code does not change. The writer reports any other write error once.
#[derive(Debug)]
pub(super) struct Heard<W> {
    inner: W,
    ended: bool,
}

impl<W> Heard<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, ended: false }
    }

    /// Returns whether the writer now drops its output.
    #[cfg(feature = "demo")]
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the result `tried` of a write.
    ///
    /// If the write failed because the reader closed the output, returns `unheard`.
    fn heard<T>(&mut self, tried: io::Result<T>, unheard: T) -> io::Result<T> {
        let error = match tried {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => error,
            tried => return tried,
        };
        self.ended = true;
        match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(unheard),
            kind => Err(io::Error::new(kind, format!("standard output: {error}"))),
        }
    }
}

impl<W: Write> Write for Heard<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(bytes.len());
        }
        let tried = self.inner.write(bytes);
        self.heard(tried, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        let tried = self.inner.flush();
        self.heard(tried, ())
    }
}

/// Prints one message on standard error. Ignores errors, because there is no other channel on which to report them.
pub(super) fn complain(severity: &str, told: impl Display) {
    let _ = io::stderr().write_all(message(severity, &told.to_string()).as_bytes());
}

/// Formats a message. Indents all lines after the first, so that a line of a policy's text does not look like a message
/// of the program.
fn message(severity: &str, told: &str) -> String {
    format!("{severity}: {}\n", printable_lines(told.trim_end()).replace('\n', "\n    "))
}

/// Returns the width of the terminal on standard output in characters. Returns `None` without a terminal, or if the
/// width is unknown.
pub(super) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|_| io::stdout().is_terminal())?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that fails on every call.
    struct Shut(io::ErrorKind);

    impl Write for Shut {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_closed_output_is_no_error_and_a_failed_write_is_reported_once() {
        let mut unread = Heard::new(Shut(io::ErrorKind::BrokenPipe));
        assert!(unread.write_all(b"a").is_ok() && unread.flush().is_ok());
        let mut full = Heard::new(Shut(io::ErrorKind::StorageFull));
        let error = full.write_all(b"a").unwrap_err().to_string();
        assert!(error.starts_with("standard output: "), "{error}");
        assert!(full.write_all(b"b").is_ok() && full.flush().is_ok());
    }

    #[test]
    fn a_message_of_several_lines_cannot_look_like_several_messages() {
        let told = message("error", "a\u{1b}[2Jb\r\nerror: forged\n");
        assert_eq!(told, "error: a\\u{1b}[2Jb\\r\n    error: forged\n");
    }

    #[test]
    fn json_on_a_terminal_keeps_its_meaning_and_escapes_control_characters() {
        let mut bytes = Vec::new();
        write_json(&mut bytes, &"\u{9b}2J\u{202e}").unwrap();
        assert_eq!(bytes, br#""\u009b2J\u202e""#);
    }
}
