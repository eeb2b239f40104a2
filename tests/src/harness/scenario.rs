//! A test's requirements, and the runtime for them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use kaos_cluster::{Cluster, TokioClock};
use kaos_operator::operator::{Clock, Options};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use super::World;
use super::account;
use super::crash::CrashPoint;
use super::faults::{Script, none_missed};
use super::operator::Setting;
use super::samples;
use super::watchdog;
use super::world::Below;
use crate::case;

/// The namespace of the operator.
pub const SYSTEM: &str = kaos_policy::contract::HOME;

/// The real time that a test may take. In simulated time, a loop that never waits would never end.
const REAL_TIME: std::time::Duration = std::time::Duration::from_mins(15);

/// The clusters on which a test can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Either,
    Embedded,
    Real,
}

/// A test's requirements.
#[derive(Clone)]
pub struct Scenario {
    needs: Needs,
    why: &'static str,
    idle: bool,
    bare: bool,
    gateway: bool,
    pub(super) environment: BTreeMap<String, String>,
    namespace: Option<&'static str>,
    pub(super) seed: u64,
    pub(super) tune: fn(&mut Options),
    pub(super) installing: Option<bool>,
}

impl Default for Scenario {
    /// Runs on either cluster, with all kinds and a running operator.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    fn default() -> Self {
        let environment = case::default_environment().unwrap_or_else(|error| panic!("{error:#}"));
        Self {
            needs: Needs::Either,
            why: "",
            idle: false,
            bare: false,
            gateway: false,
            environment,
            namespace: None,
            seed: 0,
            tune: |_| {},
            installing: None,
        }
    }
}

impl Scenario {
    /// Runs only on the embedded cluster, for the given reason.
    pub fn embedded(why: &'static str) -> Self {
        Self { needs: Needs::Embedded, why, ..Self::default() }
    }

    /// Runs only on a real control plane, for the given reason.
    pub fn real(why: &'static str) -> Self {
        Self { needs: Needs::Real, why, ..Self::default() }
    }

    /// Starts no operator; the test does.
    #[must_use]
    pub fn idle(mut self) -> Self {
        self.idle = true;
        self
    }

    /// Installs no definitions and starts no operator.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self.idle = true;
        self
    }

    /// Serves `HTTPRoutes`.
    #[must_use]
    pub fn gateway(mut self) -> Self {
        self.gateway = true;
        self
    }

    /// Sets the operator's environment.
    #[must_use]
    pub fn environment(mut self, environment: &BTreeMap<String, String>) -> Self {
        self.environment.clone_from(environment);
        self
    }

    /// Sets the namespace, on an embedded cluster.
    #[must_use]
    pub fn within(mut self, namespace: &'static str) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Sets the seed of all random values, on an embedded cluster.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Lets the operator install policies from ConfigMaps in its own namespace, and with `in_namespaces` in other
    /// namespaces, too.
    #[must_use]
    pub fn installing(mut self, in_namespaces: bool) -> Self {
        self.installing = Some(in_namespaces);
        self
    }

    /// Changes the operator's options.
    #[must_use]
    pub fn tuned(mut self, tune: fn(&mut Options)) -> Self {
        self.tune = tune;
        self
    }
}

fn kubeconfig() -> Option<PathBuf> {
    std::env::var_os("KAOS_TEST_KUBECONFIG").map(PathBuf::from)
}

/// Whether tests run on a real control plane.
pub fn is_real() -> bool {
    kubeconfig().is_some()
}

