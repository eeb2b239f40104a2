//! `run`: runs the operator as a process.
//!
//! Errors in flags, settings and policies end the process before it reconciles. Two problems do not end the process:
//!
//! - The API server does not respond. The process waits, so that users can start the operator and the API server in any
//!   order.
//! - The operator's own ConfigMap contains errors. This also applies if the process gets the values of this ConfigMap
//!   from its environment. The operator reports these errors while it runs, because the ConfigMap may also become
//!   invalid later.

mod board;
mod flags;
mod logs;
mod signals;
#[cfg(feature = "otlp")]
mod traces;
mod unanswered;

use std::{convert::Infallible, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::{
    contract::Cluster,
    gate::{self, SizeClass},
    settings::{Layer, Origin},
};
use kube::{Api, Client, Config};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{HELD_BACK, settings};
use crate::{
    backoff::Backoff,
    catalogue::{Catalogue, Defaults, Installing, Offer, told_apart, try_settings},
    client::{self, CallLayer},
    config_maps::OPERATOR_CONFIG,
    error_text::with_causes,
    leader_election::{Election, Fence, LeaseGuard, Timing, identity},
    metrics::Metrics,
    operator::{Operator, Options},
    policies::{Loaded, Loader, packages, select},
    serve::{Listeners, Pages, Report},
};
use board::{Board, ProcessStage};
pub(super) use flags::Run;

/// Pauses between attempts to reach the API server.
const REACHING: Backoff = Backoff { first: Duration::from_millis(250), max: Duration::from_secs(10) };
/// Pause after an error before the process reads the operator's own ConfigMap again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Time limit for releasing the Lease. If the release fails, the next replica waits until the Lease expires.
const RELEASE: Duration = Duration::from_secs(2);
/// Time limit for HTTP answers that are not finished when the process ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

impl Run {
    /// Runs until a signal arrives or the Lease is lost.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (options, timing) = (self.options()?, self.timing()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        #[cfg(feature = "otlp")]
        let traces = traces::Traces::of_environment(runtime.handle())?;
        #[cfg(feature = "otlp")]
        logs::start(&self, traces.as_ref().map(traces::Traces::layer))?;
        #[cfg(not(feature = "otlp"))]
        logs::start(&self, None)?;
        let ended = runtime.block_on(self.start(options, timing));
        #[cfg(feature = "otlp")]
        traces.into_iter().for_each(traces::Traces::finish);
        // Computations that still run must not delay the end of the process.
        runtime.shutdown_background();
        ended
    }

    async fn start(self, options: Options, timing: Timing) -> anyhow::Result<ExitCode> {
        let stop = CancellationToken::new();
        signals::stop_on_signals(stop.clone())?;
        let (metrics, board) = (Arc::new(Metrics::new()), Arc::new(Board::new()));
        let (counted, probed) = (self.metrics_bind_address, self.health_probe_bind_address);
        let listeners = Listeners::bind(counted, probed, self.debug_bind_address).await?;
        let at = |pages| listeners.address(pages).map_or("0".to_owned(), |address| address.to_string());
        let (counted, probed, explained) = (at(Pages::Metrics), at(Pages::Health), at(Pages::Debug));
        info!(version = env!("CARGO_PKG_VERSION"), metrics = counted, health = probed, debug = explained, "serving");
        let serving = CancellationToken::new();
        let report: Arc<dyn Report> = Arc::clone(&board) as _;
        let server = tokio::spawn(listeners.serve(Arc::clone(&metrics), report, serving.clone()));

        let ended = Box::pin(self.work(options, timing, &metrics, &board, &stop)).await;
        serving.cancel();
        // A client that sent an incomplete request must not delay the end of the process.
        if let Ok(served) = tokio::time::timeout(LAST_ANSWERS, server).await {
            served?;
        }
        ended
    }

    async fn work(
        self,
        options: Options,
        timing: Timing,
        metrics: &Arc<Metrics>,
        board: &Board,
        stop: &CancellationToken,
    ) -> anyhow::Result<ExitCode> {
        let Self {
            connection,
            mut read_namespaces,
            decision_point,
            policies,
            settings,
            set,
            compatibility,
            leader_elect,
            request_deadline,
            namespace_policies,
            default_policies_rollout,
            grantable,
            ..
        } = self;
        let cluster = Cluster {
            domain: options.cluster_domain.clone(),
            operator_namespace: options.operator_namespace.clone(),
            served: Vec::new(),
        };
        read_namespaces.extend(decision_point.read());
        let size = grantable.size();
        let loading = tokio::task::spawn_blocking(move || {
            let (loader, loaded, layers) =
                brought_along(cluster, size, &read_namespaces, &policies, settings.as_deref(), &set)?;
            let defaults = Defaults {
                policies: packages(&loaded, &policies)?,
                rollout: default_policies_rollout,
                reads: read_namespaces.into_iter().collect(),
            };
            anyhow::Ok((loader, loaded, compatibility.over(layers)?, defaults))
        });
        // Compilation takes some time, so a signal must interrupt the compilation.
        let Some(loading) = stop.run_until_cancelled(loading).await else { return Ok(ExitCode::SUCCESS) };
        let (loader, loaded, settings, defaults) = loading??;
        let config = connection.place().config().await?;
        let fence = if leader_elect { Fence::closed_at_first() } else { Fence::open() };
        let layer = CallLayer { deadline: request_deadline, fence: fence.clone(), metrics: metrics.clone() };
        let client = client::connect(config.clone(), &layer)?;
        let url = config.cluster_url.to_string();
        let Some(is_newer) = stop.run_until_cancelled(reach(&client, &url, board)).await else {
            return Ok(ExitCode::SUCCESS);
        };
        let apart = tell_apart(&client, &options.operator_namespace, settings);
        let Some(settings) = stop.run_until_cancelled(apart).await else { return Ok(ExitCode::SUCCESS) };
        if is_newer {
            loader.expect_newer();
        }
        let claims = || loaded.iter().flat_map(|loaded| &loaded.policy.descriptor().claims);
        let answered = claims().map(|claim| claim.primary.kind.clone()).collect();
        // The process does not wait for the answer, because only the log needs it.
        tokio::spawn(unanswered::tell_unanswered(client.clone(), answered));
        let installing =
            tokio::task::spawn_blocking(move || installing(&loader, &loaded, settings, namespace_policies));
        // The trial of the settings on samples takes some time, so a signal must interrupt the trial.
        let Some(installing) = stop.run_until_cancelled(installing).await else { return Ok(ExitCode::SUCCESS) };
        let installing = Installing { defaults, ..installing?? };
        let namespace = options.operator_namespace.clone();
        let catalogue = Arc::new(Catalogue::default());
        let mut operator = Operator::new(client, catalogue, Arc::clone(metrics), options).installing(installing);
        let held = if leader_elect {
            let election = election(config, &layer, timing, &namespace)?;
            board.set(ProcessStage::Waiting(election.standing(), operator.probe()));
            match stop.run_until_cancelled(operator.stand_by(election.win())).await {
                None => return Ok(ExitCode::SUCCESS),
                Some(held) => Some(held),
            }
        } else {
            None
        };
        metrics.leader(true);
        board.set(ProcessStage::Working(operator.probe()));
        reconcile(operator, held, board, stop).await
    }
}

