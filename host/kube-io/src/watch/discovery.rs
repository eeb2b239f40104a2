//! Discovery: asks the API server which types it serves, and at which addresses.
//!
//! Sends one request for each API version in the coverage. Every server supports these requests. An error in one group
//! does not hide the types of the other groups.

use std::collections::{BTreeMap, BTreeSet};

use kaos_objects::ResourceType;
use kube::{
    Client,
    core::{ApiResource, GroupVersionKind, discovery::Scope},
};
use serde::Deserialize;

use super::watch_error::{WatchError, in_time};

/// A type as the API server serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The API resource, for `Api::dynamic` and request paths.
    pub resource: ApiResource,
    /// Whether the type is namespaced.
    pub namespaced: bool,
    /// The singular name of the type, and its short names.
    pub nicknames: Vec<String>,
}

impl Served {
    /// Returns whether the type is namespaced or cluster-scoped, as a value of the crate `kube`.
    pub fn scope(&self) -> Scope {
        if self.namespaced { Scope::Namespaced } else { Scope::Cluster }
    }

    /// Returns the URL path of the type's objects, in one namespace or in all namespaces.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let ApiResource { group, api_version, plural, .. } = &self.resource;
        let root = if group.is_empty() { "api" } else { "apis" };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
            None => format!("/{root}/{api_version}/{plural}"),
        }
    }
}

/// The result of discovery. The value is `None` if the API server does not serve the type.
pub(super) type Discovered = BTreeMap<ResourceType, Option<Served>>;

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default, rename = "singularName")]
    singular: String,
    #[serde(default, rename = "shortNames")]
    short: Vec<String>,
}

/// Asks the API server about the API versions of these types. Returns the types, and the reason for each version whose
/// request failed. The returned types do not include types of a failed version.
pub async fn discover(client: &Client, types: &BTreeSet<ResourceType>) -> (Discovered, BTreeMap<String, String>) {
    let versions: BTreeSet<&str> = types.iter().map(|of| of.api_version.as_str()).collect();
    let mut discovered = Discovered::new();
    let mut failed = BTreeMap::new();
    for version in versions {
        match resources(client, version).await {
            Ok(resources) => {
                for of in types.iter().filter(|of| of.api_version == version) {
                    discovered.insert(of.clone(), served(of, &resources));
                }
            }
            Err(broken) => {
                failed.insert(version.to_owned(), broken.to_string());
            }
        }
    }
    (discovered, failed)
}

/// Asks how the API server serves one type. Returns `None` if the API server does not serve the type.
pub async fn discover_type(client: &Client, of: &ResourceType) -> Result<Option<Served>, kube::Error> {
    match request(client, &of.api_version).await {
        Ok(found) => Ok(served(of, &found.resources)),
        // For an unknown group, a server answers 404 in plain text.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

async fn resources(client: &Client, version: &str) -> Result<Vec<Resource>, WatchError> {
    match in_time(request(client, version)).await {
        Ok(found) => Ok(found.resources),
        Err(WatchError::Unserved) => Ok(Vec::new()),
        Err(broken) => Err(broken),
    }
}

async fn request(client: &Client, version: &str) -> Result<Resources, kube::Error> {
    let root = if version.contains('/') { "apis" } else { "api" };
    let request = http::Request::get(format!("/{root}/{version}")).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

fn served(of: &ResourceType, resources: &[Resource]) -> Option<Served> {
    let found = resources.iter().find(|resource| resource.kind == of.kind && !resource.name.contains('/'))?;
    let (group, version) = of.api_version.rsplit_once('/').unwrap_or(("", &of.api_version));
    let gvk = GroupVersionKind::gvk(group, version, &of.kind);
    let singular = Some(&found.singular).filter(|singular| !singular.is_empty());
    let nicknames = singular.into_iter().chain(&found.short).cloned().collect();
    let resource = ApiResource::from_gvk_with_plural(&gvk, &found.name);
    Some(Served { resource, namespaced: found.namespaced, nicknames })
}