/// Runs a test's story, on an embedded cluster in simulated time or on the real one.
///
/// # Panics
/// If the story or its setup fails, or if a planned fault had no hit.
#[expect(clippy::panic, reason = "that is how a test fails")]
pub fn play(scenario: Scenario, story: impl AsyncFnOnce(&World)) {
    let real = kubeconfig();
    let skipped = match scenario.needs {
        Needs::Either => false,
        Needs::Embedded => real.is_some(),
        Needs::Real => real.is_none(),
    };
    if skipped {
        eprintln!("skipped: {}", scenario.why);
        return;
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(real.is_none());
    let runtime = runtime.build().unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(watchdog::within(REAL_TIME, async {
        let idle = scenario.idle;
        let set = match real {
            None => embedded(scenario).await,
            Some(path) => on_control_plane(scenario, path).await,
        };
        let world = set.unwrap_or_else(|error| panic!("the stage cannot be set: {error:#}"));
        watchdog::on_bark(world.last_words());
        if !idle {
            world.start().await;
        }
        story(&world).await;
        none_missed(world.missed());
        world.stop_all().await;
        if world.try_embedded().is_none() {
            world.delete(&format!("Namespace/{}", world.namespace)).await;
        }
    }));
}

async fn embedded(scenario: Scenario) -> Result<World> {
    let epoch = "2026-01-01T00:00:00Z";
    let clock = TokioClock::starting_at(epoch.parse()?);
    let script = Script::default();
    let cluster = Cluster::builder().seed(scenario.seed).clock(clock).faults(script.clone()).start();
    let namespace = scenario.namespace.unwrap_or("test").to_owned();
    let client = Client::new(cluster.service(), namespace.clone());
    let setting = Setting::new(&scenario, Clock::starting_at(epoch.parse()?));
    let world = World::new(client, namespace, Below::Embedded(cluster), script, setting);
    furnish(&world, &scenario).await?;
    world.embedded().settled().await;
    Ok(world)
}

async fn on_control_plane(scenario: Scenario, path: PathBuf) -> Result<World> {
    let config = Kubeconfig::read_from(&path).with_context(|| path.display().to_string())?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config.clone())?;
    let namespace = own_namespace();
    let mut setting = Setting::new(&scenario, Clock::System);
    setting.only_in(&namespace, config.clone());
    let mut world = World::new(client, namespace, Below::Real, Script::default(), setting);
    furnish(&world, &scenario).await?;
    let own = account::config(&world, &config, &world.setting.options()).await?;
    world.setting.only_in(&world.namespace, own);
    Ok(world)
}

/// A namespace that no other test uses, now or in an earlier run.
fn own_namespace() -> String {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("test").rsplit("::").next().unwrap_or("test").replace('_', "-");
    let short: String = test.chars().take(40).collect();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", short.trim_matches('-'), since.as_millis() % 100_000_000)
}

/// Creates namespaces, definitions and the registry of runtimes.
async fn furnish(world: &World, scenario: &Scenario) -> Result<()> {
    for name in [SYSTEM, &world.namespace] {
        world.try_apply(&samples::namespace(name)).await?;
    }
    for object in registry()? {
        world.try_apply(&object).await?;
    }
    if !scenario.bare {
        world.install_definitions(scenario.gateway).await?;
    }
    Ok(())
}

/// The registry of harness runtimes, which every test needs.
fn registry() -> Result<Vec<Value>> {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let read = case::documents(&case::golden().join("runtimes.yaml"))?;
    Ok(READ.get_or_init(|| read).clone())
}

/// The group and the plural of CustomResourceDefinitions.
const DEFINING: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

/// The definitions of all KAOS kinds and of the test kinds.
pub fn definitions() -> Result<Vec<Value>> {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let texts = kaos_crds::manifests::ALL.iter().copied().chain([crate::gadget::DEFINITION]);
    let read = texts.map(|text| Ok(serde_saphyr::from_str(text)?)).collect::<Result<Vec<_>>>()?;
    Ok(READ.get_or_init(|| read).clone())
}

/// The part of the Gateway API's definition that an HTTPRoute needs.
pub fn routes() -> Value {
    let mut routes = samples::definition("gateway.networking.k8s.io", "httproutes", "HTTPRoute");
    let approved = "https://github.com/kubernetes-sigs/gateway-api/pull/2466";
    routes["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": approved});
    routes
}

impl World {
    /// Wraps a real cluster as it is: installs nothing, and starts no operator.
    pub fn over(client: Client, namespace: &str) -> Self {
        let scenario = Scenario::default().environment(&BTreeMap::new());
        let setting = Setting::new(&scenario, Clock::System);
        Self::new(client, namespace.to_owned(), Below::Real, Script::default(), setting)
    }

    /// Creates a world without an operator.
    fn new(client: Client, namespace: String, below: Below, script: Script, setting: Setting) -> Self {
        let (crash_point, running) = (CrashPoint::default(), RefCell::default());
        Self { client, namespace, below, crash_point, script, setting, running }
    }

    /// Installs the definitions, and waits until they are served.
    pub async fn install_definitions(&self, gateway: bool) -> Result<()> {
        let mut all = definitions()?;
        if gateway {
            all.push(routes());
        }
        for definition in &all {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            match self.try_embedded() {
                // Plants large definitions directly, because every test installs them.
                Some(cluster) if cluster.object(DEFINING, DEFINITIONS, "", name).is_none() => {
                    let mut definition = definition.clone();
                    // The server would set this generation. The operator rereads a definition without a generation
                    // after every change.
                    definition["metadata"]["generation"] = json!(1);
                    drop(cluster.plant(DEFINING, DEFINITIONS, definition));
                }
                _ => drop(self.try_apply(definition).await?),
            }
            self.until("it is served", &format!("CustomResourceDefinition/{name}"), |crd| {
                super::condition(crd, "Established")["status"] == "True"
            })
            .await;
        }
        Ok(())
    }
}
