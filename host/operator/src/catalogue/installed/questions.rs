//! Asks the API server about rights in the background.

use std::sync::Arc;

use kube::Client;
use tokio::sync::Semaphore;

use super::{
    StepError,
    background::{Background, Stand},
    rights::{WantedRights, missing},
};

/// The maximum number of concurrent questions for all policies of tenants together. Each question concerns one
/// namespace. The same limit applies separately to the policies of the operator's own namespace, so that the owner's
/// policies do not wait for tenants.
const AT_ONCE: usize = 8;

/// The answer: the missing rights, each as a text, or an error.
pub(super) type Missing = Result<Vec<String>, StepError>;

/// The questions that are running or answered.
pub(super) struct Questions {
    client: Client,
    home: String,
    asked: Background<Missing>,
    permits: [Arc<Semaphore>; 2],
}

impl Questions {
    /// Starts without any questions. `home` is the operator's namespace.
    pub(super) fn new(client: Client, home: &str) -> Self {
        let permits = [(); 2].map(|()| Arc::new(Semaphore::new(AT_ONCE)));
        Self { client, home: home.to_owned(), asked: Background::new(), permits }
    }

    /// Waits until a question is answered.
    pub(super) async fn changed(&self) {
        self.asked.changed().await;
    }

    /// Returns the progress of the question of a revision.
    pub(super) fn stand(&self, revision: &str) -> Stand {
        self.asked.stand(revision)
    }

    /// Starts to ask which of the `wanted` rights the operator lacks. `namespace` is the namespace of the revision.
    pub(super) fn begin(&mut self, revision: &str, namespace: &str, wanted: Vec<WantedRights>) {
        let (client, permits) = (self.client.clone(), Arc::clone(&self.permits[usize::from(namespace == self.home)]));
        self.asked.begin(revision, async move { missing(&client, &wanted, &permits).await });
    }

    /// Takes the answer for a revision. Returns `None` if there is no answer yet.
    pub(super) async fn take(&mut self, revision: &str) -> Option<Missing> {
        self.asked.take(revision).await
    }

    /// Ends the questions of revisions that are no longer wanted.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.asked.keep(is_wanted);
    }
}
