//! The task that runs the controllers. The task ends when the last handle of the cluster is dropped.

use std::sync::{Arc, Weak};

use tokio::{sync::Notify, time::sleep_until};

use crate::{controllers::Moment, inner::Inner, lock::lock, signal};

/// Starts the task.
pub(crate) fn spawn(cluster: &Arc<Inner>) {
    let changed = lock(&cluster.state).store.subscribe();
    tokio::spawn(work(Arc::downgrade(cluster), changed, Arc::clone(&cluster.poke)));
}

/// Runs the controllers after each change. Holds a reference to the cluster only while the controllers run. So when the
/// caller drops the last handle, the sender of changes is dropped, too, and this task ends.
async fn work(inner: Weak<Inner>, mut changed: signal::Receiver, poke: Arc<Notify>) {
    loop {
        changed.look();
        let Some(cluster) = inner.upgrade() else { return };
        let next = step(&cluster);
        drop(cluster);
        let timer = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = changed.changed() => if changed.is_err() { return },
            () = poke.notified() => {}
            () = timer => {}
        }
    }
}

/// Runs the controllers until they have done all work that is due now.
fn step(cluster: &Inner) -> Option<tokio::time::Instant> {
    let fates = lock(&cluster.fates).clone();
    let moment = Moment { now: cluster.clock.now(), instant: tokio::time::Instant::now(), fates: &fates };
    let mut state = lock(&cluster.state);
    let next = lock(&cluster.controllers).run(&mut state, &moment);
    let revision = state.store.revision();
    drop(state);
    cluster.settled.raise(revision);
    next
}
