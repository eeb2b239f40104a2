//! Asks the API server about rights in the background. The lifecycle goes on with other revisions meanwhile. A question
//! ends early when its package is deleted.

use std::{collections::BTreeMap, sync::Arc};

use kube::Client;
use tokio::{
    sync::{Notify, Semaphore, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{
    StepError,
    checks::{Over, Stand},
    rights::{Wanted, missing},
};

/// The number of namespaces to ask about at once for all policies of tenants. The policies of the operator's own
/// namespace have the same number for themselves, so that they wait for no tenant.
const AT_ONCE: usize = 8;

/// The missing rights, as text.
pub(super) type Missing = Result<Vec<String>, StepError>;

/// All questions.
pub(super) struct Questions {
    client: Client,
    home: String,
    under_way: BTreeMap<String, Question>,
    permits: [Arc<Semaphore>; 2],
    ended: Arc<Notify>,
}

/// A question. It ends when this value is dropped.
struct Question {
    over: CancellationToken,
    answer: oneshot::Receiver<Missing>,
    task: JoinHandle<()>,
}

impl Drop for Question {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Questions {
    /// Creates the value without any question. `home` is the operator's namespace.
    pub(super) fn new(client: Client, home: &str) -> Self {
        let permits = [(); 2].map(|()| Arc::new(Semaphore::new(AT_ONCE)));
        Self { client, home: home.to_owned(), under_way: BTreeMap::new(), permits, ended: Arc::default() }
    }

    /// Waits until a question is answered.
    pub(super) async fn changed(&self) {
        self.ended.notified().await;
    }

    /// Returns the progress of the question of a revision.
    pub(super) fn stand(&self, revision: &str) -> Stand {
        match self.under_way.get(revision) {
            None => Stand::Open,
            Some(question) if question.over.is_cancelled() => Stand::Ended,
            Some(_) => Stand::UnderWay,
        }
    }

    /// Starts to ask which of these rights the operator lacks, for a revision from a namespace.
    pub(super) fn begin(&mut self, revision: &str, namespace: &str, wanted: Vec<Wanted>) {
        let permits = Arc::clone(&self.permits[usize::from(namespace == self.home)]);
        let (client, over, (tells, answer)) = (self.client.clone(), CancellationToken::new(), oneshot::channel());
        let tells_end = Over::new(over.clone(), Arc::clone(&self.ended));
        let task = tokio::spawn(async move {
            let _tells_end = tells_end;
            let _ = tells.send(missing(&client, &wanted, &permits).await);
        });
        self.under_way.insert(revision.to_owned(), Question { over, answer, task });
    }

    /// Takes the answer for a revision. Returns `None` if there is none yet.
    pub(super) fn take(&mut self, revision: &str) -> Option<Missing> {
        if !matches!(self.stand(revision), Stand::Ended) {
            return None;
        }
        self.under_way.remove(revision)?.answer.try_recv().ok()
    }

    /// Ends the questions of revisions that are no longer wanted.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.under_way.retain(|revision, _| is_wanted(revision));
    }
}
