//! Runs the operator: the watch reports changes, the queue decides which object is next, and workers run passes.
//!
//! Other modules contain leader election, the HTTP server and the command line. A process calls [`Operator::run`] only
//! while this process is allowed to write. Before that, a process can call [`Operator::stand_by`].

mod options;
mod probe;
mod proof_keeper;
mod rollout;
mod standby;
mod tools;
mod waker;
mod watching;
mod workers;

use std::{sync::Arc, time::Duration};

use kaos_policy::{contract::Cluster, render::DecisionKey};
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use options::{Options, RECORD};
pub use probe::Probe;
use proof_keeper::ProofKeeper;
use tools::tools;
use waker::Waker;
use watching::{Tied, Watching};

use crate::{
    budgets::Budgets,
    catalogue::{Catalogue, Installing, Renderers, installed},
    decision_point::{Keeper, News},
    events::EventWriter,
    metrics::Metrics,
    preview::Changes,
    processors::Processors,
    proofs::Proofs,
    queue::Queue,
    reconcile::{Access, Context, DeclaredFields, Memories, PolicyCalls, PolicyRunner, Rules, SyncGate},
    record::{Recorder, RecorderSize},
    watch::{ObjectKey, Scope, Watch},
};
pub use crate::{clock::Clock, processors::Compute};

/// The minimum time at shutdown for recording interrupted policy checks.
const SHUTDOWN_RECORD_TIME: Duration = Duration::from_secs(1);

/// The maximum time at shutdown for recording which objects are settled. Meanwhile, the operator still holds its Lease.
const SHUTDOWN_PROOFS_TIME: Duration = Duration::from_secs(4);

/// The maximum number of budgets that the metrics show. A cluster can have thousands of namespaces, each with a budget
/// for each kind.
const SPENDINGS: usize = 20;

