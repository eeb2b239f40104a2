//! Metrics for tests, in the same text format as the operator's metrics.

use std::{collections::BTreeMap, fmt::Write as _, sync::Mutex, time::Duration};

use kaos_objects::ResourceType;

use crate::{
    locking::lock,
    metrics::{IoMetrics, Refresh, WatchState},
};

/// Stores all measurements.
#[derive(Default)]
pub(crate) struct Recorded {
    samples: Mutex<BTreeMap<String, usize>>,
    refreshers: Mutex<Vec<Refresh>>,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("recorded metrics")
    }
}

impl Recorded {
    /// Returns the metrics as text, with one line for each value.
    pub(crate) fn text(&self) -> String {
        for refresh in &*lock(&self.refreshers) {
            refresh(self);
        }
        let mut text = String::new();
        for (sample, value) in &*lock(&self.samples) {
            writeln!(text, "{sample} {value}").unwrap();
        }
        text
    }

    fn count(&self, sample: String) {
        *lock(&self.samples).entry(sample).or_default() += 1;
    }

    fn set(&self, sample: String, value: usize) {
        lock(&self.samples).insert(sample, value);
    }
}

fn labels(of: &ResourceType) -> String {
    format!(r#"group="{}",kind="{}""#, of.group(), of.kind)
}

impl IoMetrics for Recorded {
    fn api_call(&self, verb: &'static str, group: &str, resource: &str, code: &str, _: Duration) {
        self.count(format!(r#"api_calls_total{{verb="{verb}",group="{group}",resource="{resource}",code="{code}"}}"#));
    }

    fn watch(&self, of: &ResourceType, state: Option<WatchState>) {
        for each in WatchState::ALL {
            let sample = format!(r#"watch_state{{{},state="{}"}}"#, labels(of), each.label());
            match state {
                None => drop(lock(&self.samples).remove(&sample)),
                Some(state) => self.set(sample, usize::from(state == each)),
            }
        }
    }

    fn watch_error(&self, of: &ResourceType, reason: &str) {
        self.count(format!(r#"watch_errors_total{{{},reason="{reason}"}}"#, labels(of)));
    }

    fn barred(&self, namespaces: usize) {
        self.set("namespaces_barred".to_owned(), namespaces);
    }

    fn stored(&self, of: &ResourceType, objects: usize, bytes: usize) {
        self.set(format!("cached_objects{{{}}}", labels(of)), objects);
        self.set(format!("cached_object_bytes{{{}}}", labels(of)), bytes);
    }

    fn before_reading(&self, refresh: Refresh) {
        lock(&self.refreshers).push(refresh);
    }
}
