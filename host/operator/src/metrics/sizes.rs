//! A type for histograms with labels. Each bucket can have an exemplar: the id of the trace in which one of the
//! bucket's values was measured.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{exemplar::HistogramWithExemplars, family::Family},
};

/// The label set of an exemplar.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TraceLabels {
    trace_id: String,
}

impl From<String> for TraceLabels {
    fn from(trace_id: String) -> Self {
        Self { trace_id }
    }
}

/// A histogram.
pub(super) type Histogram = HistogramWithExemplars<TraceLabels>;

/// A histogram for each set of labels.
pub(super) type Sizes<S> = Family<S, Histogram, fn() -> Histogram>;
