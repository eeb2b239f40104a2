//! The operator's metrics, as `OpenMetrics`.
//!
//! Each event has its own method, so callers need neither registries nor names of metrics. The names are in the module
//! `table`, from which a test also generates the reference page. The module `by_policy` has the metrics of each policy,
//! and `rollouts` has the metrics of each rollout. The module `serve` sends the metrics as text over HTTP.

mod by_policy;
mod labels;
mod rollouts;
mod sizes;
mod states;
mod table;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, atomic::AtomicU64},
    time::Duration,
};

use kaos_crds::RevisionState;
use kaos_kube_io::metrics::{IoMetrics, Refresh as IoRefresh, WatchState};
use kaos_policy::{contract::ResourceType, failure::Verb, policy::PolicyId};
use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::exponential_buckets, info::Info},
    registry::Registry,
};

use by_policy::ByPolicy;
pub use rollouts::RolloutState;
use rollouts::Rollouts;
use sizes::{Histogram, Sizes};
pub use states::{PassResult, Readiness, Tally, Unserved};
pub use table::reference;

use crate::{budgets::Spending, locking::lock};

/// The `Content-Type` of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Refresh = Box<dyn Fn(&Metrics) + Send + Sync>;

/// The operator's metrics. Every method is cheap, and any thread can call it.
pub struct Metrics {
    registry: Registry,
    refreshers: Mutex<Vec<Refresh>>,
    leader: Gauge,
    everywhere: Gauge,
    passes: Family<labels::PassLabels, Counter>,
    pass_duration: Sizes<labels::TypeLabels>,
    retries: Family<labels::TypeLabels, Counter>,
    objects: Family<labels::ObjectsLabels, Gauge>,
    unserved: Family<labels::UnservedLabels, Gauge>,
    awaiting_policy: Family<labels::TypeLabels, Gauge>,
    queue_depth: Gauge,
    queue_age: Gauge<f64, AtomicU64>,
    policies: Family<labels::ActiveLabels, Gauge>,
    by_policy: ByPolicy,
    namespace_fuel: Family<labels::SpendingLabels, Gauge>,
    namespace_passes: Family<labels::SpendingLabels, Gauge>,
    over_budget: Gauge,
    compile_duration: Sizes<labels::ResultLabels>,
    policy_revisions: Family<labels::RevisionStateLabels, Gauge>,
    unrecorded_defaults: Gauge,
    rollouts: Rollouts,
    api_calls: Family<labels::ApiCallLabels, Counter>,
    api_duration: Sizes<labels::VerbLabels>,
    watch_state: Family<labels::WatchStateLabels, Gauge>,
    watch_errors: Family<labels::WatchErrorLabels, Counter>,
    barred: Gauge,
    stored: Family<labels::TypeLabels, Gauge>,
    stored_size: Family<labels::TypeLabels, Gauge>,
    recorded: Gauge,
    recorded_size: Gauge,
    recorded_dropped: Counter,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates all metrics, at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix(table::PREFIX);
        let r = &mut registry;
        let build = labels::BuildLabels { version: env!("CARGO_PKG_VERSION"), rust: env!("CARGO_PKG_RUST_VERSION") };
        r.register(table::BUILD.name, table::BUILD.help, Info::new(build));
        Self {
            leader: table::LEADER.register(r, Gauge::default()),
            everywhere: table::EVERYWHERE.register(r, Gauge::default()),
            passes: table::PASSES.register(r, Family::default()),
            pass_duration: table::PASS_DURATION.register(r, Sizes::new_with_constructor(seconds as fn() -> Histogram)),
            retries: table::RETRIES.register(r, Family::default()),
            objects: table::OBJECTS.register(r, Family::default()),
            unserved: table::UNSERVED.register(r, Family::default()),
            awaiting_policy: table::AWAITING_PASS.register(r, Family::default()),
            queue_depth: table::QUEUE_DEPTH.register(r, Gauge::default()),
            queue_age: table::QUEUE_AGE.register(r, Gauge::default()),
            policies: table::POLICY.register(r, Family::default()),
            by_policy: ByPolicy::register(r),
            namespace_fuel: table::NAMESPACE_FUEL.register(r, Family::default()),
            namespace_passes: table::NAMESPACE_PASSES.register(r, Family::default()),
            over_budget: table::OVER_BUDGET.register(r, Gauge::default()),
            compile_duration: table::COMPILE_DURATION
                .register(r, Sizes::new_with_constructor(seconds as fn() -> Histogram)),
            policy_revisions: table::POLICY_REVISIONS.register(r, Family::default()),
            unrecorded_defaults: table::UNRECORDED_DEFAULTS.register(r, Gauge::default()),
            rollouts: Rollouts::register(r),
            api_calls: table::API_CALLS.register(r, Family::default()),
            api_duration: table::API_DURATION.register(r, Sizes::new_with_constructor(seconds as fn() -> Histogram)),
            watch_state: table::WATCH_STATE.register(r, Family::default()),
            watch_errors: table::WATCH_ERRORS.register(r, Family::default()),
            barred: table::BARRED.register(r, Gauge::default()),
            stored: table::STORED.register(r, Family::default()),
            stored_size: table::STORED_SIZE.register(r, Family::default()),
            recorded: table::RECORDED.register(r, Gauge::default()),
            recorded_size: table::RECORDED_SIZE.register(r, Gauge::default()),
            recorded_dropped: table::RECORDED_DROPPED.register(r, Counter::default()),
            refreshers: Mutex::default(),
            registry,
        }
    }

    /// Adds a function that [`encode`](Self::encode) calls each time before it writes the text. Such a function updates
    /// values that are needed only when a client reads the metrics.
    pub fn before_encoding(&self, refresh: impl Fn(&Self) + Send + Sync + 'static) {
        lock(&self.refreshers).push(Box::new(refresh));
    }

    /// Records a pass over an object of a kind, with the id of the pass's trace.
    pub fn pass(&self, of: &ResourceType, result: PassResult, took: Duration, trace: Option<String>) {
        self.passes.get_or_create(&labels::PassLabels { of: of.into(), result: result.label() }).inc();
        self.pass_duration.get_or_create(&of.into()).observe(took.as_secs_f64(), trace.map(Into::into), None);
    }

    /// Records that the operator will retry a pass.
    pub fn retry(&self, of: &ResourceType) {
        self.retries.get_or_create(&of.into()).inc();
    }

    /// Sets the number of objects of each kind by state. Replaces the previous values.
    pub fn objects(&self, tallies: &BTreeMap<ResourceType, Tally>) {
        self.objects.clear();
        self.unserved.clear();
        for (of, tally) in tallies {
            for ready in Readiness::ALL {
                let labels = labels::ObjectsLabels { of: of.into(), ready: ready.label() };
                let objects = tally.ready.get(&ready).copied().unwrap_or_default();
                self.objects.get_or_create(&labels).set(count(objects));
            }
            for reason in Unserved::ALL {
                let labels = labels::UnservedLabels { of: of.into(), reason: reason.label() };
                let objects = tally.unserved.get(&reason).copied().unwrap_or_default();
                self.unserved.get_or_create(&labels).set(count(objects));
            }
        }
    }

    /// Sets, for each kind, the number of objects that had no pass with the active policy yet. Replaces the previous
    /// values.
    pub fn awaiting_policy(&self, awaiting: &[(ResourceType, usize)]) {
        self.awaiting_policy.clear();
        for (of, objects) in awaiting {
            self.awaiting_policy.get_or_create(&of.into()).set(count(*objects));
        }
    }

    /// Sets the state of the work queue.
    pub fn queue(&self, depth: usize, oldest: Duration) {
        self.queue_depth.set(count(depth));
        self.queue_age.set(oldest.as_secs_f64());
    }

    /// Sets the active policies of each kind. Replaces the previous values, and starts the counters of the policies at
    /// zero. The set `able` has the policies in `active`, the policies that objects can pin, and predecessors. If a
    /// policy is missing from `able` in two successive calls, the second call removes its samples.
    pub fn policies(&self, active: &[(ResourceType, PolicyId)], able: &BTreeSet<PolicyId>) {
        self.by_policy.keep(able);
        self.policies.clear();
        for (of, id) in active {
            let labels = labels::ActiveLabels { of: of.into(), policy: id.into(), digest: id.digest.hex() };
            self.policies.get_or_create(&labels).set(1);
            self.begin(of);
            self.by_policy.begin(id);
        }
    }

    /// Starts the counters of a kind at zero: if a counter first appeared with the value one, Prometheus would see no
    /// increase.
    fn begin(&self, of: &ResourceType) {
        for result in PassResult::ALL {
            drop(self.passes.get_or_create(&labels::PassLabels { of: of.into(), result: result.label() }));
        }
        drop(self.retries.get_or_create(&of.into()));
    }

    /// Records the answer of a policy in one pass, and the fuel of the answer. If `remembered` is set, the memo
    /// returned the answer to equal inputs, so the pass used no fuel.
    pub fn answer(&self, policy: &PolicyId, fuel: u64, remembered: bool) {
        self.by_policy.answer(policy, fuel, remembered);
    }

    /// Records the fuel that a policy's function `assess` used in one pass.
    pub fn fuel(&self, policy: &PolicyId, burnt: u64) {
        self.by_policy.fuel(policy, burnt);
    }

    /// Sets the fuel and passes of the most used budgets in the last minute, and the number of objects that wait for a
    /// budget. Replaces the previous values.
    pub fn spending(&self, largest: &[Spending], waiting: usize) {
        self.over_budget.set(count(waiting));
        self.namespace_fuel.clear();
        self.namespace_passes.clear();
        for Spending { of, namespace, fuel, passes } in largest {
            let labels = labels::SpendingLabels { of: of.into(), object_namespace: namespace.clone() };
            self.namespace_fuel.get_or_create(&labels).set(i64::try_from(*fuel).unwrap_or(i64::MAX));
            self.namespace_passes.get_or_create(&labels).set(i64::try_from(*passes).unwrap_or(i64::MAX));
        }
    }

    /// Records one call of a policy, with the id of the trace that contains the call.
    pub fn policy_call(&self, policy: &PolicyId, verb: Verb, took: Duration, trace: Option<String>) {
        self.by_policy.call(policy, verb, took, trace);
    }

    /// Records the compilation of a package.
    pub fn compilation(&self, is_compiled: bool, took: Duration) {
        let result = if is_compiled { "compiled" } else { "failed" };
        self.compile_duration.get_or_create(&labels::ResultLabels { result }).observe(took.as_secs_f64(), None, None);
    }

    /// Counts a failure of a policy, by category.
    pub fn policy_failure(&self, policy: &PolicyId, reason: &'static str) {
        self.by_policy.failure(policy, reason);
    }

    /// Counts a fallback from a policy to its predecessor.
    pub fn fallback(&self, from: &PolicyId) {
        self.by_policy.fallback(from);
    }

    /// Sets the number of revisions in each state, separately for revisions with and without a package. Replaces the
    /// previous values.
    pub fn policy_revisions(&self, states: &BTreeMap<(RevisionState, bool), usize>) {
        for state in RevisionState::ALL {
            for current in [true, false] {
                let revisions = states.get(&(state, current)).copied().unwrap_or_default();
                let labels = labels::RevisionStateLabels { state: state.name(), current };
                self.policy_revisions.get_or_create(&labels).set(count(revisions));
            }
        }
    }

    /// Sets the number of default policies that serve and are not recorded.
    pub fn unrecorded_defaults(&self, many: usize) {
        self.unrecorded_defaults.set(count(many));
    }

    /// Sets the states of all running rollouts. Replaces the previous states.
    pub fn rollouts(&self, states: &[RolloutState]) {
        self.rollouts.set(states);
    }

    /// Removes the counters of returned rollouts for all packages that are not in `packages`.
    pub fn keep_rollouts_of(&self, packages: &BTreeSet<String>) {
        self.rollouts.keep(packages);
    }

    /// Counts a rollout that returned all objects to the revision that served before.
    pub fn rollout_returned(&self, package: &str, cause: &'static str) {
        self.rollouts.returned(package, cause);
    }

    /// Sets the number and the size of the decisions in the flight recorder, and the number of decisions that the
    /// recorder dropped so far.
    pub fn recorded(&self, cases: usize, bytes: usize, dropped: u64) {
        self.recorded.set(count(cases));
        self.recorded_size.set(count(bytes));
        self.recorded_dropped.inc_by(dropped.saturating_sub(self.recorded_dropped.get()));
    }

    /// Sets whether this process holds the Lease.
    pub fn leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Sets whether this process writes in all namespaces.
    pub fn everywhere(&self, writes: bool) {
        self.everywhere.set(i64::from(writes));
    }

    /// Returns all metrics as text of the type [`CONTENT_TYPE`].
    pub fn encode(&self) -> Result<String, fmt::Error> {
        // Hold this lock until the end, so that no other thread removes the refreshed values.
        let refreshers = lock(&self.refreshers);
        for refresh in &*refreshers {
            refresh(self);
        }
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Records the measurements of the Kubernetes I/O.
impl IoMetrics for Metrics {
    fn api_call(&self, verb: &'static str, group: &str, resource: &str, code: &str, took: Duration) {
        let labels = labels::ApiCallLabels {
            verb,
            group: group.to_owned(),
            resource: resource.to_owned(),
            code: code.to_owned(),
        };
        self.api_calls.get_or_create(&labels).inc();
        self.api_duration.get_or_create(&labels::VerbLabels { verb }).observe(took.as_secs_f64(), None, None);
    }

    fn watch(&self, of: &ResourceType, state: Option<WatchState>) {
        for each in WatchState::ALL {
            let labels = labels::WatchStateLabels { of: of.into(), state: each.label() };
            match state {
                None => drop(self.watch_state.remove(&labels)),
                Some(state) => drop(self.watch_state.get_or_create(&labels).set(i64::from(state == each))),
            }
        }
    }

    fn watch_error(&self, of: &ResourceType, reason: &str) {
        self.watch_errors.get_or_create(&labels::WatchErrorLabels { of: of.into(), reason: reason.to_owned() }).inc();
    }

    fn barred(&self, namespaces: usize) {
        self.barred.set(count(namespaces));
    }

    fn stored(&self, of: &ResourceType, objects: usize, bytes: usize) {
        self.stored.get_or_create(&of.into()).set(count(objects));
        self.stored_size.get_or_create(&of.into()).set(count(bytes));
    }

    fn before_reading(&self, refresh: IoRefresh) {
        self.before_encoding(move |metrics| refresh(metrics));
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Creates a histogram with buckets from a millisecond to half a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}
