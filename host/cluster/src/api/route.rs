//! Maps paths to resources, objects and documents.

use std::sync::Arc;

use http::Method;

use crate::{
    catalogue::{Catalogue, Resource},
    faults::Verb,
    status::ApiError,
};

/// The target of a path.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// All objects of a type, in one namespace or in all namespaces.
    Objects { resource: Arc<Resource>, namespace: String },
    /// The path of one object, or of one of its subresources.
    Object { resource: Arc<Resource>, namespace: String, name: String, subresource: String },
    /// Discovery, OpenAPI, health or version.
    Document(String),
}

/// The target of a request, and the request's verb.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) verb: Verb,
    pub(crate) target: Target,
}

/// Finds the target and the verb of a request.
pub(crate) fn route(catalogue: &Catalogue, method: &Method, path: &str, watch: bool) -> Result<Route, ApiError> {
    let path = path.trim_matches('/');
    let decoded: Vec<String> = path.split('/').map(decode).collect();
    let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Ok(Route { verb: document_verb(method)?, target: Target::Document(path.to_owned()) }),
    };
    let find = |plural: &str| catalogue.find(group, version, plural).cloned();
    let target = match *rest {
        // A path with only these two parts names the namespace itself. Most longer paths name objects in the namespace.
        ["namespaces", name] if group.is_empty() => object(find("namespaces"), "", name, ""),
        ["namespaces", name, subresource @ ("status" | "finalize")] if group.is_empty() => {
            object(find("namespaces"), "", name, subresource)
        }
        ["namespaces", namespace, plural] => find(plural)
            .filter(|resource| resource.namespaced)
            .map(|resource| Target::Objects { resource, namespace: namespace.to_owned() }),
        ["namespaces", namespace, plural, name] => object(namespaced(find(plural)), namespace, name, ""),
        ["namespaces", namespace, plural, name, subresource] => {
            object(namespaced(find(plural)), namespace, name, subresource)
        }
        [plural] => find(plural).map(|resource| Target::Objects { resource, namespace: String::new() }),
        [plural, name] => object(find(plural).filter(|resource| !resource.namespaced), "", name, ""),
        [plural, name, subresource] => {
            object(find(plural).filter(|resource| !resource.namespaced), "", name, subresource)
        }
        _ => None,
    };
    let served = || catalogue.groups().get(group).is_some_and(|versions| versions.iter().any(|known| known == version));
    let target = target.ok_or_else(|| if served() { ApiError::no_route() } else { ApiError::no_page() })?;
    Ok(Route { verb: verb(method, &target, watch)?, target })
}

fn namespaced(resource: Option<Arc<Resource>>) -> Option<Arc<Resource>> {
    resource.filter(|resource| resource.namespaced)
}

fn object(resource: Option<Arc<Resource>>, namespace: &str, name: &str, subresource: &str) -> Option<Target> {
    Some(Target::Object {
        resource: resource?,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    })
}

fn document_verb(method: &Method) -> Result<Verb, ApiError> {
    if method == Method::GET { Ok(Verb::Get) } else { Err(ApiError::method_not_allowed()) }
}

fn verb(method: &Method, target: &Target, watch: bool) -> Result<Verb, ApiError> {
    let many = matches!(target, Target::Objects { .. });
    let below = matches!(target, Target::Object { subresource, .. } if !subresource.is_empty());
    Ok(match (method.as_str(), many) {
        ("GET", true) if watch => Verb::Watch,
        ("GET", true) => Verb::List,
        ("GET", false) => Verb::Get,
        ("POST", true) => Verb::Create,
        ("POST", false) if below => Verb::Create,
        ("PUT", false) => Verb::Update,
        ("PATCH", false) => Verb::Patch,
        ("DELETE", false) => Verb::Delete,
        ("DELETE", true) => Verb::DeleteCollection,
        _ => return Err(ApiError::method_not_allowed()),
    })
}

/// Decodes percent-encoding.
fn decode(part: &str) -> String {
    if !part.contains('%') {
        return part.to_owned();
    }
    // The parser of forms would convert `+` to a space, and would split the text at `=` and `&`. So escape these
    // characters.
    let escaped = part.replace('+', "%2B").replace('=', "%3D").replace('&', "%26");
    form_urlencoded::parse(escaped.as_bytes()).map(|(key, _)| key.into_owned()).collect()
}
