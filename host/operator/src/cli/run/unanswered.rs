//! Logs at the start which kinds of KAOS have no policy in this process although the cluster serves them. Without this
//! log, an object of such a kind would look managed if an earlier operator wrote the object's status.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kaos_crds::{API_VERSION, manifests::RECORD};
use kube::Client;
use tracing::{debug, warn};

use crate::error_text::with_causes;

/// Logs a warning for each served kind that is not in `answered`. The request needs no rights: every user can list the
/// kinds that a cluster serves.
pub(super) async fn tell_unanswered(client: Client, answered: BTreeSet<String>) {
    match client.list_api_group_resources(API_VERSION).await {
        Ok(served) => {
            for kind in unanswered(&served.resources, &answered) {
                warn!(
                    "the cluster serves {kind} of {API_VERSION}, but none of the operator's own policies answers for \
                     {kind}: without an installed policy for this kind, its objects keep the status that an earlier \
                     operator wrote"
                );
            }
        }
        Err(error) => debug!("could not ask for the kinds of {API_VERSION}: {}", with_causes(&error)),
    }
}

/// Returns the kinds in `served` that are neither the operator's own kind nor in `answered`.
fn unanswered<'a>(served: &'a [APIResource], answered: &BTreeSet<String>) -> BTreeSet<&'a str> {
    let kinds = served.iter().filter(|resource| !resource.name.contains('/')).map(|resource| resource.kind.as_str());
    kinds.filter(|kind| *kind != RECORD && !answered.contains(*kind)).collect()
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
