//! Where log lines go and how they look; what else is told of is left to whoever brings a layer.

use std::io;

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, fmt, layer::SubscriberExt as _, registry::LookupSpan, util::SubscriberInitExt as _,
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

/// What else takes spans.
pub(super) type Beside = Box<dyn Layer<Registry> + Send + Sync>;

/// Logs to standard error from now on.
pub(super) fn start(run: &Run, beside: Option<Beside>) -> Result<(), LogError> {
    let filter =
        EnvFilter::try_new(&run.log_level).map_err(|source| LogError::Level { text: run.log_level.clone(), source })?;
    // What is not logged may be of interest beside it.
    tracing_subscriber::registry().with(beside).with(lines(run.log_format).with_filter(filter)).try_init()?;
    Ok(())
}

fn lines<S: Subscriber + for<'a> LookupSpan<'a>>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync> {
    let lines = fmt::layer().with_writer(io::stderr);
    match format {
        LogFormat::Text => Box::new(lines.with_ansi(io::IsTerminal::is_terminal(&io::stderr()))),
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_span_list(false)),
    }
}
