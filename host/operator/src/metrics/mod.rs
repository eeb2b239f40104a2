//! What the operator counts of itself, as `OpenMetrics`.
//!
//! One method an occasion; whoever calls them knows nothing of registries and names. The names are in `table`, and the
//! reference page is made from it. What is counted of single policies, and for how long, is left to `by_policy`; serving the
//! text to `serve`.

mod by_policy;
mod labels;
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
use kaos_policy::{contract::ResourceType, policy::PolicyId};
use prometheus_client::{
    encoding::text,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::Registry,
};

use by_policy::ByPolicy;
use sizes::Sizes;
pub use states::{PassResult, Readiness, Tally, Unserved, WatchState};
pub use table::reference;

use crate::locking::lock;

/// `Content-Type` of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Refresh = Box<dyn Fn(&Metrics) + Send + Sync>;

/// The operator's metrics. Every method is cheap and may be called from anywhere.
pub struct Metrics {
    registry: Registry,
    refreshers: Mutex<Vec<Refresh>>,
    leader: Gauge,
    everywhere: Gauge,
    passes: Family<labels::Pass, Counter>,
    pass_duration: Sizes<labels::Type>,
    retries: Family<labels::Type, Counter>,
    objects: Family<labels::Objects, Gauge>,
    unserved: Family<labels::Unserved, Gauge>,
    awaiting_policy: Family<labels::Type, Gauge>,
    queue_depth: Gauge,
    queue_age: Gauge<f64, AtomicU64>,
    policies: Family<labels::Active, Gauge>,
    by_policy: ByPolicy,
    policy_revisions: Family<labels::RevisionState, Gauge>,
    api_calls: Family<labels::ApiCall, Counter>,
    api_duration: Sizes<labels::Verb>,
    watch_state: Family<labels::WatchState, Gauge>,
    watch_errors: Family<labels::WatchError, Counter>,
    barred: Gauge,
    stored: Family<labels::Type, Gauge>,
    stored_size: Family<labels::Type, Gauge>,
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
    /// All metrics at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix(table::PREFIX);
        let r = &mut registry;
        let build = labels::Build { version: env!("CARGO_PKG_VERSION"), rust: env!("CARGO_PKG_RUST_VERSION") };
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
            policy_revisions: table::POLICY_REVISIONS.register(r, Family::default()),
            api_calls: table::API_CALLS.register(r, Family::default()),
            api_duration: table::API_DURATION.register(r, Sizes::new_with_constructor(seconds as fn() -> Histogram)),
            watch_state: table::WATCH_STATE.register(r, Family::default()),
            watch_errors: table::WATCH_ERRORS.register(r, Family::default()),
            barred: table::BARRED.register(r, Gauge::default()),
            stored: table::STORED.register(r, Family::default()),
            stored_size: table::STORED_SIZE.register(r, Family::default()),
            refreshers: Mutex::default(),
            registry,
        }
    }

    /// Has `refresh` called before each [`encode`](Self::encode), for what is only worth knowing when somebody looks.
    pub fn before_encoding(&self, refresh: impl Fn(&Self) + Send + Sync + 'static) {
        lock(&self.refreshers).push(Box::new(refresh));
    }

    /// A pass over an object of a kind ended.
    pub fn pass(&self, of: &ResourceType, result: PassResult, took: Duration) {
        self.passes.get_or_create(&labels::Pass { of: of.into(), result: result.label() }).inc();
        self.pass_duration.get_or_create(&of.into()).observe(took.as_secs_f64());
    }

    /// A pass will be made again.
    pub fn retry(&self, of: &ResourceType) {
        self.retries.get_or_create(&of.into()).inc();
    }

    /// How the objects of each kind stand. Takes the place of what was said before.
    pub fn objects(&self, tallies: &BTreeMap<ResourceType, Tally>) {
        self.objects.clear();
        self.unserved.clear();
        for (of, tally) in tallies {
            for ready in Readiness::ALL {
                let labels = labels::Objects { of: of.into(), ready: ready.label() };
                let objects = tally.ready.get(&ready).copied().unwrap_or_default();
                self.objects.get_or_create(&labels).set(count(objects));
            }
            for reason in Unserved::ALL {
                let labels = labels::Unserved { of: of.into(), reason: reason.label() };
                let objects = tally.unserved.get(&reason).copied().unwrap_or_default();
                self.unserved.get_or_create(&labels).set(count(objects));
            }
        }
    }

    /// How many objects of each kind have not had a pass with the policy that answers now. Takes the place of what was said
    /// before.
    pub fn awaiting_policy(&self, awaiting: &[(ResourceType, usize)]) {
        self.awaiting_policy.clear();
        for (of, objects) in awaiting {
            self.awaiting_policy.get_or_create(&of.into()).set(count(*objects));
        }
    }

    /// What the work queue holds.
    pub fn queue(&self, depth: usize, oldest: Duration) {
        self.queue_depth.set(count(depth));
        self.queue_age.set(oldest.as_secs_f64());
    }

    /// Which policies answer now: each layer for each kind. Takes the place of what was said before. What they may do is
    /// counted from here on. `able` has them and all that may come to answer; what was counted of others goes with the next
    /// call.
    pub fn policies(&self, active: &[(ResourceType, PolicyId)], able: &BTreeSet<PolicyId>) {
        self.by_policy.keep(able);
        self.policies.clear();
        for (of, id) in active {
            let labels = labels::Active { of: of.into(), policy: id.into(), digest: id.digest.hex() };
            self.policies.get_or_create(&labels).set(1);
            self.begin(of);
            self.by_policy.begin(id);
        }
    }

    /// Begins to count at zero: of what is first seen at one, nobody who looks at increases learns.
    fn begin(&self, of: &ResourceType) {
        for result in PassResult::ALL {
            drop(self.passes.get_or_create(&labels::Pass { of: of.into(), result: result.label() }));
        }
        drop(self.retries.get_or_create(&of.into()));
    }

    /// What a policy burnt in one pass.
    pub fn fuel(&self, policy: &PolicyId, burnt: u64) {
        self.by_policy.fuel(policy, burnt);
    }

    /// A policy failed, with the category of the failure.
    pub fn policy_failure(&self, policy: &PolicyId, reason: &'static str) {
        self.by_policy.failure(policy, reason);
    }

    /// What served before a policy answered in its place.
    pub fn fallback(&self, from: &PolicyId) {
        self.by_policy.fallback(from);
    }

    /// How many policy packages there are in each state, those apart that nobody ships any more. Takes the place of what
    /// was said before.
    pub fn policy_revisions(&self, states: &BTreeMap<(RevisionState, bool), usize>) {
        for state in RevisionState::ALL {
            for current in [true, false] {
                let revisions = states.get(&(state, current)).copied().unwrap_or_default();
                let labels = labels::RevisionState { state: state.name(), current };
                self.policy_revisions.get_or_create(&labels).set(count(revisions));
            }
        }
    }

    /// A request to the API server ended.
    pub fn api_call(&self, verb: &'static str, group: &str, resource: &str, code: &str, took: Duration) {
        let labels =
            labels::ApiCall { verb, group: group.to_owned(), resource: resource.to_owned(), code: code.to_owned() };
        self.api_calls.get_or_create(&labels).inc();
        self.api_duration.get_or_create(&labels::Verb { verb }).observe(took.as_secs_f64());
    }

    /// Whether this process is the one that writes.
    pub fn leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Whether it writes in all namespaces.
    pub fn everywhere(&self, writes: bool) {
        self.everywhere.set(i64::from(writes));
    }

    /// What the watch on a type is doing now; none when the type is no longer watched.
    pub fn watch(&self, of: &ResourceType, state: Option<WatchState>) {
        for each in WatchState::ALL {
            let labels = labels::WatchState { of: of.into(), state: each.label() };
            match state {
                None => drop(self.watch_state.remove(&labels)),
                Some(state) => drop(self.watch_state.get_or_create(&labels).set(i64::from(state == each))),
            }
        }
    }

    /// A watch broke.
    pub fn watch_error(&self, of: &ResourceType, reason: &str) {
        self.watch_errors.get_or_create(&labels::WatchError { of: of.into(), reason: reason.to_owned() }).inc();
    }

    /// In how many listed namespaces nothing may be read, while something may be in others.
    pub fn barred(&self, namespaces: usize) {
        self.barred.set(count(namespaces));
    }

    /// What is kept in memory of a type.
    pub fn stored(&self, of: &ResourceType, objects: usize, bytes: usize) {
        self.stored.get_or_create(&of.into()).set(count(objects));
        self.stored_size.get_or_create(&of.into()).set(count(bytes));
    }

    /// Everything as text, of the type [`CONTENT_TYPE`].
    pub fn encode(&self) -> Result<String, fmt::Error> {
        // Held until the end, so that nobody else takes away what was just put there.
        let refreshers = lock(&self.refreshers);
        for refresh in &*refreshers {
            refresh(self);
        }
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// From a millisecond to half a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}
