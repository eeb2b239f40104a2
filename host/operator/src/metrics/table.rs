//! The table of all metrics, from which the registry and the reference page are made.

use std::fmt::Write;

use prometheus_client::registry::{Metric, Registry, Unit};

/// The prefix of every name.
pub(super) const PREFIX: &str = "kaos_operator";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A counter: it only grows.
    Counter,
    /// A gauge: it goes up and down.
    Gauge,
    /// A histogram: it counts values by size.
    Histogram,
    /// Information in labels.
    Info,
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Excludes the prefix, the unit and the suffix of the type.
    pub(super) name: &'static str,
    /// The type.
    pub(super) kind: Kind,
    /// The unit, which becomes part of the name.
    pub(super) unit: Option<&'static str>,
    /// In the order of the output.
    pub(super) labels: &'static [&'static str],
    /// One sentence without a full stop, because the encoder adds it.
    pub(super) help: &'static str,
}

macro_rules! rows {
    ($($constant:ident: $kind:ident $name:literal $(in $unit:literal)? [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $constant: Row = Row {
            name: $name,
            kind: Kind::$kind,
            unit: rows!(@unit $($unit)?),
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All metrics.
        pub(super) const ROWS: &[Row] = &[$($constant),*];
    };
    (@unit) => { None };
    (@unit $unit:literal) => { Some($unit) };
}

rows! {
    BUILD: Info "build" ["version", "rust"] "What was built";
    LEADER: Gauge "leader" [] "1 while this process is the one that writes";
    EVERYWHERE: Gauge "everywhere" [] "1 while this process writes in all namespaces, and not in listed ones";
    PASSES: Counter "passes" ["group", "kind", "result"] "Passes over objects, by how they ended";
    PASS_DURATION: Histogram "pass_duration" in "seconds" ["group", "kind"] "Time of a pass, waiting for the API server included";
    RETRIES: Counter "retries" ["group", "kind"] "Passes that were put off and will be made again";
    OBJECTS: Gauge "objects" ["group", "kind", "ready"] "Objects that policies answer for, by their condition Ready";
    UNSERVED: Gauge "objects_unserved" ["group", "kind", "reason"] "Objects that are not served by what should serve them: NoPolicy where nothing answers, PolicyFailed where what answers fails, FellBack where what served before does";
    AWAITING_PASS: Gauge "objects_awaiting_policy" ["group", "kind"] "Objects whose last pass was made by a policy that has since been replaced";
    QUEUE_DEPTH: Gauge "queue_depth" [] "Objects that are due for a pass and have not got one";
    QUEUE_AGE: Gauge "queue_oldest_age" in "seconds" [] "How long the oldest of them has been due";
    POLICY: Gauge "policy_info" ["group", "kind", "policy", "version", "digest"] "1 for each layer of the policy that answers for a kind now";
    FUEL: Histogram "policy_fuel" ["policy", "version"] "Fuel that a policy burnt in a pass";
    POLICY_FAILURES: Counter "policy_failures" ["policy", "version", "reason"] "Passes that a policy failed: traps, exhausted limits, answers that the guard refused";
    POLICY_FALLBACKS: Counter "policy_fallbacks" ["policy", "version"] "Passes in which what served before answered, since a policy failed on the object or the API server refused what it planned";
    POLICY_REVISIONS: Gauge "policy_revisions" ["state", "current"] "Policy packages by their state; current are those that a ConfigMap holds now, and not what came before them";
    API_CALLS: Counter "api_calls" ["verb", "group", "resource", "code"] "Requests to the API server, by HTTP status code; timeout and unreachable stand for those without an answer";
    API_DURATION: Histogram "api_call_duration" in "seconds" ["verb"] "Time until the API server answered; watches until they were open";
    WATCH_STATE: Gauge "watch_state" ["group", "kind", "state"] "1 for the state that the watch on a type is in: unserved, forbidden, listing, synced or failing; namespaces in which nothing may be read, while something may be in others, do not count";
    WATCH_ERRORS: Counter "watch_errors" ["group", "kind", "reason"] "Watches that broke, with what the API server said";
    BARRED: Gauge "namespaces_barred" [] "Listed namespaces in which nothing may be read, while something may be in others: they are gone, or without rights for the operator";
    STORED: Gauge "stored_objects" ["group", "kind"] "Objects of a type that are kept in memory";
    STORED_SIZE: Gauge "stored" in "bytes" ["group", "kind"] "Size of the objects of a type that are kept in memory";
}

impl Row {
    /// The full name, as a scraper sees it.
    pub(super) fn full_name(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        let ending = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{PREFIX}_{}{unit}{ending}", self.name)
    }

    /// Adds the metric to a registry under this name.
    pub(super) fn register<M: Metric + Clone>(&self, registry: &mut Registry, metric: M) -> M {
        match self.unit {
            None => registry.register(self.name, self.help, metric.clone()),
            Some(unit) => {
                registry.register_with_unit(self.name, self.help, Unit::Other(unit.to_owned()), metric.clone());
            }
        }
        metric
    }
}

/// Returns the reference page.
pub fn reference() -> String {
    let mut page = String::from(concat!(
        "# Metrics\n\n",
        "Served as OpenMetrics text at `/metrics` (`--metrics-bind-address`, `:8080` unless set). `group` and `kind` name a ",
        "Kubernetes type; the core group is empty. Histograms have `_bucket`, `_sum` and `_count`.\n\n",
        "What a policy may lead to is counted from 0 on when it begins to answer. Series of requests and of broken watches ",
        "appear with their first event, so that `increase` does not count that one.\n\n",
        "Samples of a version of a policy are there for as long as it may have to answer, also as what served before ",
        "another, and until policies change the next time after that. One that comes back begins at 0.\n\n",
        "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n",
    ));
    for row in ROWS {
        let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
        let kind = format!("{:?}", row.kind).to_lowercase();
        // Writing to a String does not fail.
        let _ = writeln!(page, "| `{}` | {kind} | {} | {} |", row.full_name(), labels.join(", "), row.help);
    }
    page
}
