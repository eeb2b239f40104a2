//! Waits until this replica may take the Lease, and takes the Lease.

use fastrand::Rng;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tracing::{info, warn};

use super::{
    API_SERVER_SILENT, Fence, LEASE, LeaseGuard, Standing, Timing, lease_changes::LeaseChanges, record, seat::Seat,
};
use crate::{error_text::with_causes, hashing::hash};

/// A replica that wants the Lease.
#[derive(Debug)]
pub struct Election {
    seat: Seat,
    /// The generator for jitter. Its seed is a hash of the replica's identity, so replicas get different delays.
    rng: Rng,
}

impl Election {
    /// Creates a candidate for the Lease in a namespace. The client must be able to write even while the fence is
    /// closed.
    pub fn new(client: Client, namespace: &str, identity: String, timing: Timing, fence: Fence) -> Self {
        let standing = watch::Sender::new(Standing::Unknown("the lease was not read yet".to_owned()));
        let rng = Rng::with_seed(hash(&identity));
        Self { seat: Seat { api: Api::namespaced(client, namespace), identity, timing, fence, standing }, rng }
    }

    /// Returns a receiver that shows whether this replica holds the Lease. The receiver wakes at each change of the
    /// answer.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.seat.standing.subscribe()
    }

    /// Waits for the Lease without a time limit. The caller can drop the future at any time.
    pub async fn win(mut self) -> LeaseGuard {
        let mut seen: Option<UnchangedLease> = None;
        let mut changes = LeaseChanges::new(self.seat.api.clone());
        loop {
            let asked = Instant::now();
            match timeout(self.seat.timing.attempt(), self.attempt(&mut seen)).await {
                Ok(Ok(Some(lease))) => {
                    self.seat.fence.open_until(asked + self.seat.timing.renew_deadline);
                    self.seat.standing.send_replace(Standing::Leading);
                    info!(identity = self.seat.identity, "this replica holds the lease {LEASE}");
                    return LeaseGuard::new(self.seat, lease, asked);
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => self.tell(Standing::Unknown(with_causes(&error))),
                Err(_) => self.tell(Standing::Unknown(API_SERVER_SILENT.to_owned())),
            }
            let next = self.next_attempt(seen.as_ref());
            // Wait at least this long between attempts. Otherwise, a Lease that changes all the time would cause an
            // endless series of requests.
            let soonest = asked + self.seat.timing.retry_period / 20;
            tokio::select! {
                () = sleep_until(next) => {}
                () = async { changes.changed().await; sleep_until(soonest).await } => {}
            }
        }
    }

    /// Takes the Lease if the replica is allowed to take the Lease now.
    async fn attempt(&self, seen: &mut Option<UnchangedLease>) -> Result<Option<Lease>, kube::Error> {
        let Seat { identity, timing, .. } = &self.seat;
        let Some(wanted) = self.seat.api.get_opt(LEASE).await? else {
            let first = record::first(LEASE, identity, timing.duration);
            return settled(self.seat.api.create(&PostParams::default(), &first).await);
        };
        // If another replica is the holder, wait. If this replica itself is the holder, take the Lease at once: an
        // earlier write succeeded, and only its answer was lost.
        if let Some(holder) = record::holder(&wanted).filter(|holder| *holder != identity) {
            let version = wanted.metadata.resource_version.clone();
            let since = seen.take().filter(|seen| seen.version == version).map_or_else(Instant::now, |seen| seen.since);
            let expires = since + record::duration(&wanted, timing.duration);
            *seen = Some(UnchangedLease { version, since, expires });
            if Instant::now() < expires {
                self.tell(Standing::Behind(holder.to_owned()));
                return Ok(None);
            }
        }
        let ours = record::taken(wanted, identity, timing.duration);
        settled(self.seat.api.replace(LEASE, &PostParams::default(), &ours).await)
    }

    fn tell(&self, standing: Standing) {
        let news = self.seat.standing.send_if_modified(|known| {
            let news = *known != standing;
            known.clone_from(&standing);
            news
        });
        match standing {
            Standing::Unknown(because) if news => warn!("could not acquire the lease {LEASE}, retrying: {because}"),
            Standing::Behind(holder) if news => info!(holder, "waiting: another replica holds the lease {LEASE}"),
            _ => {}
        }
    }

    /// Returns the time of the next attempt: after the retry period, or earlier if the Lease of the other holder
    /// expires earlier. If the Lease changes before this time, the caller does not wait any longer. The time contains a
    /// random part, so that replicas that started at the same time send their requests at different times.
    fn next_attempt(&mut self, seen: Option<&UnchangedLease>) -> Instant {
        let (now, period) = (Instant::now(), self.seat.timing.retry_period);
        let regular = now + period + (period / 5).mul_f64(self.rng.f64());
        let expiry = seen.map(|seen| seen.expires).filter(|expires| *expires > now);
        let expiry = expiry.map(|expires| expires + (period / 20).mul_f64(self.rng.f64()));
        expiry.map_or(regular, |expiry| expiry.min(regular))
    }
}

/// A Lease of another holder, and the time since which the Lease has been unchanged.
struct UnchangedLease {
    version: Option<String>,
    since: Instant,
    /// The time at which this replica may take the Lease if the Lease stays unchanged.
    expires: Instant,
}

/// Returns the written Lease. Returns `None`, not an error, if the write lost against the write of another replica.
fn settled(written: Result<Lease, kube::Error>) -> Result<Option<Lease>, kube::Error> {
    match written {
        Ok(lease) => Ok(Some(lease)),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(None),
        Err(error) => Err(error),
    }
}
