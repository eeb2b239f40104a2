//! Where log lines go and how they look.

use std::io;

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, fmt, layer::SubscriberExt as _, registry::LookupSpan, util::SubscriberInitExt as _,
};

use super::flags::{LogFormat, Run};

/// Logs that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    #[error("--log-level {text:?}: {source}")]
    Level { text: String, source: tracing_subscriber::filter::ParseError },
    #[error("logs cannot be set up: {0}")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Logs to standard error from now on.
pub(super) fn start(run: &Run) -> Result<(), LogError> {
    let filter =
        EnvFilter::try_new(&run.log_level).map_err(|source| LogError::Level { text: run.log_level.clone(), source })?;
    tracing_subscriber::registry().with(filter).with(lines(run.log_format)).try_init()?;
    Ok(())
}

fn lines<S: Subscriber + for<'a> LookupSpan<'a>>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync> {
    let lines = fmt::layer().with_writer(io::stderr);
    match format {
        LogFormat::Text => Box::new(lines.with_ansi(io::IsTerminal::is_terminal(&io::stderr()))),
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_span_list(false)),
    }
}
