//! Derives the verb and the resource of a request from its method and address.

use http::{Method, Uri};

/// A request in the terms of Kubernetes' RBAC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) verb: &'static str,
    pub(super) group: String,
    /// The resource, including the subresource. Empty for a request without a resource, such as discovery.
    pub(super) resource: String,
    /// Whether the answer is a stream that may never end.
    pub(super) streams: bool,
}

impl Route {
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let mut segments = uri.path().split('/').filter(|segment| !segment.is_empty());
        let group = match segments.next() {
            Some("api") => Some(""),
            Some("apis") => segments.next(),
            _ => None,
        };
        // Skip the version.
        segments.next();
        let mut rest: Vec<&str> = segments.collect();
        if rest.first() == Some(&"namespaces") && rest.len() > 2 && !NAMESPACE_SUBRESOURCES.contains(&rest[2]) {
            rest.drain(..2);
        }
        let (resource, name, subresource) = (rest.first(), rest.get(1), rest.get(2));
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if name.is_some() => "delete",
            Method::DELETE => "deletecollection",
            _ if asks(uri, "watch") => "watch",
            _ if name.is_some() || resource.is_none() => "get",
            _ => "list",
        };
        let resource = match (resource, subresource) {
            (None, _) => String::new(),
            (Some(resource), None) => (*resource).to_owned(),
            (Some(resource), Some(subresource)) => format!("{resource}/{subresource}"),
        };
        let group = group.filter(|_| !resource.is_empty()).unwrap_or_default().to_owned();
        let streams = verb == "watch" || (subresource == Some(&"log") && asks(uri, "follow"));
        Self { verb, group, resource, streams }
    }

    /// Returns whether the request can change the cluster. An access review changes nothing, although the client sends
    /// it as a creation.
    pub(super) fn writes(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch") && self.group != "authorization.k8s.io"
    }
}

/// The subresources of a namespace. In a path, a subresource follows the namespace's name, like a resource in the
/// namespace.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// Returns whether a query sets a parameter to true.
fn asks(uri: &Uri, parameter: &str) -> bool {
    let is_set = |rest: &str| matches!(rest, "" | "=true" | "=1");
    uri.query().is_some_and(|query| query.split('&').any(|pair| pair.strip_prefix(parameter).is_some_and(is_set)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &Method, uri: &'static str) -> (&'static str, String, String) {
        let Route { verb, group, resource, .. } = Route::of(method, &Uri::from_static(uri));
        (verb, group, resource)
    }

    #[test]
    fn requests_are_named_as_in_access_rules() {
        for (method, uri, expected) in [
            (Method::GET, "/apis/apps/v1/namespaces/n/deployments/d", ("get", "apps", "deployments")),
            (Method::GET, "/apis/apps/v1/deployments?limit=500", ("list", "apps", "deployments")),
            (Method::GET, "/api/v1/namespaces/n/configmaps?watch=true&x=y", ("watch", "", "configmaps")),
            (Method::GET, "/api/v1/namespaces/n", ("get", "", "namespaces")),
            (Method::GET, "/api/v1/namespaces", ("list", "", "namespaces")),
            (
                Method::PATCH,
                "/apis/kaos.tools/v1alpha1/namespaces/n/widgets/w/status",
                ("patch", "kaos.tools", "widgets/status"),
            ),
            (Method::DELETE, "/api/v1/namespaces/n/services/s", ("delete", "", "services")),
            (Method::DELETE, "/api/v1/namespaces/n/services", ("deletecollection", "", "services")),
            (Method::PUT, "/api/v1/namespaces/n/finalize", ("update", "", "namespaces/finalize")),
            (Method::POST, "/apis/events.k8s.io/v1/namespaces/n/events", ("create", "events.k8s.io", "events")),
            (Method::GET, "/apis/apps/v1", ("get", "", "")),
            (Method::GET, "/version", ("get", "", "")),
        ] {
            let (verb, group, resource) = expected;
            assert_eq!(route(&method, uri), (verb, group.to_owned(), resource.to_owned()), "{uri}");
        }
    }

    #[test]
    fn watches_and_followed_logs_are_streams() {
        for (uri, streams) in [
            ("/api/v1/namespaces/n/pods?watch=1", true),
            ("/api/v1/namespaces/n/pods/p/log?container=c&follow=true", true),
            ("/api/v1/namespaces/n/pods/p/log?container=c", false),
            ("/api/v1/namespaces/n/pods/p?follow=true", false),
        ] {
            assert_eq!(Route::of(&Method::GET, &Uri::from_static(uri)).streams, streams, "{uri}");
        }
    }

    #[test]
    fn asking_for_permission_is_no_write() {
        let uri = Uri::from_static("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
        assert!(!Route::of(&Method::POST, &uri).writes());
        assert!(Route::of(&Method::POST, &Uri::from_static("/api/v1/namespaces")).writes());
    }
}
