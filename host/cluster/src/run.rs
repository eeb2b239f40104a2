//! The task in which the controllers run, for as long as somebody holds the cluster.

use std::sync::Weak;

use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    cluster::{Cluster, Inner, lock},
    controllers::Moment,
};

/// Starts the task.
pub(crate) fn spawn(cluster: &Cluster) {
    let changed = lock(&cluster.0.state).store.subscribe();
    tokio::spawn(work(std::sync::Arc::downgrade(&cluster.0), changed));
}

async fn work(inner: Weak<Inner>, mut changed: tokio::sync::watch::Receiver<u64>) {
    loop {
        changed.borrow_and_update();
        let Some(cluster) = inner.upgrade() else { return };
        if !cluster.lag.is_zero() {
            sleep(cluster.lag).await;
        }
        let next = step(&cluster);
        drop(cluster);
        // The state outlives this only when somebody else holds the cluster, so look up now and then.
        let idle = Instant::now() + std::time::Duration::from_secs(3600);
        let wake = next.map_or(idle, |next| next.min(idle));
        let Some(cluster) = inner.upgrade() else { return };
        let poked = cluster.poke.notified();
        tokio::pin!(poked);
        poked.as_mut().enable();
        tokio::select! {
            biased;
            changed = changed.changed() => if changed.is_err() { return },
            () = &mut poked => {}
            () = sleep_until(wake) => {}
        }
    }
}

/// Works until nothing is left to do now.
fn step(cluster: &Inner) -> Option<Instant> {
    let fates = lock(&cluster.fates).clone();
    let moment = Moment { now: cluster.clock.now(), instant: Instant::now(), fates: &fates };
    let mut state = lock(&cluster.state);
    let next = lock(&cluster.controllers).run(&mut state, &moment);
    let revision = state.store.revision();
    drop(state);
    cluster.settled.send_replace(revision);
    next
}
