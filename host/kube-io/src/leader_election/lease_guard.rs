//! Holds and releases the Lease.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::warn;

use super::{API_SERVER_SILENT, LEASE, Lost, record, seat::Seat};
use crate::error_text::with_causes;

/// The Lease, while this process holds it.
#[derive(Debug)]
pub struct LeaseGuard {
    seat: Seat,
    lease: Lease,
    /// The time immediately before this process sent the last successful renewal.
    renewed: Instant,
}

impl LeaseGuard {
    pub(super) fn new(seat: Seat, lease: Lease, renewed: Instant) -> Self {
        Self { seat, lease, renewed }
    }

    /// Renews the Lease until the process loses the Lease. The fence is closed when this function returns.
    pub async fn keep(&mut self) -> Lost {
        let timing = self.seat.timing;
        let mut because = API_SERVER_SILENT.to_owned();
        let lost = loop {
            let until = self.renewed + timing.renew_deadline;
            sleep_until(until.min(Instant::now() + timing.retry_period)).await;
            let asked = Instant::now();
            if asked >= until {
                break Lost::NotRenewed { within: timing.renew_deadline, because };
            }
            match timeout_at(until.min(asked + timing.attempt()), self.renew()).await {
                Ok(Ok(())) => {
                    self.renewed = asked;
                    self.seat.fence.open_until(asked + timing.renew_deadline);
                    continue;
                }
                Ok(Err(NotRenewed::Lost(lost))) => break lost,
                Ok(Err(NotRenewed::Error(error))) => because = with_causes(&error),
                Err(_) => API_SERVER_SILENT.clone_into(&mut because),
            }
            warn!("could not renew the lease {LEASE}, retrying: {because}");
        };
        self.seat.fence.shut();
        lost
    }

    async fn renew(&mut self) -> Result<(), NotRenewed> {
        let Seat { api, timing, .. } = &self.seat;
        let wanted = record::renewed(self.lease.clone(), timing.duration);
        match api.replace(LEASE, &PostParams::default(), &wanted).await {
            Ok(lease) => {
                self.lease = lease;
                return Ok(());
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => return Err(Lost::Gone.into()),
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
        // The conflict has three possible causes. Another replica wrote the Lease, a user added a label, or this
        // process's own write succeeded but the answer was lost.
        let current = api.get_opt(LEASE).await?.ok_or(Lost::Gone)?;
        match record::holder(&current) {
            Some(holder) if holder == self.seat.identity => self.lease = current,
            Some(holder) => return Err(Lost::Taken(holder.to_owned()).into()),
            None => return Err(Lost::Gone.into()),
        }
        let wanted = record::renewed(self.lease.clone(), timing.duration);
        self.lease = api.replace(LEASE, &PostParams::default(), &wanted).await?;
        Ok(())
    }

    /// Releases the Lease for the next replica. After the release, this process writes nothing.
    pub async fn release(self) -> Result<(), kube::Error> {
        let Self { seat, lease, .. } = self;
        let Seat { api, identity, fence, .. } = seat;
        fence.shut();
        match api.replace(LEASE, &PostParams::default(), &record::released(lease)).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            written => return written.map(drop),
        }
        match api.get_opt(LEASE).await? {
            Some(current) if record::holder(&current) == Some(identity.as_str()) => {
                api.replace(LEASE, &PostParams::default(), &record::released(current)).await.map(drop)
            }
            _ => Ok(()),
        }
    }
}

enum NotRenewed {
    Lost(Lost),
    Error(kube::Error),
}

impl From<Lost> for NotRenewed {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl From<kube::Error> for NotRenewed {
    fn from(error: kube::Error) -> Self {
        Self::Error(error)
    }
}
