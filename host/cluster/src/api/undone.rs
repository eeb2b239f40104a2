//! Refuses subresources that a real server has and this cluster does not. The error names an alternative.

use http::StatusCode;

use crate::{
    catalogue::{Family, Resource},
    state::State,
    status::ApiError,
    storage::Key,
};

/// Returns the refusal of a subresource, or `None` if a real server does not have it either.
pub(super) fn refusal(state: &State, resource: &Resource, key: &Key, subresource: &str) -> Option<ApiError> {
    let instead = instead(resource.family, subresource)?;
    let subject = resource.subject(&key.name);
    if state.store.get(&resource.storage(), key).is_none() {
        return Some(ApiError::not_found(&subject));
    }
    let message = format!("{}/{subresource} is not served by this cluster in memory: {instead}", resource.plural);
    Some(ApiError::about(StatusCode::NOT_IMPLEMENTED, "NotImplemented", &subject, message))
}

/// Returns why a subresource is not served, and the alternative.
fn instead(family: Family, subresource: &str) -> Option<&'static str> {
    Some(match (family, subresource) {
        (Family::Pod, "log") => {
            "no container runs in it, so there are no logs. `kubectl describe pod` and `kubectl get events` tell what \
             there is; logs take a real cluster"
        }
        (Family::Pod, "exec" | "attach" | "portforward" | "proxy" | "ephemeralcontainers") => {
            "no container runs in it, so there is nothing to reach. `kubectl describe pod` tells the state of a pod; to \
             reach a container takes a real cluster"
        }
        (Family::Service, "proxy") => {
            "no container runs in it, so no Service leads anywhere. To reach a Service takes a real cluster"
        }
        (Family::Node, "proxy") => "it has no nodes that run. To ask a kubelet takes a real cluster",
        (Family::Pod, "eviction") => {
            "it does not count disruptions when a pod goes. Delete the pod; a real cluster heeds PodDisruptionBudgets"
        }
        (Family::Pod, "resize") => "pods get no resources in it. Change the template of what made the pod",
        (Family::ServiceAccount, "token") => "it makes no tokens. Its kubeconfig lets you do everything",
        _ => return None,
    })
}
