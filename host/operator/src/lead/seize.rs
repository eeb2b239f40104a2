//! Taking the Lease away from whoever has it, before the operator goes for good.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};

use super::{LEASE, Timing, record};

/// Takes the Lease for so long, and waits until whoever held it can write no more, which it gives. None without a Lease:
/// then no operator asked for one.
pub async fn seize(
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
            // It was renewed in between, or deleted.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => continue,
            Err(error) => return Err(error),
        }
        if !before.is_empty() && before != identity {
            // As long as a holder may write after its last renewal, should it not hear that the Lease is gone.
            tokio::time::sleep(silent_after).await;
        }
        return Ok(Some(before));
    }
}
