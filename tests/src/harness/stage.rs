//! Runs the code of a test on the cluster that the scenario needs. This code is the test's story.

use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use kaos_cluster::{Cluster, TokioClock};
use kaos_operator::operator::Clock;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::World;
use super::account;
use super::faults::{Script, none_missed};
use super::samples;
use super::scenario::{Needs, SYSTEM, Scenario, kubeconfig};
use super::setting::Setting;
use super::watchdog;
use super::world::Below;
use crate::case;

/// The maximum real time for a test. A limit in simulated time would not end a loop that never waits.
const REAL_TIME: std::time::Duration = std::time::Duration::from_mins(15);

/// Runs a test's story, either on an embedded cluster in simulated time, or on the real cluster.
///
/// # Panics
///
/// If the story or the setup fails, or if a planned fault hit no request.
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
        // Do not delete the test's namespace on a real cluster: for a deletion, the cluster sends two thousand
        // requests, many times more than a test. The namespace stays until the cluster ends.
        world.stop_all().await;
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

/// Returns a namespace that no other test uses, neither now nor in an earlier run.
fn own_namespace() -> String {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("test").rsplit("::").next().unwrap_or("test").replace('_', "-");
    let short: String = test.chars().take(40).collect();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", short.trim_matches('-'), since.as_millis() % 100_000_000)
}

/// Creates namespaces, CustomResourceDefinitions and the registry of runtimes. On a real cluster, each test has its own
/// namespace, but all tests share the other objects. Only the first test of a process creates the shared objects,
/// because creating the large CustomResourceDefinitions takes longer than the rest of a test.
async fn furnish(world: &World, scenario: &Scenario) -> Result<()> {
    static SYSTEM_NAMESPACE: OnceCell<()> = OnceCell::const_new();
    static DEFINITIONS: OnceCell<()> = OnceCell::const_new();
    static DEFINITIONS_WITH_ROUTES: OnceCell<()> = OnceCell::const_new();
    let is_shared = world.try_embedded().is_none();
    if is_shared {
        SYSTEM_NAMESPACE.get_or_try_init(|| furnish_system(world)).await?;
    } else {
        furnish_system(world).await?;
    }
    world.try_apply(&samples::namespace(&world.namespace)).await?;
    if scenario.bare {
        return Ok(());
    }
    let install = || world.install_definitions(scenario.gateway);
    let installed = if scenario.gateway { &DEFINITIONS_WITH_ROUTES } else { &DEFINITIONS };
    if is_shared { installed.get_or_try_init(install).await.copied() } else { install().await }
}

/// Creates the operator's namespace with the registry of runtimes.
async fn furnish_system(world: &World) -> Result<()> {
    world.try_apply(&samples::namespace(SYSTEM)).await?;
    for object in registry()? {
        world.try_apply(&object).await?;
    }
    Ok(())
}

/// Returns the ConfigMap with the registry of runtimes, which every test needs.
fn registry() -> Result<Vec<Value>> {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let read = case::documents(&case::golden().join("runtimes.yaml"))?;
    Ok(READ.get_or_init(|| read).clone())
}
