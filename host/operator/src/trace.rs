//! Trace spans for a pass and for its steps. Only a collector of traces receives these spans; log lines do not show
//! them.
//!
//! Without a collector, no `tracing` subscriber enables the spans, so they cost almost nothing.

mod annotation;
#[cfg(feature = "otlp")]
mod otel;

use std::{sync::OnceLock, time::Duration};

use serde_json::Value;
use tokio::time::Instant;
use tracing::{Span, field::Empty};

use self::annotation::TRACEPARENT;
use crate::{hashing::hash, watch::ObjectKey};

/// The `tracing` target of the spans. The layer that exports traces enables only spans of this target.
pub(crate) const TARGET: &str = "kaos_operator::steps";

/// Creates the span of a step.
macro_rules! step {
    ($($name_and_fields:tt)*) => { tracing::info_span!(target: $crate::trace::TARGET, $($name_and_fields)*) };
}
pub(crate) use step;

/// The maximum time for which passes join the trace of a change, because an object that never becomes ready must not
/// extend the trace for ever.
const JOINED_FOR: Duration = Duration::from_hours(1);

/// The last change of an object whose trace passes can join, and the time of the first pass after this change.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JoinedTrace(Option<(u64, Instant)>);

impl JoinedTrace {
    /// Returns whether a pass can join the trace that the object's annotation names. A new value of the annotation, or
    /// a new generation of the object, counts as a new change.
    pub(crate) fn is_open(&mut self, object: &Value, now: Instant) -> bool {
        let metadata = &object["metadata"];
        let Some(parent) = metadata["annotations"][TRACEPARENT].as_str() else {
            self.0 = None;
            return false;
        };
        let change = hash((parent, metadata["generation"].as_i64()));
        let known = self.0.filter(|(known, _)| *known == change);
        let (_, since) = *self.0.insert(known.unwrap_or((change, now)));
        now.duration_since(since) < JOINED_FOR
    }
}

/// The trace of one pass.
#[derive(Debug, Default)]
pub(crate) struct PassTrace {
    /// The span of the pass. There is no span if the pass ended early: it waited for lists or policies, or the object
    /// is gone.
    span: OnceLock<Span>,
}

impl PassTrace {
    /// Starts the span of a pass. If the object's annotation `traceparent` names a trace, connects the pass to this
    /// trace: the pass becomes a part of it if `may_join` is true and the operator still works on the change.
    /// Otherwise, the pass gets a trace of its own, with a link to the named trace. Adds the id of the pass's trace to
    /// the log lines of the pass.
    pub(crate) fn start(&self, key: &ObjectKey, object: &Value, may_join: bool) -> Span {
        let ObjectKey { of, namespace, name } = key;
        let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
        let (kind, namespace, name) = (&*of.kind, &**namespace, &**name);
        let span = step!("pass", kind, namespace, name, generation, result = Empty);
        #[cfg(feature = "otlp")]
        otel::connect(&span, object, may_join);
        #[cfg(not(feature = "otlp"))]
        let _ = may_join;
        if let Some(id) = id_of(&span) {
            Span::current().record("trace_id", id);
        }
        // Setting the span never fails, because each pass has its own `PassTrace`.
        let _ = self.span.set(span.clone());
        span
    }

    /// Records the result of the pass in its span.
    pub(crate) fn ended(&self, result: &'static str) {
        if let Some(span) = self.span.get() {
            span.record("result", result);
        }
    }

    /// Returns the id of the pass's trace. Returns `None` if no collector receives the trace.
    pub(crate) fn id(&self) -> Option<String> {
        self.span.get().and_then(id_of)
    }
}

/// Returns the id of the trace to which a span belongs. Returns `None` if no collector receives the trace.
pub(crate) fn id_of(span: &Span) -> Option<String> {
    #[cfg(feature = "otlp")]
    return otel::trace_id(span);
    #[cfg(not(feature = "otlp"))]
    {
        let _ = span;
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn passes_join_the_trace_of_a_change_for_a_bounded_time() {
        let object = |parent: &str, generation: i64| json!({"metadata": {"generation": generation, "annotations": {"traceparent": parent}}});
        let (mut joined, began) = (JoinedTrace::default(), Instant::now());
        let mut is_open = |object: &Value, after: Duration| joined.is_open(object, began + after);
        let (first, late) = (object("a", 1), JOINED_FOR + Duration::from_secs(1));
        assert!(is_open(&first, Duration::ZERO) && is_open(&first, JOINED_FOR / 2));
        assert!(!is_open(&first, JOINED_FOR) && !is_open(&first, late));
        assert!(is_open(&object("a", 2), late), "the user changed the spec");
        assert!(is_open(&object("b", 2), late), "the user changed the annotation");
        assert!(!is_open(&json!({"metadata": {}}), late));
    }
}