/// Reconciles until this process stops, or loses the Lease and must no longer write.
async fn reconcile(
    operator: Operator,
    mut held: Option<LeaseGuard>,
    board: &Board,
    stop: &CancellationToken,
) -> anyhow::Result<ExitCode> {
    let stopping = async {
        stop.cancelled().await;
        board.set(ProcessStage::Stopping);
        std::future::pending::<Infallible>().await
    };
    let lost = async {
        match &mut held {
            Some(held) => held.keep().await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = operator.run(stop.clone()) => ended,
        lost = lost => {
            error!("{lost}: ending at once, so that two operators never write at the same time");
            return Ok(ExitCode::from(HELD_BACK));
        }
        never = stopping => match never {},
    };
    if let Some(held) = held {
        match tokio::time::timeout(RELEASE, held.release()).await {
            Ok(Ok(())) => info!("released the Lease"),
            Ok(Err(error)) => warn!("could not release the Lease, which will expire: {}", with_causes(&error)),
            Err(_) => {
                warn!(
                    "could not release the Lease, which will expire: the API server did not answer within {} s",
                    RELEASE.as_secs()
                );
            }
        }
    }
    ended?;
    info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Loads the policies and the settings that the user started this process with.
fn brought_along(
    cluster: Cluster,
    size: SizeClass,
    namespaces: &[String],
    policies: &[std::path::PathBuf],
    file: Option<&str>,
    set: &[String],
) -> anyhow::Result<(Loader, Vec<Loaded>, Vec<Layer>)> {
    let loader = Loader::lasting(cluster)?.accepting(size).reading(namespaces.iter().cloned());
    let loaded = loader.load(policies)?;
    let settings = settings::layers(&loaded, file, set)?;
    Ok((loader, loaded, settings))
}

/// Separates two sorts of values in the environment: copies from the operator's own ConfigMap, and all other values.
/// Returns the settings unchanged if the ConfigMap does not exist, or if the operator has no right to read it.
async fn tell_apart(client: &Client, namespace: &str, settings: Vec<Layer>) -> Vec<Layer> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    loop {
        match api.get_opt(OPERATOR_CONFIG).await {
            Ok(Some(config_map)) => return told_apart(settings, &config_map),
            Ok(None) => return settings,
            Err(kube::Error::Api(answer)) if answer.code == 403 => {
                let message = answer.message;
                warn!(
                    "the operator has no right to read ConfigMap {OPERATOR_CONFIG} ({message}), so the operator treats \
                     this ConfigMap's values in its environment like any other variable"
                );
                return settings;
            }
            // Try again: otherwise, the process would treat the ConfigMap's values as ordinary environment variables
            // until it ends.
            Err(error) => warn!("could not read ConfigMap {OPERATOR_CONFIG}; trying again: {}", with_causes(&error)),
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// Prepares the policies and settings of the process. The operator later adds installed policies and settings.
pub(super) fn installing(
    loader: &Loader,
    loaded: &[Loaded],
    settings: Vec<Layer>,
    in_namespaces: bool,
) -> anyhow::Result<Installing> {
    let stacks = select(loaded)?;
    // If settings in the environment, flags or files are invalid, fail now, so that the user who starts the process
    // sees the error. Invalid settings in the operator's own ConfigMap do not prevent the start: the operator reports
    // them at run time.
    let given: Vec<Layer> = settings.iter().filter(|layer| layer.origin != Origin::OperatorConfig).cloned().collect();
    drop(Catalogue::new(&stacks, &given)?);
    try_settings(&stacks, &given, &loader.cluster, &loader.server())
        .context("the cluster-wide settings do not fit the policies")?;
    let own = stacks.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
    Ok(Installing { own, settings, defaults: Defaults::default(), gatekeeper: loader.gatekeeper(), in_namespaces })
}

/// Waits until the API server answers. Returns whether the server may have fields that this program does not know.
async fn reach(client: &Client, url: &str, board: &Board) -> bool {
    let mut failures = 0_u32;
    board.set(ProcessStage::Starting(format!("the API server at {url} has not answered yet")));
    loop {
        match client.apiserver_version().await {
            Ok(version) => {
                info!(url, version = version.git_version, "the API server answers");
                return gate::is_newer(&version.major, &version.minor);
            }
            Err(error) => {
                let why = with_causes(&error);
                warn!(url, "the API server does not answer; trying again: {why}");
                board.set(ProcessStage::Starting(format!("the API server at {url} does not answer: {why}")));
            }
        }
        failures = failures.saturating_add(1);
        tokio::time::sleep(REACHING.full(failures)).await;
    }
}

/// Creates an election with its own client, so that neither the operator's writes nor the fence can block a renewal of
/// the Lease.
fn election(config: Config, layer: &CallLayer, timing: Timing, namespace: &str) -> anyhow::Result<Election> {
    let own = CallLayer { deadline: timing.renew_deadline, fence: Fence::open(), metrics: Arc::clone(&layer.metrics) };
    let client = client::connect(config, &own)?;
    Ok(Election::new(client, namespace, identity(), timing, layer.fence.clone()))
}
