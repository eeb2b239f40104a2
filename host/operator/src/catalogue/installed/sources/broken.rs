//! Explains why a watch on policy packages broke. If a right is missing, the explanation names the right and the
//! remedy.

use kaos_policy::contract::HOME;
use kube::{Api, Resource, runtime::watcher};

use crate::error_text::with_causes;

/// The resource that a watch follows, as RBAC names it.
pub(super) struct Followed {
    resource: String,
    /// The namespace of the watch. `None` means all namespaces.
    namespace: Option<String>,
}

impl Followed {
    pub(super) fn new<K: Resource>(api: &Api<K>, of: &K::DynamicType) -> Self {
        let (group, plural) = (K::group(of), K::plural(of));
        let resource = if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") };
        Self { resource, namespace: api.namespace().map(str::to_owned) }
    }

    /// Returns why the watch broke.
    pub(super) fn describe(&self, error: &watcher::Error) -> String {
        match error {
            watcher::Error::InitialListFailed(error) => self.answered("list", error),
            watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
                self.answered("watch", error)
            }
            watcher::Error::WatchError(status) => self.answered("watch", &kube::Error::Api(status.clone())),
            watcher::Error::NoResourceVersion => error.to_string(),
        }
    }

    fn answered(&self, verb: &str, error: &kube::Error) -> String {
        let said = with_causes(error);
        if !matches!(error, kube::Error::Api(answer) if answer.code == 403) {
            return said;
        }
        let Self { resource, namespace } = self;
        let place = namespace.as_deref().unwrap_or("all namespaces");
        format!("the operator is not allowed to {verb} {resource} in {place}: {said}: {}", self.remedy())
    }

    /// Returns the remedy for the missing right, as a part of a message.
    fn remedy(&self) -> String {
        match self.namespace.as_deref() {
            None => {
                "grant this right with the ClusterRole that `kaos-operator rbac --namespace-policies` prints, or start \
                 the operator without --namespace-policies"
                    .to_owned()
            }
            Some(HOME) => "grant this right with the Role that `kaos-operator rbac` prints".to_owned(),
            Some(home) => format!("grant this right with the Role that `kaos-operator rbac --namespace {home}` prints"),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn followed(resource: &str, namespace: Option<&str>) -> Followed {
        Followed { resource: resource.to_owned(), namespace: namespace.map(str::to_owned) }
    }

    fn answer(code: u16, message: &str) -> Box<Status> {
        Status::failure(message, "").with_code(code).boxed()
    }

    #[test]
    fn a_right_that_is_missing_is_named_with_how_to_get_it() {
        let denied = || answer(403, "no rights");
        let list = watcher::Error::InitialListFailed(kube::Error::Api(denied()));
        assert_eq!(
            followed("configmaps", Some("kaos-system")).describe(&list),
            "the operator is not allowed to list configmaps in kaos-system: no rights: grant this right with the Role \
             that `kaos-operator rbac` prints"
        );
        for watch in
            [watcher::Error::WatchStartFailed(kube::Error::Api(denied())), watcher::Error::WatchError(denied())]
        {
            assert_eq!(
                followed("policyrevisions.kaos.tools", Some("ops")).describe(&watch),
                "the operator is not allowed to watch policyrevisions.kaos.tools in ops: no rights: grant this right \
                 with the Role that `kaos-operator rbac --namespace ops` prints"
            );
        }
        let told = followed("configmaps", None).describe(&list);
        assert!(
            told.starts_with("the operator is not allowed to list configmaps in all namespaces: no rights: "),
            "{told}"
        );
        assert!(told.contains("`kaos-operator rbac --namespace-policies`"), "{told}");
    }

    #[test]
    fn an_error_other_than_missing_rights_is_reported_in_the_words_of_the_api_server() {
        let gone = watcher::Error::WatchError(answer(410, "too old resource version"));
        assert_eq!(followed("configmaps", None).describe(&gone), "too old resource version");
        let silent = watcher::Error::InitialListFailed(kube::Error::Api(answer(502, "")));
        assert_eq!(followed("configmaps", None).describe(&silent), "the API server answered 502");
    }
}
