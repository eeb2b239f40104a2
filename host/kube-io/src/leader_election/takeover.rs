//! Takes over the Lease from its holder, before the operator is removed for good.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};

use super::{LEASE, Timing, record};

/// Takes the Lease for `duration`, waits until the earlier holder can no longer write, and returns the earlier holder.
/// Returns `None` if no Lease exists, which means that no operator uses leader election.
pub async fn take_over(
    client: Client,
    namespace: &str,
    identity: &str,
    duration: Duration,
) -> Result<Option<String>, kube::Error> {
    let api: Api<Lease> = Api::namespaced(client, namespace);
    loop {
        let Some(lease) = api.get_opt(LEASE).await? else { return Ok(None) };
        let before = record::holder(&lease).unwrap_or_default().to_owned();
        let silent_after = record::duration(&lease, Timing::default().duration);
        let ours = record::taken(lease, identity, duration);
        match api.replace(LEASE, &PostParams::default(), &ours).await {
            Ok(_) => {}
            // Try again: between the read and this write, the holder renewed the Lease, or a client deleted the Lease.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => continue,
            Err(error) => return Err(error),
        }
        if !before.is_empty() && before != identity {
            // Wait for the lease duration of the earlier holder. If this holder does not notice that it lost the Lease,
            // it can still write for this time after its last renewal.
            tokio::time::sleep(silent_after).await;
        }
        return Ok(Some(before));
    }
}