/// The error of an operator that stopped without a request, because a task ended unexpectedly.
#[derive(Debug, thiserror::Error)]
#[error("{0} ended unexpectedly")]
pub struct OperatorError(&'static str);

/// The operator.
pub struct Operator {
    context: Arc<Context>,
    queue: Queue,
    options: Options,
    installing: Option<Installing>,
    waker: Arc<Waker>,
    /// The watches that this process started while it waited for the Lease; `None` if it did not wait.
    watching: Option<Watching>,
}

impl Operator {
    /// Creates an operator that does nothing yet.
    pub fn new(client: Client, catalogue: Arc<Catalogue>, metrics: Arc<Metrics>, options: Options) -> Self {
        // Even if many objects of one namespace wait for slow answers, one worker stays free for other namespaces.
        let share = options.workers.saturating_sub(1);
        let queue = Queue::new(options.backoff, options.pace, options.seed).sharing(share);
        metrics.everywhere(options.namespaces == Scope::All);
        metrics.before_encoding({
            let queue = queue.clone();
            move |metrics| metrics.queue(queue.depth(), queue.oldest_age())
        });
        let waker = Arc::new(Waker::new(queue.clone()));
        let wake = {
            let waker = Arc::clone(&waker);
            move |key: ObjectKey, urgency| waker.wake(&key, urgency)
        };
        let watch = Watch::new(client.clone(), options.watch(), metrics.clone(), wake);
        let cluster = Cluster {
            domain: options.cluster_domain.clone(),
            operator_namespace: options.operator_namespace.clone(),
            served: Vec::new(),
        };
        let memories = Memories::default();
        let events = Arc::new(EventWriter::new(client.clone(), options.instance.clone()));
        let runner = PolicyRunner {
            catalogue,
            renderers: Renderers::new(
                cluster,
                options.user_privileges,
                options.grantable.privileges.clone(),
                options.memo,
                Arc::new(PolicyCalls { metrics: Arc::clone(&metrics) }),
            )
            .with_decision_key(DecisionKey::new(&options.decision_key.0)),
            watch: watch.clone(),
            memories: memories.clone(),
            metrics,
            hashes_references: options.secrets,
            processors: Processors::of_this_machine(options.compute),
            recorder: Arc::new(Recorder::new(options.record)),
            budgets: Arc::new(Budgets::new(options.budget)),
            clock: options.clock,
            stopping: CancellationToken::new(),
        };
        let context = Arc::new(Context {
            runner,
            access: Access { client, watch, events, clock: options.clock },
            memories,
            sync_gate: SyncGate::default(),
            declared_fields: DeclaredFields::default(),
            rules: Rules { resync: options.resync, cleanup: options.cleanup },
            proofs: (options.proofs && options.namespaces == Scope::All).then(|| Proofs::new(options.seen())),
        });
        let weak = Arc::downgrade(&context);
        context.runner.metrics.before_encoding(move |metrics| {
            let Some(context) = weak.upgrade() else { return };
            metrics.awaiting_policy(&context.awaiting_policy());
            metrics.objects(&context.tallies());
            let (budgets, now) = (&context.runner.budgets, tokio::time::Instant::now());
            metrics.spending(&budgets.largest(now, SPENDINGS), budgets.waiting(now));
            let RecorderSize { cases, bytes, dropped } = context.runner.recorder.size(context.runner.clock.now());
            metrics.recorded(cases, bytes, dropped);
        });
        Self { context, queue, options, installing: None, waker, watching: None }
    }

    /// Makes the operator install packages from ConfigMaps while it runs. The installed policies replace the content of
    /// the catalogue.
    #[must_use]
    pub fn installing(mut self, installing: Installing) -> Self {
        let gatekeeper = installing.gatekeeper.measured(&self.context.runner.metrics);
        self.installing = Some(Installing { gatekeeper, ..installing });
        self
    }

    /// Returns a probe, which shows the state of the operator to other tasks.
    pub fn probe(&self) -> Probe {
        Probe::new(Arc::clone(&self.context), self.queue.clone())
    }

    /// Reconciles until `stop` is cancelled. After the cancellation, running passes have the time [`Options::grace`] to
    /// finish.
    pub async fn run(self, stop: CancellationToken) -> Result<(), OperatorError> {
        let Self { context, queue, options, installing, waker, watching } = self;
        let (news, changes) = (Arc::clone(&waker.news), Arc::clone(&waker.changes));
        let mut revisions = context.runner.catalogue.revisions();
        let laid_down = CancellationToken::new();
        let mut installed = JoinSet::new();
        installed.spawn(install(&context, &options, installing, changes, laid_down.clone()));
        let begins = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            began = revisions.wait_for(|revision| *revision > 0) => began.is_ok(),
        };
        if !begins {
            laid_down.cancel();
            drop(tokio::time::timeout(options.grace, installed.join_next()).await);
            return Ok(());
        }
        rollout::cover_first(&context, &options.left_out);
        // The watch outlives the workers, because running passes use its data.
        let mut watching = watching.unwrap_or_else(|| Watching::start(&context.access.watch));
        let mut swaps =
            tokio::spawn(rollout::follow(Arc::clone(&context), queue.clone(), revisions, options.left_out.clone()));
        let mut kept = tokio::spawn(keep(&context, &options, news));
        let (recorder, clock) = (Arc::clone(&context.runner.recorder), context.runner.clock);
        let dropped = tokio::spawn(async move { recorder.drop_old(clock).await });
        let tasks = [swaps.abort_handle(), kept.abort_handle(), dropped.abort_handle()];
        let _ends_with_this = tasks.map(Tied);
        let mut keeper = ProofKeeper::new(&context, &queue, &options.operator_namespace);
        if let Some(keeper) = &mut keeper {
            stop.run_until_cancelled(keeper.load()).await;
        }
        let proven = CancellationToken::new();
        let keeper = keeper.map(|keeper| tokio::spawn(keeper.keep(proven.clone())));
        let _keeper_ends_with_this = keeper.as_ref().map(|keeper| Tied(keeper.abort_handle()));
        let mut workers = JoinSet::new();
        for _ in 0..options.workers.max(1) {
            workers.spawn(workers::work(Arc::clone(&context), queue.clone(), options.pass_deadline));
        }
        let ended = tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            _ = &mut watching.task => Err(OperatorError("the watch")),
            _ = &mut swaps => Err(OperatorError("the task that follows the catalogue")),
            _ = &mut kept => Err(OperatorError("the task for the decision point")),
            _ = workers.join_next() => Err(OperatorError("a worker")),
            _ = installed.join_next() => Err(OperatorError("the task for installed policies")),
        };
        laid_down.cancel();
        context.runner.stopping.cancel();
        queue.close();
        swaps.abort();
        kept.abort();
        let deadline = tokio::time::Instant::now() + options.grace;
        let finish = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout_at(deadline, finish).await.is_err() {
            tracing::warn!("aborting passes that did not finish in time");
            workers.shutdown().await;
        }
        watching.stop.cancel();
        if ended.is_ok() {
            proven.cancel();
            let deadline = deadline.max(tokio::time::Instant::now() + SHUTDOWN_RECORD_TIME);
            if tokio::time::timeout_at(deadline, installed.join_next()).await.is_err() {
                tracing::warn!(
                    "no time was left to record the policy checks that still run; their status will be Interrupted"
                );
                installed.shutdown().await;
            }
            // Limit the time, because the next process waits until this process releases the Lease.
            let deadline = deadline.min(tokio::time::Instant::now() + SHUTDOWN_PROOFS_TIME);
            if let Some(keeper) = keeper
                && tokio::time::timeout_at(deadline, keeper).await.is_err()
            {
                tracing::warn!("no time was left to record which objects are settled");
            }
            drop((&mut watching.task).await);
        }
        ended
    }
}

/// Returns the task that writes the objects for the decision point. Without a decision point, the task does nothing.
/// The task never ends.
fn keep(context: &Arc<Context>, options: &Options, news: Arc<News>) -> impl Future<Output = ()> + Send + 'static {
    let keeper = options.decision_point.clone().map(|decision_point| Keeper {
        client: context.access.client.clone(),
        watch: context.access.watch.clone(),
        news,
        home: options.operator_namespace.clone(),
        scope: options.namespaces.clone(),
        options: decision_point,
    });
    async move {
        match keeper {
            Some(keeper) => keeper.keep().await,
            None => std::future::pending().await,
        }
    }
}

/// Returns the task that handles installed policies. The task only waits if the operator takes no policies from
/// ConfigMaps. The task ends only when `stop` is cancelled.
fn install(
    context: &Arc<Context>,
    options: &Options,
    installing: Option<Installing>,
    changes: Arc<Changes>,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send + 'static {
    let tools = tools(context, options, installing.as_ref(), changes);
    async move {
        match installing {
            Some(installing) => Box::pin(installed::run(tools, installing, stop)).await,
            None => stop.cancelled().await,
        }
    }
}
