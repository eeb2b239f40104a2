//! The content of the Lease object, in the format of Go's clients.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::api::ObjectMeta;

/// Returns a new Lease that `identity` holds from now on.
pub(super) fn first(name: &str, identity: &str, duration: Duration) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    taken(Lease { metadata, spec: None }, identity, duration)
}

/// Returns the Lease with `identity` as the new holder from now on.
pub(super) fn taken(lease: Lease, identity: &str, duration: Duration) -> Lease {
    let before = lease.spec.unwrap_or_default();
    let spec = LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        acquire_time: now(),
        renew_time: now(),
        lease_transitions: Some(before.lease_transitions.map_or(0, |transitions| transitions.saturating_add(1))),
        ..before
    };
    Lease { metadata: lease.metadata, spec: Some(spec) }
}

/// Returns the Lease with a new renewal time.
pub(super) fn renewed(lease: Lease, duration: Duration) -> Lease {
    let spec = lease.spec.map(|before| LeaseSpec {
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        renew_time: now(),
        ..before
    });
    Lease { metadata: lease.metadata, spec }
}

/// Returns the Lease without a holder.
pub(super) fn released(lease: Lease) -> Lease {
    let spec = lease.spec.map(|before| LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: now(),
        renew_time: now(),
        ..before
    });
    Lease { metadata: lease.metadata, spec }
}

/// Returns the holder of the Lease, or `None` if no replica holds the Lease.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let spec = lease.spec.as_ref()?;
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// Returns the time for which the Lease stays valid without a renewal.
pub(super) fn duration(lease: &Lease, unless_said: Duration) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(unless_said, Duration::from_secs)
}

// Returns the current time. The Lease contains this time only for people: no replica decides by another machine's time.
#[allow(clippy::unnecessary_wraps)]
fn now() -> Option<MicroTime> {
    Some(MicroTime(Timestamp::now()))
}
