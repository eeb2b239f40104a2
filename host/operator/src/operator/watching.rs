//! Tasks that end together with the operator.

use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::watch::Watch;

/// Aborts a task when this value is dropped. So the task ends even if no other code stops it.
pub(super) struct Tied(pub(super) AbortHandle);

impl Drop for Tied {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The task of the watches. The task ends when this value is dropped.
pub(super) struct Watching {
    pub(super) stop: CancellationToken,
    pub(super) task: JoinHandle<()>,
    _ends_with_this: Tied,
}

impl Watching {
    pub(super) fn start(watch: &Watch) -> Self {
        let (watch, stop) = (watch.clone(), CancellationToken::new());
        let task = tokio::spawn({
            let stop = stop.clone();
            async move { watch.run(stop).await }
        });
        let tied = Tied(task.abort_handle());
        Self { stop, task, _ends_with_this: tied }
    }
}
