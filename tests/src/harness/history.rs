//! Records every state of an object. So a test also notices a value that changes only for a short time.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::World;
use super::kinds::At;

/// The states of one object since the recording began. The oldest state is first.
pub struct History {
    states: Arc<Mutex<Vec<Value>>>,
    follower: JoinHandle<()>,
}

impl History {
    /// Returns the states so far.
    pub fn states(&self) -> Vec<Value> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl World {
    /// Starts to record an object's states.
    pub async fn history(&self, at: &str) -> History {
        let At { kind, namespace, name } = At::parse(at, &self.namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut stream = watcher(self.api(kind, &namespace), config).default_backoff().touched_objects().boxed();
        let states: Arc<Mutex<Vec<Value>>> = Arc::default();
        let follower = tokio::spawn({
            let states = Arc::clone(&states);
            async move {
                while let Some(next) = stream.next().await {
                    let state = next.ok().and_then(|object| serde_json::to_value(object).ok());
                    states.lock().unwrap_or_else(PoisonError::into_inner).extend(state);
                }
            }
        });
        let history = History { states, follower };
        self.until_true("the history contains a state", async || !history.states().is_empty()).await;
        history
    }
}
