//! Runs background jobs, one for each revision. While a job runs, the lifecycle continues with other revisions. A job
//! ends early when its package is deleted.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// The progress of a background job for a revision.
pub(super) enum Stand {
    /// The job has not started, or was interrupted.
    Open,
    /// The job is running.
    UnderWay,
    /// Finished. The job ended, and the lifecycle did not take the result yet.
    Ended,
}

/// A value that reports that a background task has stopped, when the value is dropped.
pub(super) struct Over(CancellationToken, Arc<Notify>);

impl Over {
    /// Creates a value that, when it is dropped, cancels the token `over` and notifies `told`.
    pub(super) fn new(over: CancellationToken, told: Arc<Notify>) -> Self {
        Self(over, told)
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        self.0.cancel();
        self.1.notify_one();
    }
}

/// All background jobs of one sort.
pub(super) struct Background<T> {
    under_way: BTreeMap<String, Job<T>>,
    ended: Arc<Notify>,
}

/// The job for one revision. The job ends when this value is dropped.
struct Job<T> {
    over: CancellationToken,
    result: oneshot::Receiver<T>,
    task: JoinHandle<()>,
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<T: Send + 'static> Background<T> {
    /// Starts without any jobs.
    pub(super) fn new() -> Self {
        Self { under_way: BTreeMap::new(), ended: Arc::default() }
    }

    /// Waits until a job ends.
    pub(super) async fn changed(&self) {
        self.ended.notified().await;
    }

    /// Returns the progress of the job for a revision.
    pub(super) fn stand(&self, revision: &str) -> Stand {
        match self.under_way.get(revision) {
            None => Stand::Open,
            Some(job) if job.over.is_cancelled() => Stand::Ended,
            Some(_) => Stand::UnderWay,
        }
    }

    /// Returns the revisions with a running job.
    pub(super) fn running(&self) -> impl Iterator<Item = &String> {
        self.under_way.iter().filter(|(_, job)| !job.over.is_cancelled()).map(|(revision, _)| revision)
    }

    /// Starts the job for a revision. Ends an earlier job for the same revision.
    pub(super) fn begin(&mut self, revision: &str, work: impl Future<Output = T> + Send + 'static) {
        let (over, (tells, result)) = (CancellationToken::new(), oneshot::channel());
        let tells_end = Over::new(over.clone(), Arc::clone(&self.ended));
        let task = tokio::spawn(async move {
            let _tells_end = tells_end;
            let _ = tells.send(work.await);
        });
        self.under_way.insert(revision.to_owned(), Job { over, result, task });
    }

    /// Takes the result for a revision. Returns `None` if there is no result yet.
    pub(super) async fn take(&mut self, revision: &str) -> Option<T> {
        if !matches!(self.stand(revision), Stand::Ended) {
            return None;
        }
        let mut job = self.under_way.remove(revision)?;
        if let Ok(result) = job.result.try_recv() {
            return Some(result);
        }
        // If the job panicked, panic in the caller, too.
        let stopped = (&mut job.task).await.err()?;
        std::panic::resume_unwind(stopped.try_into_panic().ok()?)
    }

    /// Ends the jobs of revisions that are no longer wanted.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.under_way.retain(|revision, _| is_wanted(revision));
    }
}
