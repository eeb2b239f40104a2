//! An embedded cluster with an operator that installs policies from ConfigMaps. The cluster runs in real time on all
//! processors.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kaos_cluster::{Cluster, Server};
use kaos_operator::catalogue::{Catalogue, Defaults, Gatekeeper, Installing, Offer};
use kaos_operator::metrics::Metrics;
use kaos_operator::operator::{Operator, Options};
use kaos_operator::policies::{Loader, sample_cluster, select};
use kaos_policy::clock::SystemClock;
use kaos_policy::compile::{ChildCompiler, Compilation, Compile, CompileError, CompileLimits, Order};
use kaos_policy::engine::Engine;
use kaos_policy::gate::SizeClass;
use kaos_tests::harness::definitions::definitions;
use kaos_tests::harness::kinds::{At, Kind};
use kaos_tests::harness::samples::namespace;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The time between two polls. A measured time can be too long by about this time.
pub(crate) const BEAT: Duration = Duration::from_millis(1);
/// The time limit for each wait.
const PATIENCE: Duration = Duration::from_mins(2);
/// The namespace for objects that name no namespace.
const NAMESPACE: &str = "default";

/// A cluster and its operator. All clones use one cluster.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    client: Client,
    compiled: Compiled,
}

/// The duration of the operator's most recent compilation.
#[derive(Clone, Default)]
struct Compiled(Arc<Mutex<Duration>>);

/// Compiles a component in a child process, as the operator does, and records the duration.
struct Timed {
    compiler: ChildCompiler<SystemClock>,
    compiled: Compiled,
}

impl Compile for Timed {
    fn compile(&self, order: &Order<'_>) -> std::result::Result<Compilation, CompileError> {
        let began = Instant::now();
        let code = self.compiler.compile(order);
        *self.compiled.0.lock().unwrap_or_else(PoisonError::into_inner) = began.elapsed();
        code
    }
}

impl Stage {
    pub(crate) fn bare() -> Result<Self> {
        let cluster = Cluster::start();
        for name in ["kaos-system", NAMESPACE, "greedy"] {
            cluster.plant("", "namespaces", namespace(name));
        }
        for definition in definitions()? {
            cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
        }
        let client = Client::new(cluster.service(), NAMESPACE);
        Ok(Self { cluster, client, compiled: Compiled::default() })
    }

    /// Creates a cluster with an operator. The operator runs until `stop` is cancelled.
    pub(crate) async fn with_operator(stop: &CancellationToken) -> Result<Self> {
        Self::with_options(stop, Options::default()).await
    }

    /// Creates a cluster, and starts an operator with these options.
    pub(crate) async fn with_options(stop: &CancellationToken, options: Options) -> Result<Self> {
        let stage = Self::bare()?;
        stage.cluster.settled().await;
        let loader = Loader::new(sample_cluster())?;
        let stacks = select(&loader.load(&[])?)?;
        let own = stacks.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
        let (program, clock) = (std::env::current_exe()?, SystemClock::start());
        let limits = CompileLimits::default();
        let compiler = ChildCompiler::new(program, vec!["compile-child".into()], limits, clock);
        let timed = Timed { compiler, compiled: stage.compiled.clone() };
        let gatekeeper = Gatekeeper::new(Engine::new()?, Box::new(timed), sample_cluster(), SizeClass::default());
        let (settings, defaults) = (Vec::new(), Defaults::default());
        let installing = Installing { own, settings, defaults, gatekeeper, in_namespaces: true };
        let metrics = Arc::new(Metrics::new());
        let operator = Operator::new(stage.client.clone(), Arc::new(Catalogue::default()), metrics, options);
        let operator = operator.installing(installing);
        let probe = operator.probe();
        tokio::spawn(operator.run(stop.clone()));
        stage.until("the operator is ready", || probe.ready().is_ok()).await?;
        Ok(stage)
    }

    pub(crate) async fn listen(&self) -> Result<Server> {
        self.cluster.add_user("admin", "admin");
        Ok(self.cluster.listen(([127, 0, 0, 1], 0).into()).await?)
    }

    pub(crate) async fn apply(&self, object: &Value) -> Result<()> {
        let at = At::of(object, NAMESPACE);
        let api: Api<DynamicObject> = if at.kind.namespaced {
            Api::namespaced_with(self.client.clone(), &at.namespace, &at.kind.resource())
        } else {
            Api::all_with(self.client.clone(), &at.kind.resource())
        };
        api.patch(&at.name, &PatchParams::apply("bench").force(), &Patch::Apply(object)).await?;
        Ok(())
    }

    /// Returns the duration of the operator's most recent compilation.
    pub(crate) fn compiled(&self) -> Duration {
        *self.compiled.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads an object. Returns null if the object does not exist.
    pub(crate) fn look(&self, at: &str) -> Arc<Value> {
        let at = At::parse(at, NAMESPACE);
        self.cluster.object(at.kind.group(), at.kind.plural, &at.namespace, &at.name).unwrap_or_default()
    }

    /// Returns all objects of a kind.
    pub(crate) fn all(&self, kind: &str) -> Vec<Arc<Value>> {
        let kind = Kind::named(kind);
        self.cluster.objects(kind.group(), kind.plural)
    }

    /// Waits until `is` returns true. Returns the elapsed time.
    pub(crate) async fn until(&self, what: &str, is: impl Fn() -> bool) -> Result<Duration> {
        let began = Instant::now();
        while !is() {
            ensure!(began.elapsed() < PATIENCE, "timed out waiting until {what}");
            tokio::time::sleep(BEAT).await;
        }
        Ok(began.elapsed())
    }

    /// Applies an object, and waits until its status shows the new generation. Returns the time from the apply to the
    /// end of the wait.
    pub(crate) async fn served(&self, object: &Value) -> Result<Duration> {
        let at = At::of(object, NAMESPACE).to_string();
        let began = Instant::now();
        self.apply(object).await?;
        self.until(&format!("{at} is served"), || is_observed(&self.look(&at))).await?;
        Ok(began.elapsed())
    }
}

/// Returns whether the status shows the object's current generation.
fn is_observed(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"] && !object["status"].is_null()
}

/// Returns a percentile of `times`.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

/// Returns a row of a table: a title, and the median and the 95th percentile of `times` in milliseconds.
pub(crate) fn row(what: &str, times: &[Duration]) -> String {
    let [median, most] = [50, 95].map(|percent| milliseconds(percentile(times, percent)));
    format!("| {what} | {median:.1} | {most:.1} |\n")
}

/// Returns a percentile of `times` divided by the same percentile of `others`.
pub(crate) fn ratio(times: &[Duration], others: &[Duration], percent: usize) -> f64 {
    percentile(times, percent).as_secs_f64() / percentile(others, percent).as_secs_f64()
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
