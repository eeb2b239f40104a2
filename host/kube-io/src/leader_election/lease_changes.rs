//! Watches the Lease, so that a waiting replica notices each renewal and each release at once.
//!
//! An event of the watch only makes the replica read the Lease again. A replica without the right to watch the Lease,
//! or with a broken watch, reads the Lease at regular intervals. Such a replica takes over the Lease a few seconds
//! later than a replica with a watch.

use std::time::Duration;

use futures_util::{StreamExt as _, stream::BoxStream};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::LEASE;

/// The duration of one watch. The API server ends the watch after this time, and the replica opens the next watch.
const WATCH_SECONDS: u32 = 290;
/// The pause before the replica opens the watch again after an error. The pause is long, because a missing right
/// usually stays missing for longer than a few seconds.
const REOPEN: Duration = Duration::from_secs(30);
/// The pause between two watches without an error. Without this pause, a server that ends each watch at once would
/// cause an endless series of requests.
const NEXT_WATCH: Duration = Duration::from_secs(1);

/// The watch on the Lease.
pub(super) struct LeaseChanges {
    api: Api<Lease>,
    open: Option<BoxStream<'static, kube::Result<WatchEvent<Lease>>>>,
    /// The earliest time at which the replica opens the next watch.
    opens_at: Instant,
}

impl LeaseChanges {
    pub(super) fn new(api: Api<Lease>) -> Self {
        Self { api, open: None, opens_at: Instant::now() }
    }

    /// Waits for the next event of the watch. The caller can drop the future at any time.
    pub(super) async fn changed(&mut self) {
        loop {
            let failed = match self.event().await {
                Ok(Some(WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Deleted(_))) => return,
                Ok(Some(WatchEvent::Bookmark(_))) => continue,
                Ok(Some(WatchEvent::Error(status))) => Some(kube::Error::Api(status)),
                Ok(None) => None,
                Err(error) => Some(error),
            };
            self.open = None;
            let pause = match failed {
                Some(error) => {
                    debug!(%error, "cannot watch the lease {LEASE}; reading it at regular intervals");
                    REOPEN
                }
                None => NEXT_WATCH,
            };
            self.opens_at = Instant::now() + pause;
        }
    }

    /// Returns the next event of the watch, or `None` if the API server ended the watch. Opens a watch if none is open.
    async fn event(&mut self) -> kube::Result<Option<WatchEvent<Lease>>> {
        if self.open.is_none() {
            sleep_until(self.opens_at).await;
            let asked = WatchParams::default().fields(&format!("metadata.name={LEASE}")).timeout(WATCH_SECONDS);
            // A watch from version 0 first reports the current Lease. So the replica misses no change between two
            // watches.
            self.open = Some(self.api.watch(&asked, "0").await?.boxed());
        }
        let Some(events) = &mut self.open else { return Ok(None) };
        events.next().await.transpose()
    }
}
