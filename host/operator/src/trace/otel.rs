//! Connects the spans of `tracing` with `OpenTelemetry`.

use std::collections::HashMap;

use opentelemetry::{propagation::TextMapPropagator as _, trace::TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use serde_json::Value;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::annotation::TRACEPARENT;

/// Connects a pass with the trace that the object's annotation names. The pass becomes a part of that trace if
/// `may_join` is true and the operator still works on the change. A later pass, such as a resync, has its own trace
/// with a link to that trace, so that the trace does not grow until someone deletes the object.
pub(super) fn connect(span: &Span, object: &Value, may_join: bool) {
    if span.is_disabled() {
        return;
    }
    let Some(parent) = object["metadata"]["annotations"][TRACEPARENT].as_str() else { return };
    let carrier = HashMap::from([(TRACEPARENT.to_owned(), parent.to_owned())]);
    let remote = TraceContextPropagator::new().extract(&carrier);
    let context = remote.span().span_context().clone();
    if !context.is_valid() {
        tracing::debug!(parent, "ignored the annotation traceparent, because it does not have the form of the W3C");
    } else if may_join && is_under_way(object) {
        // `set_parent` fails only if the span has already started, or if no layer receives it. Both are impossible
        // here.
        let _ = span.set_parent(remote);
    } else {
        span.add_link(context);
    }
}

/// Returns whether the operator still works on the last change of the object: the status describes an earlier
/// generation, or none of the conditions `Ready` and `Stalled` is true.
fn is_under_way(object: &Value) -> bool {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_true = |of: &str| conditions.iter().any(|each| each["type"] == of && each["status"] == "True");
    let has_ended = is_true("Ready") || is_true("Stalled");
    status["observedGeneration"] != object["metadata"]["generation"] || !has_ended
}

/// Returns the id of the trace to which a span belongs, if a collector receives the trace.
pub(super) fn trace_id(span: &Span) -> Option<String> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let span = context.span();
    let context = span.span_context();
    (context.is_valid() && context.is_sampled()).then(|| context.trace_id().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_under_way_until_the_object_is_ready_or_stalled() {
        let object = |observed: i64, condition: &str| {
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed,
                "conditions": [{"type": condition, "status": "True"}, {"type": "Other", "status": "True"}]}})
        };
        assert!(is_under_way(&json!({"metadata": {"generation": 1}})));
        assert!(is_under_way(&object(1, "Ready")), "the status belongs to the former generation");
        assert!(is_under_way(&object(2, "Reconciling")));
        assert!(!is_under_way(&object(2, "Ready")));
        assert!(!is_under_way(&object(2, "Stalled")));
    }
}
