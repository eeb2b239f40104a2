//! What is written into the Lease object. Go's clients write and read the same.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::api::ObjectMeta;

/// A Lease that nobody has held, held by `identity` from now on.
pub(super) fn first(name: &str, identity: &str, duration: Duration) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    taken(Lease { metadata, spec: None }, identity, duration)
}

/// The Lease, held by `identity` from now on.
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

/// The Lease, held on.
pub(super) fn renewed(lease: Lease, duration: Duration) -> Lease {
    let spec = lease.spec.map(|before| LeaseSpec {
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        renew_time: now(),
        ..before
    });
    Lease { metadata: lease.metadata, spec }
}

/// The Lease, for whoever wants it.
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

/// Who holds it, if somebody does.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let spec = lease.spec.as_ref()?;
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// How long its holder may leave it alone.
pub(super) fn duration(lease: &Lease, unless_said: Duration) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(unless_said, Duration::from_secs)
}

// For people: nobody decides by a time of another machine.
#[allow(clippy::unnecessary_wraps)]
fn now() -> Option<MicroTime> {
    Some(MicroTime(Timestamp::now()))
}
