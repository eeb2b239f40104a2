//! Sets up the destination and the format of log lines. The caller can pass a layer that also receives the spans, such
//! as the exporter of traces.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use kaos_policy::printable::{printable, printable_json};
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt as _, filter_fn},
    fmt,
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use super::flags::{LogFormat, Run};
use crate::trace;

/// The error if the logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    #[error("--log-level {text:?}: {source}")]
    Level { text: String, source: tracing_subscriber::filter::ParseError },
    #[error("logs cannot be set up: {0}")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// A further layer that receives spans.
pub(super) type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging to standard error.
pub(super) fn start(run: &Run, beside: Option<SpanLayer>) -> Result<(), LogError> {
    let filter =
        EnvFilter::try_new(&run.log_level).map_err(|source| LogError::Level { text: run.log_level.clone(), source })?;
    // The filters apply only to log lines: the layer `beside` receives all spans. Log lines do not show the spans of
    // the steps of a pass, because the span of the whole pass already names the object.
    let filter = filter.and(filter_fn(|metadata| metadata.target() != trace::TARGET));
    tracing_subscriber::registry().with(beside).with(lines(run.log_format).with_filter(filter)).try_init()?;
    Ok(())
}

fn lines<S: Subscriber + for<'a> LookupSpan<'a>>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync> {
    match format {
        LogFormat::Text => {
            let has_colours = io::IsTerminal::is_terminal(&io::stderr());
            let shown = if has_colours { coloured } else { printable };
            Box::new(
                fmt::layer().with_ansi(has_colours).with_writer(move || EscapedLines { inner: io::stderr(), shown }),
            )
        }
        LogFormat::Json => {
            let writer = || EscapedLines { inner: io::stderr(), shown: printable_json };
            Box::new(fmt::layer().with_writer(writer).json().flatten_event(true).with_span_list(false))
        }
    }
}

/// Writes log lines, and escapes control characters. An error may contain text of a policy or a server, and unescaped
/// text could forge a line or control the terminal.
struct EscapedLines<W> {
    inner: W,
    /// The function that escapes a line. The line has no line break.
    shown: fn(&str) -> Cow<'_, str>,
}

impl<W: Write> Write for EscapedLines<W> {
    /// Writes whole lines: the layer passes each line in one call.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        self.inner.write_all(format!("{}{end}", (self.shown)(line)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Escapes a line but keeps the layer's own colours. The layer already escaped the colour sequences in values.
fn coloured(line: &str) -> Cow<'_, str> {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        shown.push_str(&printable(before));
        let colour = after.find('m').filter(|end| after[..*end].bytes().all(|b| b.is_ascii_digit() || b == b';'));
        shown.push_str(if colour.is_some() { "\u{1b}[" } else { "\\u{1b}[" });
        let end = colour.map_or(0, |end| end + 1);
        shown.push_str(&after[..end]);
        rest = &after[end..];
    }
    shown.push_str(&printable(rest));
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &str, shown: fn(&str) -> Cow<'_, str>) -> String {
        let mut writer = EscapedLines { inner: Vec::new(), shown };
        writer.write_all(line.as_bytes()).unwrap();
        String::from_utf8(writer.inner).unwrap()
    }

    #[test]
    fn a_log_line_stays_one_line_without_control_characters() {
        let line = "INFO pass failed: a\u{1b}[2J\r\nINFO forged\u{202e}\n";
        assert_eq!(written(line, printable), "INFO pass failed: a\\u{1b}[2J\\r\\nINFO forged\\u{202e}\n");
    }

    #[test]
    fn colours_of_the_log_layer_stay_and_other_escapes_do_not() {
        let line = "\u{1b}[32mINFO\u{1b}[0m a\u{1b}[2J\nforged\n";
        assert_eq!(written(line, coloured), "\u{1b}[32mINFO\u{1b}[0m a\\u{1b}[2J\\nforged\n");
    }

    #[test]
    fn a_json_log_line_keeps_its_meaning_and_escapes_control_characters() {
        let line = serde_json::json!({"message": "a\u{9b}\u{202e}\r\n"}).to_string();
        let shown = written(&format!("{line}\n"), printable_json);
        assert_eq!(shown.trim_end(), r#"{"message":"a\u009b\u202e\r\n"}"#);
    }
}
