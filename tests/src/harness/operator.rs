//! Starts, stops and crashes operators in this process.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::Result;
use kaos_operator::catalogue::{Catalogue, Gatekeeper, Installing, Offer};
use kaos_operator::client::{self, CallLayer};
use kaos_operator::leader_election::Fence;
use kaos_operator::metrics::Metrics;
use kaos_operator::operator::{Clock, Compute, Operator, OperatorError, Options, Probe};
use kaos_operator::watch::Scope;
use kaos_policy::compile::{Compilation, Compile, CompileError, Order};
use kaos_policy::contract::ResourceType;
use kaos_policy::engine::Engine;
use kaos_policy::policy::{Policy, Stack};
use kaos_policy::settings::{Layer, Origin};
use kube::{Client, Config};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::World;
use super::faults::{OPERATOR, none_missed};
use super::once::Once;
use super::read::counted;
use super::scenario::{SYSTEM, Scenario};
use super::world::Below;
use crate::gadget::{self, Edition};
use crate::policies;

/// No deadline: tests of a single operator set their own.
const UNBOUNDED: Duration = Duration::from_hours(24);

/// The settings with which operators of a world start.
pub(super) struct Setting {
    environment: RefCell<BTreeMap<String, String>>,
    edition: Cell<Edition>,
    clock: Clock,
    seed: u64,
    tune: fn(&mut Options),
    installing: Option<bool>,
    only: Option<(BTreeSet<String>, Config)>,
    hindered: Hindered,
    held: Held,
    /// The number of replicas that have started so far.
    pub(super) lives: Cell<u32>,
}

/// The components on which the compiler fails, if any.
type Hindered = Arc<Mutex<Option<Hindrance>>>;

/// A text that marks components, the compiler's error for them, and how many components it has hit.
struct Hindrance {
    text: &'static str,
    why: CompileError,
    hits: usize,
}

/// A compiler in this process. It fails on some components, and hangs on others until the test releases them.
struct Mortal {
    compiler: Once,
    hindered: Hindered,
    held: Held,
}

/// The components on which the compiler hangs.
type Held = Arc<Mutex<Hold>>;

/// A text that marks components, the number of these that the compiler hangs on now, and the number that it ever hung
/// on.
#[derive(Default)]
struct Hold {
    text: Option<&'static str>,
    now: usize,
    ever: usize,
}

impl Mortal {
    /// The error planned for a component, if any. Counts the hit.
    fn hindered_over(&self, component: &[u8]) -> Option<CompileError> {
        let mut hindered = lock(&self.hindered);
        let hindrance = hindered.as_mut().filter(|hindrance| holds(component, hindrance.text))?;
        hindrance.hits += 1;
        Some(hindrance.why.clone())
    }

    /// Blocks while the test holds the component and the order is not cancelled.
    fn wait(&self, order: &Order<'_>) -> Result<(), CompileError> {
        let is_held = || lock(&self.held).text.is_some_and(|text| holds(order.component, text));
        if !is_held() {
            return Ok(());
        }
        lock(&self.held).now += 1;
        lock(&self.held).ever += 1;
        while is_held() && (order.is_wanted)() {
            std::thread::sleep(Duration::from_millis(1));
        }
        lock(&self.held).now -= 1;
        if (order.is_wanted)() { Ok(()) } else { Err(CompileError::Unwanted) }
    }
}

