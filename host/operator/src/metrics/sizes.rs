//! A type for histograms with labels.

use prometheus_client::metrics::{family::Family, histogram::Histogram};

/// A histogram for each set of labels.
pub(super) type Sizes<S> = Family<S, Histogram, fn() -> Histogram>;
