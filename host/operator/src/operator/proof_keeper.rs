//! Stores the proofs that objects are settled. At the start, reads the proofs of the last process. In quiet times and
//! at shutdown, writes the proofs of this process.
//!
//! If the last pass over an object wrote something, the object has no proof. So in a quiet time, the keeper first
//! requests another pass over each object without a proof. The keeper does this only once before each write, so an
//! object that never settles does not delay the proofs of other objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kaos_policy::contract::Followed;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    proofs::{Proof, ProofStore, Proofs, digest_of_program, parts},
    queue::{Queue, Urgency},
    reconcile::Context,
    watch::ObjectKey,
};

/// The delay between two checks of the queue. A quiet time begins when two checks in a row find the queue empty.
const LOOK: Duration = Duration::from_secs(30);
/// The minimum time between two writes of the proofs.
const WRITE_PAUSE: Duration = Duration::from_mins(10);
/// The delay between two checks whether the watch has read the CRDs, which define the kinds.
const BEAT: Duration = Duration::from_millis(50);
/// The maximum time for reading the proofs, and for reading the CRDs. Without the proofs, the operator asks the
/// policies about all objects.
const LOAD_TIME: Duration = Duration::from_secs(30);

/// Stores the proofs of one operator.
pub(super) struct ProofKeeper {
    context: Arc<Context>,
    proofs: Arc<Proofs>,
    queue: Queue,
    store: ProofStore,
    /// Whether this process has read the proofs of the last process.
    has_read: bool,
}

impl ProofKeeper {
    /// Returns `None` if the operator makes no proofs.
    pub(super) fn new(context: &Arc<Context>, queue: &Queue, namespace: &str) -> Option<Self> {
        let proofs = Arc::clone(context.proofs.as_ref()?);
        let store = ProofStore::new(context.access.client.clone(), namespace);
        Some(Self { context: Arc::clone(context), proofs, queue: queue.clone(), store, has_read: false })
    }

    /// Reads the proofs of the last process, and waits until the watch has read the CRDs. The first pass starts only
    /// after this function.
    pub(super) async fn load(&mut self) {
        // Let the digest of the program take any time: on a busy processor, asking the policies would take even longer.
        if let Some(program) = self.context.runner.processors.run(false, digest_of_program).await {
            self.proofs.set_program(program);
        }
        let asking = "asking the policies about all objects";
        match timeout(LOAD_TIME, self.recall()).await {
            Ok(Ok(count)) => {
                self.has_read = true;
                tracing::info!(count, "read the records of settled objects");
            }
            Ok(Err(error)) => tracing::warn!(%error, "could not read the records of settled objects; {asking}"),
            Err(_) => tracing::warn!("reading the records of settled objects took too long; {asking}"),
        }
        if timeout(LOAD_TIME, self.definitions()).await.is_err() {
            tracing::warn!("listing the CustomResourceDefinitions took too long; {asking}");
        }
    }

    async fn recall(&self) -> kube::Result<usize> {
        let Some(program) = self.proofs.program() else { return Ok(0) };
        let recorded = self.store.load(program).await?;
        let count = recorded.len();
        self.proofs.recall(recorded);
        Ok(count)
    }

    /// Waits until the watch has read the CRDs. Before that, no proof is valid, and no pass can make a proof.
    async fn definitions(&self) {
        while !self.context.access.watch.has_answer_about_definitions() {
            tokio::time::sleep(BEAT).await;
        }
    }

    /// Writes the proofs in quiet times, until `stop` is cancelled. Then writes them for the last time.
    pub(super) async fn keep(mut self, stop: CancellationToken) {
        let (mut quiet_looks, mut has_asked, mut written) = (0_u32, false, None::<Instant>);
        loop {
            if stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_none() {
                // Leave the stored proofs unchanged if this process could not read them, and had no quiet time to write
                // its own: it may have only a few new proofs.
                if self.has_read || written.is_some() {
                    self.write(true).await;
                }
                return;
            }
            let is_quiet = self.queue.depth() == 0 && self.context.access.watch.synced().is_ok();
            quiet_looks = if is_quiet { quiet_looks + 1 } else { 0 };
            if quiet_looks < 2 || written.is_some_and(|written| written.elapsed() < WRITE_PAUSE) {
                continue;
            }
            let unproven = if has_asked { Vec::new() } else { self.context.memories.unproven() };
            if unproven.is_empty() {
                self.proofs.forget_all();
                self.write(false).await;
                (has_asked, written) = (false, Some(Instant::now()));
            } else {
                self.proofs.want(unproven.iter().cloned());
                for key in &unproven {
                    self.queue.add(key, Urgency::Paced);
                }
                (has_asked, quiet_looks) = (true, 0);
            }
        }
    }

    async fn write(&mut self, is_last: bool) {
        let Some(program) = self.proofs.program() else { return };
        let proofs = self.collect();
        let written = match self.context.runner.processors.run(false, move || parts(program, &proofs)).await {
            Ok(parts) => self.store.keep(&parts, is_last).await,
            Err(error) => Err(kube::Error::Service(error.into())),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "could not record which objects are settled; the next process asks the policies about them");
        }
    }

    /// Collects the proofs of this process, and earlier proofs of objects that had no pass in this process yet. Objects
    /// with equal needs share one copy of the list of needs.
    fn collect(&self) -> BTreeMap<ObjectKey, Proof> {
        let mut distinct: BTreeSet<Arc<[Followed]>> = BTreeSet::new();
        let mut proofs = self.proofs.unused();
        for (key, digest) in self.context.memories.proven() {
            let needs: Arc<[Followed]> = self.context.access.watch.needs_of(&key).into();
            let shared = distinct.get(&needs).cloned();
            let needs = shared.unwrap_or_else(|| {
                distinct.insert(Arc::clone(&needs));
                needs
            });
            proofs.insert(key, Proof { needs, digest });
        }
        proofs
    }
}
