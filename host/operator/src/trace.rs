//! The spans of a pass and of its steps. A collector of traces receives these spans; log lines do not show them.
//!
//! Without a collector no subscriber enables the spans, so they cost almost nothing.

#[cfg(feature = "otlp")]
mod otel;

use std::sync::OnceLock;

use serde_json::Value;
use tracing::{Span, field::Empty};

use crate::watch::ObjectKey;

/// The target of the spans. The layer for traces enables spans of this target only.
pub(crate) const TARGET: &str = "kaos_operator::steps";

/// Creates the span of a step.
macro_rules! step {
    ($($name_and_fields:tt)*) => { tracing::info_span!(target: $crate::trace::TARGET, $($name_and_fields)*) };
}
pub(crate) use step;

/// The trace of one pass.
#[derive(Debug, Default)]
pub(crate) struct PassTrace {
    /// The span of the pass. Not set if the pass waited, or had no object.
    span: OnceLock<Span>,
}

impl PassTrace {
    /// Starts the span of a pass. If the object's annotation `traceparent` names a trace, connects the pass to this
    /// trace. Adds the id of the trace to the log lines of the pass.
    pub(crate) fn start(&self, key: &ObjectKey, object: &Value) -> Span {
        let ObjectKey { of, namespace, name } = key;
        let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
        let (kind, namespace, name) = (&*of.kind, &**namespace, &**name);
        let span = step!("pass", kind, namespace, name, generation, result = Empty);
        #[cfg(feature = "otlp")]
        otel::connect(&span, object);
        if let Some(id) = id_of(&span) {
            Span::current().record("trace_id", id);
        }
        // The span is never set twice, because each pass has its own `PassTrace`.
        let _ = self.span.set(span.clone());
        span
    }

    /// Records the result of the pass in its span.
    pub(crate) fn ended(&self, result: &'static str) {
        if let Some(span) = self.span.get() {
            span.record("result", result);
        }
    }

    /// Returns the id of the trace. `None` if no collector receives the trace.
    pub(crate) fn id(&self) -> Option<String> {
        self.span.get().and_then(id_of)
    }
}

/// Returns the id of the trace to which a span belongs. `None` if no collector receives the trace.
pub(crate) fn id_of(span: &Span) -> Option<String> {
    #[cfg(feature = "otlp")]
    return otel::trace_id(span);
    #[cfg(not(feature = "otlp"))]
    {
        let _ = span;
        None
    }
}