fn holds(component: &[u8], text: &str) -> bool {
    component.windows(text.len()).any(|at| at == text.as_bytes())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Compile for Mortal {
    fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError> {
        self.wait(order)?;
        self.hindered_over(order.component).map_or_else(|| self.compiler.compile(order), Err)
    }
}

/// A running operator.
pub struct Running {
    /// The operator's user.
    pub(super) user: String,
    /// The operator's identity on the Lease; empty without a Lease.
    pub(super) identity: String,
    /// The operator's health probe.
    pub probe: Probe,
    /// The operator's metrics.
    pub metrics: Arc<Metrics>,
    catalogue: Arc<Catalogue>,
    stop: CancellationToken,
    pub(super) task: JoinHandle<Result<(), OperatorError>>,
}

impl Setting {
    pub(super) fn new(scenario: &Scenario, clock: Clock) -> Self {
        let Scenario { environment, seed, tune, installing, .. } = scenario;
        Self {
            environment: RefCell::new(environment.clone()),
            edition: Cell::new(Edition::First),
            clock,
            seed: *seed,
            tune: *tune,
            installing: *installing,
            only: None,
            hindered: Hindered::default(),
            held: Held::default(),
            lives: Cell::new(0),
        }
    }

    /// On a shared cluster, the operator watches only its test's namespace.
    pub(super) fn only_in(&mut self, namespace: &str, config: Config) {
        self.only = Some((BTreeSet::from([namespace.to_owned()]), config));
    }

    pub(super) fn options(&self) -> Options {
        let mut options = Options { operator_namespace: SYSTEM.to_owned(), seed: self.seed + 1, ..Options::default() };
        match &self.only {
            None => {
                // An operator that starts late reads the same clock as the cluster: both follow tokio's time.
                options.compute = Compute::Inline;
                options.clock = self.clock;
            }
            Some((namespaces, _)) => options.namespaces = Scope::Listed(namespaces.clone()),
        }
        (self.tune)(&mut options);
        options
    }

    /// The components on which the compiler was to fail, if it has met none so far.
    pub(super) fn spared(&self) -> Option<String> {
        let hindered = self.hindered.lock().unwrap_or_else(PoisonError::into_inner);
        let spared = hindered.as_ref().filter(|hindrance| hindrance.hits == 0);
        spared.map(|hindrance| format!("the compiler fails over {}: {}", hindrance.text, hindrance.why))
    }

    fn layers(&self) -> Vec<Layer> {
        vec![Layer::env(Origin::Environment, self.environment.borrow().clone())]
    }

    /// The policies for each kind.
    fn stacks(&self) -> Result<BTreeMap<ResourceType, Stack>> {
        let mut stacks = BTreeMap::new();
        for policy in self.policies()? {
            for claim in &policy.descriptor().claims {
                stacks.insert(claim.primary.clone(), Stack::single(Arc::clone(&policy))?);
            }
        }
        Ok(stacks)
    }

    /// The services for policies that the test installs.
    fn installing(&self, in_namespaces: bool) -> Result<Installing> {
        let engine = Engine::new()?;
        let (hindered, held) = (Arc::clone(&self.hindered), Arc::clone(&self.held));
        let compiler = Box::new(Mortal { compiler: Once::new(engine.clone()), hindered, held });
        let cluster = kaos_policy::contract::Cluster { operator_namespace: SYSTEM.to_owned(), ..Default::default() };
        let own = self.stacks()?.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
        let gatekeeper = Gatekeeper::new(engine, compiler, cluster);
        Ok(Installing { own, settings: self.layers(), gatekeeper, in_namespaces })
    }

    fn policies(&self) -> Result<Vec<Arc<Policy>>> {
        static NATIVE: OnceLock<Vec<Arc<Policy>>> = OnceLock::new();
        let mut policies = if let Some(native) = NATIVE.get() {
            native.clone()
        } else {
            let native = policies::native()?;
            NATIVE.get_or_init(|| native).clone()
        };
        policies.push(gadget::policy(self.edition.get())?);
        Ok(policies)
    }
}

impl World {
    /// Starts an operator and waits until its caches are complete.
    ///
    /// # Panics
    /// If the operator does not become ready.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn start(&self) {
        self.spawn();
        self.until_true("the operator is ready", async || self.probe().ready().is_ok()).await;
        if let Err(missing) = self.probe().ready() {
            panic!("the operator is not ready: {missing:?}");
        }
    }

    /// Starts an operator.
    ///
    /// # Panics
    /// If the operator cannot be assembled.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn spawn(&self) {
        let running = self.assemble().unwrap_or_else(|error| panic!("the operator cannot start: {error:#}"));
        self.running.borrow_mut().push(running);
    }

    fn assemble(&self) -> Result<Running> {
        let setting = &self.setting;
        let metrics = Arc::new(Metrics::new());
        let layer = CallLayer { deadline: UNBOUNDED, fence: Fence::open(), metrics: metrics.clone() };
        let client = match (&self.below, &setting.only) {
            (Below::Embedded(cluster), _) => {
                let way = self.crash_point.on(&cluster.service(), OPERATOR);
                Client::new(layer.around(way), self.namespace.clone())
            }
            (Below::Real, Some((_, config))) => client::connect(config.clone(), &layer)?,
            (Below::Real, None) => self.client.clone(),
        };
        let run = |operator: Operator, stop: CancellationToken| tokio::spawn(operator.run(stop));
        self.run(client, metrics, (OPERATOR.to_owned(), String::new()), run)
    }

    /// Assembles an operator and runs it.
    pub(super) fn run(
        &self,
        client: Client,
        metrics: Arc<Metrics>,
        (user, identity): (String, String),
        run: impl FnOnce(Operator, CancellationToken) -> JoinHandle<Result<(), OperatorError>>,
    ) -> Result<Running> {
        let setting = &self.setting;
        let catalogue = Arc::new(match setting.installing {
            None => Catalogue::new(&setting.stacks()?, &setting.layers())?,
            Some(_) => Catalogue::default(),
        });
        let mut operator = Operator::new(client, Arc::clone(&catalogue), Arc::clone(&metrics), setting.options());
        if let Some(in_namespaces) = setting.installing {
            operator = operator.installing(setting.installing(in_namespaces)?);
        }
        let (probe, stop) = (operator.probe(), CancellationToken::new());
        let task = run(operator, stop.clone());
        Ok(Running { user, identity, probe, metrics, catalogue, stop, task })
    }

    /// The health probe of the most recently started operator.
    ///
    /// # Panics
    /// If no operator runs.
    #[expect(clippy::panic, reason = "the test is wrong")]
    pub fn probe(&self) -> Probe {
        self.try_probe().unwrap_or_else(|| panic!("no operator runs"))
    }

    /// The health probe of the most recently started operator, if one runs.
    pub fn try_probe(&self) -> Option<Probe> {
        self.running.borrow().last().map(|running| running.probe.clone())
    }

    /// The metrics page of the most recently started operator.
    pub fn metrics(&self) -> String {
        self.running.borrow().last().map(|running| running.metrics.encode().unwrap_or_default()).unwrap_or_default()
    }

    /// The sum of those samples of a metric whose labels contain all of these texts.
    pub fn counted(&self, metric: &str, labels: &[&str]) -> f64 {
        counted(&self.metrics(), metric, labels)
    }

    /// Stops all operators gracefully.
    ///
    /// # Panics
    /// If an operator ends with an error.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn stop_all(&self) {
        let running: Vec<Running> = self.running.borrow_mut().drain(..).collect();
        for operator in running {
            operator.stop.cancel();
            match operator.task.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("the operator ended with: {error}"),
                Err(error) if error.is_cancelled() => {}
                Err(error) => panic!("the operator came down: {error}"),
            }
        }
    }

    /// Kills the operator at once, without a graceful stop.
    pub async fn crash(&self) {
        let running: Vec<Running> = self.running.borrow_mut().drain(..).collect();
        for operator in running {
            operator.task.abort();
            let _cancelled = operator.task.await;
        }
    }

    /// Stops the operator gracefully and starts another one.
    pub async fn restart(&self) {
        self.stop_all().await;
        self.start().await;
    }

    /// Replaces the test policy with another edition.
    ///
    /// # Panics
    /// If the swap fails.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn swap(&self, edition: Edition) {
        self.setting.edition.set(edition);
        let swapped = self.setting.stacks().and_then(|stacks| self.answer_by(&stacks));
        swapped.unwrap_or_else(|error| panic!("the policies cannot be swapped: {error:#}"));
    }

    /// Removes the policy of a kind: its objects have no policy from now on.
    ///
    /// # Panics
    /// If the removal fails.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn withdraw(&self, kind: &str) {
        let withdrawn = self.setting.stacks().and_then(|mut stacks| {
            stacks.retain(|of, _| of.kind != kind);
            self.answer_by(&stacks)
        });
        withdrawn.unwrap_or_else(|error| panic!("the policy cannot be taken away: {error:#}"));
    }

    /// Replaces the policies in every running operator.
    fn answer_by(&self, stacks: &BTreeMap<ResourceType, Stack>) -> Result<()> {
        for running in self.running.borrow().iter() {
            running.catalogue.replace(stacks, &self.setting.layers())?;
        }
        Ok(())
    }

    /// The policies of this world.
    ///
    /// # Panics
    /// If a policy does not describe itself.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn policies(&self) -> Vec<Arc<Policy>> {
        self.setting.policies().unwrap_or_else(|error| panic!("the policies are not in order: {error:#}"))
    }

    /// Lets the compiler be killed on every component that contains this text, as on a machine without enough memory.
    /// `None` ends this. At least one component must meet the fault before it changes or the test ends.
    pub fn kill_compiler_over(&self, text: Option<&'static str>) {
        self.hinder_compiler(text, CompileError::Killed);
    }

    /// Lets the compiler refuse every component that contains this text, as another build may do. `None` ends this.
    pub fn refuse_to_compile(&self, text: Option<&'static str>) {
        self.hinder_compiler(text, CompileError::Refused("this build takes it no longer".to_owned()));
    }

    fn hinder_compiler(&self, text: Option<&'static str>, why: CompileError) {
        none_missed(self.setting.spared());
        let hindrance = text.map(|text| Hindrance { text, why, hits: 0 });
        *self.setting.hindered.lock().unwrap_or_else(PoisonError::into_inner) = hindrance;
    }

    /// Lets the compiler hang on components that contain this text, until the next call. `None` ends this. Simulated
    /// time stands still while the compiler hangs: see [`Self::until_meanwhile`].
    pub fn hold_compiler_over(&self, text: Option<&'static str>) {
        lock(&self.setting.held).text = text;
    }

    /// The number of components that the compiler hangs on now, and the number that it ever hung on.
    pub fn held(&self) -> (usize, usize) {
        let held = lock(&self.setting.held);
        (held.now, held.ever)
    }

    /// Changes one variable of the operator's environment, for the next start.
    pub fn set_environment(&self, name: &str, value: &str) {
        self.setting.environment.borrow_mut().insert(name.to_owned(), value.to_owned());
    }
}
