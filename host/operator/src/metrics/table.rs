//! The table of all metrics. The registry and the reference page are generated from this table.

use std::fmt::Write;

use prometheus_client::registry::{Metric, Registry, Unit};

/// The prefix of every metric name.
pub(super) const PREFIX: &str = "kaos_operator";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// A counter: its value only grows.
    Counter,
    /// A gauge: its value goes up and down.
    Gauge,
    /// A histogram: it counts observed values in buckets by size.
    Histogram,
    /// A constant value 1 that exists only for the information in its labels.
    Info,
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct MetricRow {
    /// The name without the prefix, the unit and the suffix of the type.
    pub(super) name: &'static str,
    /// The type.
    pub(super) kind: MetricKind,
    /// The unit, which becomes part of the name.
    pub(super) unit: Option<&'static str>,
    /// The labels, in the order of the output.
    pub(super) labels: &'static [&'static str],
    /// The help text: one sentence without a full stop, because the encoder adds the full stop.
    pub(super) help: &'static str,
}

macro_rules! rows {
    ($($constant:ident: $kind:ident $name:literal $(in $unit:literal)? [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $constant: MetricRow = MetricRow {
            name: $name,
            kind: MetricKind::$kind,
            unit: rows!(@unit $($unit)?),
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All metrics.
        pub(super) const ROWS: &[MetricRow] = &[$($constant),*];
    };
    (@unit) => { None };
    (@unit $unit:literal) => { Some($unit) };
}

rows! {
    BUILD: Info "build" ["version", "rust"] "Build of the operator; always 1";
    LEADER: Gauge "leader" [] "1 while this process is allowed to write, 0 while it stands by";
    EVERYWHERE: Gauge "everywhere" [] "1 while this process is allowed to write and works in all namespaces, 0 if it works \
        in listed namespaces";
    PASSES: Counter "passes" ["group", "kind", "result"] "Passes over objects, by result";
    PASS_DURATION: Histogram "pass_duration" in "seconds" ["group", "kind"] "Duration of a pass, including waits for \
        the API server";
    RETRIES: Counter "retries" ["group", "kind"] "Passes that the operator postponed and will repeat";
    OBJECTS: Gauge "objects" ["group", "kind", "ready"] "Objects that policies answer for, by their condition Ready";
    UNSERVED: Gauge "objects_unserved" ["group", "kind", "reason"] "Objects that the active policy does not serve: NoPolicy if no policy answers, PolicyFailed if the policy fails, FellBack if a fallback answers";
    AWAITING_PASS: Gauge "objects_awaiting_policy" ["group", "kind"] "Objects whose last pass used a policy that has since been replaced";
    QUEUE_DEPTH: Gauge "queue_depth" [] "Objects that are due for a pass and wait for it";
    QUEUE_AGE: Gauge "queue_oldest_age" in "seconds" [] "Time for which the longest-waiting object has been due for a pass";
    POLICY: Gauge "policy_info" ["group", "kind", "policy", "version", "digest"] "1 for each policy and overlay that answers for a kind";
    FUEL: Histogram "policy_fuel" ["policy", "version"] "Fuel that a policy used in a pass";
    POLICY_ANSWERS: Counter "policy_answers" ["policy", "version", "remembered"] "Answers of a policy in passes; `remembered` is true if the operator returned the answer to an equal question without a call of the policy";
    POLICY_CALL_DURATION: Histogram "policy_call_duration" in "seconds" ["policy", "version", "verb"] "Duration of a call of a policy in a pass, by the function of the contract";
    POLICY_FAILURES: Counter "policy_failures" ["policy", "version", "reason"] "Passes in which a policy failed: traps, exhausted limits, answers that the guard refused";
    POLICY_FALLBACKS: Counter "policy_fallbacks" ["policy", "version"] "Passes in which a fallback answered, because the policy failed on the object or the API server refused a planned child";
    NAMESPACE_FUEL: Gauge "namespace_fuel" ["group", "kind", "object_namespace"] "Fuel that the policies used for the objects \
        of a kind in a namespace in the last minute; only the 20 samples with the most fuel";
    NAMESPACE_PASSES: Gauge "namespace_passes" ["group", "kind", "object_namespace"] "Passes over the objects of a kind in a \
        namespace in the last minute; only the 20 samples with the most fuel";
    OVER_BUDGET: Gauge "objects_over_budget" [] "Objects that wait because their kind has used up its budget in their \
        namespace";
    COMPILE_DURATION: Histogram "policy_compile_duration" in "seconds" ["result"] "Duration of the compilation of a package; `result` is compiled or failed";
    POLICY_REVISIONS: Gauge "policy_revisions" ["state", "current"] "Revisions of policy packages, by state; `current` \
        is true if a ConfigMap contains the package now";
    UNRECORDED_DEFAULTS: Gauge "default_policies_unrecorded" [] "Default policies that serve and that the operator could \
        not record, so that another version of the operator replaces them at once";
    ROLLOUT_STEP: Gauge "rollout_step" ["package"] "Number of the current step of a rollout; 0 before the \
        first step";
    ROLLOUT_OBJECTS: Gauge "rollout_objects" ["package", "moved"] "Objects that a rollout concerns; \
        `moved` is true if the new revision answers for them";
    ROLLOUT_PAUSED: Gauge "rollout_paused" ["package", "reason"] "1 for each paused rollout";
    ROLLOUT_RETURNED: Counter "rollout_returned" ["package", "cause"] "Rollouts that returned all objects to the \
        revision that served before; `cause` is harm, person or old-definition";
    API_CALLS: Counter "api_calls" ["verb", "group", "resource", "code"] "Requests to the API server, by HTTP status code; timeout and unreachable count requests without an answer";
    API_DURATION: Histogram "api_call_duration" in "seconds" ["verb"] "Time until the API server answered a request or \
        opened a watch";
    WATCH_STATE: Gauge "watch_state" ["group", "kind", "state"] "1 for the current state of the watch on a type: \
        unserved, forbidden, listing, synced or failing; barred namespaces do not change the state";
    WATCH_ERRORS: Counter "watch_errors" ["group", "kind", "reason"] "Watches that ended with an error, by the API server's reason";
    BARRED: Gauge "namespaces_barred" [] "Listed namespaces in which the operator can read nothing, although it can read other namespaces: these namespaces were deleted, or rights are missing";
    STORED: Gauge "stored_objects" ["group", "kind"] "Objects of a type that the operator keeps in memory";
    STORED_SIZE: Gauge "stored" in "bytes" ["group", "kind"] "Compressed size of the objects of a type that the operator keeps in memory";
    RECORDED: Gauge "recorded_decisions" [] "Decisions of policies in the flight recorder";
    RECORDED_SIZE: Gauge "recorded" in "bytes" [] "Size of the decisions in the flight recorder";
    RECORDED_DROPPED: Counter "recorded_decisions_dropped" [] "Decisions that the flight recorder did not keep for a day: --record-memory was used up, a decision was too large, or too many decisions came at once or concerned one object";
}

impl MetricRow {
    /// Returns the full name, as a scraper sees it.
    pub(super) fn full_name(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        let ending = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        format!("{PREFIX}_{}{unit}{ending}", self.name)
    }

    /// Adds the metric to a registry under its name.
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
        "The operator serves the metrics as OpenMetrics text at `/metrics` (`--metrics-bind-address`, `:8080` unless \
         set). `group` and `kind` name a ",
        "Kubernetes type; the core group is empty. Histograms have `_bucket`, `_sum` and `_count`.\n\n",
        "Counters of a policy start at 0 when the policy begins to answer. A series of requests or of watch errors ",
        "begins with its first event, so `increase` does not count this event.\n\n",
        "A series of a policy version exists while the version can answer, also as a fallback. When the version can ",
        "no longer answer, the series stays until the next change of policies. The series of a version that returns ",
        "start at 0.\n\n",
        "At most 100 policy versions have series of their own. All further versions share the series with the policy ",
        "`(others)` and an empty version.\n\n",
        "If the operator sends [traces](../guide/operate.md#send-traces-to-a-collector), the buckets of ",
        "`kaos_operator_pass_duration_seconds` and `kaos_operator_policy_call_duration_seconds` have exemplars with ",
        "a `trace_id`.\n\n",
        "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n",
    ));
    for row in ROWS {
        let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
        let kind = format!("{:?}", row.kind).to_lowercase();
        // Writing to a `String` never fails.
        let _ = writeln!(page, "| `{}` | {kind} | {} | {} |", row.full_name(), labels.join(", "), row.help);
    }
    page
}
