//! Refuses subresources that a real server has but this cluster does not have. The error names an alternative.

use http::StatusCode;

use crate::{
    catalogue::{Family, Resource},
    state::State,
    status::ApiError,
    storage::Key,
};

/// Returns the error for a subresource that only a real server has. Returns `None` if a real server does not have the
/// subresource either.
pub(super) fn refusal(state: &State, resource: &Resource, key: &Key, subresource: &str) -> Option<ApiError> {
    let instead = instead(resource.family, subresource)?;
    let subject = resource.subject(&key.name);
    if state.store.get(&resource.storage(), key).is_none() {
        return Some(ApiError::not_found(&subject));
    }
    let message = format!("{}/{subresource} is not served by this in-memory cluster: {instead}", resource.plural);
    Some(ApiError::about(StatusCode::NOT_IMPLEMENTED, "NotImplemented", &subject, message))
}

/// Returns the reason why this cluster lacks a subresource, and an alternative. `None` if no reason is known.
fn instead(family: Family, subresource: &str) -> Option<&'static str> {
    Some(match (family, subresource) {
        (Family::Pod, "log") => {
            "this cluster runs no containers, so there are no logs. Use `kubectl describe pod` and `kubectl get \
             events`, or a real cluster"
        }
        (Family::Pod, "exec" | "attach" | "portforward" | "proxy" | "ephemeralcontainers") => {
            "this cluster runs no containers, so there is nothing to connect to. Use `kubectl describe pod` for the \
             state of a pod, or a real cluster"
        }
        (Family::Service, "proxy") => "this cluster runs no containers, so no Service can answer. Use a real cluster",
        (Family::Node, "proxy") => "this cluster runs no kubelets. Use a real cluster",
        (Family::Pod, "eviction") => {
            "this cluster does not enforce PodDisruptionBudgets. Delete the pod, or use a \
            real cluster"
        }
        (Family::Pod, "resize") => "this cluster gives pods no resources. Change the pod template of the workload",
        (Family::ServiceAccount, "token") => "this cluster creates no tokens. Its kubeconfig permits everything",
        _ => return None,
    })
}
