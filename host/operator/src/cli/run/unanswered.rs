//! Says at the start which kinds of KAOS the cluster serves and no policy of the process answers for: their objects look
//! served, because an earlier operator wrote their status.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kaos_crds::API_VERSION;
use kube::Client;
use tracing::{debug, warn};

use crate::error_text::told;

/// The operator's own kind, which it writes without a policy.
const OWN: &str = "PolicyRevision";

/// Logs a warning for each kind besides the `answered` ones. Every user may ask for the kinds that a cluster serves.
pub(super) async fn tell_unanswered(client: Client, answered: BTreeSet<String>) {
    match client.list_api_group_resources(API_VERSION).await {
        Ok(served) => {
            for kind in unanswered(&served.resources, &answered) {
                warn!(
                    "the cluster serves {kind} of {API_VERSION}, and no policy of this operator answers for it: unless an \
                     installed policy does, nothing acts on its objects, and their status says what an earlier operator \
                     wrote"
                );
            }
        }
        Err(error) => debug!("could not ask for the kinds of {API_VERSION}: {}", told(&error)),
    }
}

/// Returns the kinds among `served` that are neither the operator's own nor `answered`.
fn unanswered<'a>(served: &'a [APIResource], answered: &BTreeSet<String>) -> BTreeSet<&'a str> {
    let kinds = served.iter().filter(|resource| !resource.name.contains('/')).map(|resource| resource.kind.as_str());
    kinds.filter(|kind| *kind != OWN && !answered.contains(*kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_without_a_policy_are_told_once_and_subresources_are_no_kinds() {
        let resource = |name: &str, kind: &str| APIResource {
            name: name.to_owned(),
            kind: kind.to_owned(),
            ..APIResource::default()
        };
        let served = [
            resource("agents", "Agent"),
            resource("agents/status", "Agent"),
            resource("thirdpartyservices", "ThirdPartyService"),
            resource("thirdpartyservices/status", "ThirdPartyService"),
            resource("policyrevisions", "PolicyRevision"),
            resource("agents/scale", "Scale"),
        ];
        assert_eq!(unanswered(&served, &BTreeSet::from(["Agent".to_owned()])), BTreeSet::from(["ThirdPartyService"]));
    }
}
