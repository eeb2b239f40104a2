//! Reads the objects of a running cluster once, for a command of `kaos-operator`.
//!
//! This module lists the objects of the types that policies claim or read. The module reads a ConfigMap only if an
//! object needs it, and never reads Secrets.

mod known;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{
    contract::{Reference, ResourceType, Scopes, Selector, Target},
    lookup::Sighting,
    stamp::MANAGER,
};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::Value;

pub use self::known::{KnownObjects, KnownType, RememberedRead};
use crate::{
    discovery,
    error_text::with_causes,
    input::{Document, DocumentOrigin, Identity},
    reconcile::leftovers,
    watch::{Served, is_guarded},
};

/// The number of objects in one page of a list request.
const PAGE: u32 = 500;

/// The error of a failed read from the cluster.
#[derive(Debug, thiserror::Error)]
#[error("{what} cannot be read")]
pub struct LiveError {
    what: String,
    source: kube::Error,
}

/// The objects that the reader has read so far.
pub struct Gathered {
    client: Client,
    known: Option<Arc<dyn KnownObjects>>,
    types: BTreeMap<ResourceType, Option<Served>>,
    /// The types whose objects the reader has listed, each with the namespace of the list; `None` is the whole cluster.
    listed: BTreeSet<(ResourceType, Option<String>)>,
    asked: BTreeSet<Target>,
    documents: BTreeMap<Identity, Document>,
    /// Whether the reader fetched objects itself, because the caller did not have all objects of a target.
    has_fetched: bool,
}

/// The API server's answer to a dry run of an apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DryRunAnswer {
    /// The server accepts the manifest.
    Taken,
    /// The server refuses the manifest, for this reason.
    Refused(String),
    /// A dry run cannot show whether the server accepts the manifest, for this reason.
    Open(String),
}

impl Gathered {
    /// Starts without any objects.
    pub fn new(client: Client) -> Self {
        let (types, listed, asked) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { client, known: None, types, listed, asked, documents: BTreeMap::new(), has_fetched: false }
    }

    /// Starts without any objects. Takes objects from `known`, and sends requests to the cluster only for the others.
    pub fn knowing(client: Client, known: Arc<dyn KnownObjects>) -> Self {
        Self { known: Some(known), ..Self::new(client) }
    }

    /// Adds an object that the caller passes.
    pub fn add(&mut self, object: &Value) {
        self.keep_value(&ResourceType::of_object(object), object.clone());
    }

    /// Lists all objects of a type, or the objects in one namespace. Does nothing if the cluster does not serve the
    /// type.
    pub async fn list(&mut self, of: &ResourceType, namespace: Option<&str>) -> Result<(), LiveError> {
        if is_guarded(of) {
            return Ok(());
        }
        let Some(served) = self.served(of).await? else { return Ok(()) };
        let place = namespace.filter(|_| served.namespaced).map(str::to_owned);
        if !self.listed.insert((of.clone(), place.clone())) {
            return Ok(());
        }
        let all = Target::Labelled(Selector { of: of.clone(), namespace: place, labels: Vec::new() });
        self.fetch(&all, &served).await
    }

    /// Reads the `targets` that the reader has not read yet. Returns `false` if it had read all of them before.
    pub async fn read(&mut self, targets: impl IntoIterator<Item = Target>) -> Result<bool, LiveError> {
        let mut any = false;
        for target in targets {
            let of = target.of();
            let is_read = self.has_listed(&of, target.namespace());
            if of.is_secret() || is_read || !self.asked.insert(target.clone()) {
                continue;
            }
            any = true;
            if let Some(found) = self.known.as_ref().and_then(|known| known.find(&target)) {
                for object in &found {
                    self.keep_value(&of, (**object).clone());
                }
                continue;
            }
            let fetched = match self.served(&of).await {
                Ok(Some(served)) => self.fetch(&target, &served).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = fetched {
                self.asked.remove(&target);
                return Err(error);
            }
        }
        Ok(any)
    }

    /// Returns whether the reader has read a target, so that [`documents`](Self::documents) returns all its objects.
    pub fn has_read(&self, target: &Target) -> bool {
        self.asked.contains(target) || self.has_listed(&target.of(), target.namespace())
    }

    /// Returns whether the reader fetched objects itself, because the caller did not have all objects of a target. The
    /// caller's watches do not report changes of fetched objects.
    #[cfg(feature = "console")]
    pub fn has_fetched(&self) -> bool {
        self.has_fetched
    }

    /// Adds the objects of a target: from an earlier read that the caller remembers, or else from the cluster.
    async fn fetch(&mut self, target: &Target, served: &Served) -> Result<(), LiveError> {
        let (of, known) = (target.of(), self.known.clone());
        self.has_fetched = true;
        let read = if let Some(read) = known.as_ref().and_then(|known| known.remembered(target)) {
            read
        } else {
            let read = self.read_target(target, served).await?;
            if let Some(known) = known {
                known.remember(target, read.clone());
            }
            read
        };
        match read {
            RememberedRead::Found(found) => {
                for object in found {
                    self.keep_value(&of, Arc::unwrap_or_clone(object));
                }
                Ok(())
            }
            RememberedRead::Refused(status) => Err(failed(named(target), kube::Error::Api(status))),
        }
    }

    async fn read_target(&self, target: &Target, served: &Served) -> Result<RememberedRead, LiveError> {
        let api = self.api(served, target.namespace());
        let found = match target {
            Target::Named(Reference { name, .. }) => api.get_opt(name).await.map(|found| found.into_iter().collect()),
            Target::Labelled(selector) => {
                let labels: Vec<String> =
                    selector.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let parameters = ListParams::default();
                pages(&api, if labels.is_empty() { parameters } else { parameters.labels(&labels.join(",")) }).await
            }
        };
        match found {
            Ok(found) => Ok(RememberedRead::Found(found.into_iter().filter_map(value).map(Arc::new).collect())),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(RememberedRead::Refused(status)),
            Err(error) => Err(failed(named(target), error)),
        }
    }

    /// Asks the API server for a dry run of the apply that the operator would make.
    pub async fn try_apply(&mut self, manifest: &Value) -> Result<DryRunAnswer, LiveError> {
        let of = ResourceType::of_object(manifest);
        let Some(served) = self.served(&of).await? else {
            return Ok(DryRunAnswer::Open(format!("{of} is not served")));
        };
        let metadata = &manifest["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or_default());
        let parameters = PatchParams { dry_run: true, ..PatchParams::apply(MANAGER).force() };
        let api = self.api(&served, namespace);
        let why = match api.patch(name, &parameters, &Patch::Apply(manifest)).await {
            Ok(_) => return Ok(DryRunAnswer::Taken),
            Err(kube::Error::Api(answer)) if matches!(answer.code, 400 | 422) => answer.message,
            Err(error) => return Ok(DryRunAnswer::Open(with_causes(&error))),
        };
        // The live object may have fields that the server derived from the previous plan. The operator removes such
        // fields before the apply, but a dry run cannot remove them. So the operator's apply may succeed although the
        // server refused the dry run.
        let live = api.get_opt(name).await.map_err(|source| failed(format!("{of} {name}"), source))?;
        let live = live.and_then(|live| serde_json::to_value(live).ok()).unwrap_or_default();
        Ok(if leftovers(manifest, &live).is_empty() { DryRunAnswer::Refused(why) } else { DryRunAnswer::Open(why) })
    }

    /// Reads one object and returns its identity. Returns `None` if the object does not exist.
    pub async fn object(
        &mut self,
        of: &ResourceType,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Identity>, LiveError> {
        let (api_version, kind) = (of.api_version.clone(), of.kind.clone());
        let place = Some(namespace.to_owned());
        let reference = Reference { api_version, kind, namespace: place, name: name.to_owned() };
        self.read([Target::Named(reference)]).await?;
        let is_it = |identity: &&Identity| {
            (identity.group.as_str(), &identity.kind, identity.name.as_str()) == (of.group(), &of.kind, name)
                && identity.namespace.as_deref().is_none_or(|place| place == namespace)
        };
        Ok(self.documents.keys().find(is_it).cloned())
    }

    /// Returns whether the reader has listed all objects of a type in a namespace.
    fn has_listed(&self, of: &ResourceType, namespace: Option<&str>) -> bool {
        let has = |place: Option<&str>| self.listed.contains(&(of.clone(), place.map(str::to_owned)));
        has(None) || (namespace.is_some() && has(namespace))
    }

    /// Iterates over all objects that the reader has read so far, sorted by identity.
    pub fn iter(&self) -> impl Iterator<Item = &Document> {
        self.documents.values()
    }

    /// Returns all objects that the reader has read so far, sorted by identity.
    pub fn documents(&self) -> Vec<Document> {
        self.iter().cloned().collect()
    }

    /// Returns whether the cluster serves a type.
    pub async fn serves(&mut self, of: &ResourceType) -> Result<bool, LiveError> {
        Ok(self.served(of).await?.is_some())
    }

    /// Returns the plural under which the cluster serves a type; `None` if the plural is not known.
    pub fn plural(&self, of: &ResourceType) -> Option<&str> {
        self.types.get(of)?.as_ref().map(|served| served.resource.plural.as_str())
    }

    /// Returns whether each type is namespaced or cluster-scoped, for all types that the reader has looked up.
    pub fn scopes(&self) -> Scopes {
        let mut scopes = Scopes::default();
        for (of, served) in &self.types {
            if let Some(served) = served {
                scopes.define(of.group(), &of.kind, !served.namespaced);
            }
        }
        scopes
    }

    /// Returns why a policy cannot see objects of this type: the type is `Secret`, or the cluster does not serve the
    /// type. Returns `None` if policies can see the objects.
    pub fn hidden(&self, of: &ResourceType) -> Option<Sighting> {
        if of.is_secret() {
            return Some(Sighting::Forbidden("this command does not read Secrets".to_owned()));
        }
        matches!(self.types.get(of), Some(None)).then_some(Sighting::Unserved)
    }

    async fn served(&mut self, of: &ResourceType) -> Result<Option<Served>, LiveError> {
        if let Some(known) = self.types.get(of) {
            return Ok(known.clone());
        }
        let served = match self.known.as_ref().map_or(KnownType::Unasked, |known| known.served(of)) {
            KnownType::Served(served) => Some(served),
            KnownType::Unserved => None,
            KnownType::Unasked => {
                let served = discovery::served(&self.client, of).await;
                let served = served.map_err(|source| failed(of.to_string(), source))?;
                if let Some(known) = &self.known {
                    known.learn(of, served.as_ref());
                }
                served
            }
        };
        self.types.insert(of.clone(), served.clone());
        Ok(served)
    }

    fn api(&self, served: &Served, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| served.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &served.resource),
            None => Api::all_with(self.client.clone(), &served.resource),
        }
    }

    fn keep_value(&mut self, of: &ResourceType, mut object: Value) {
        // The API server omits `apiVersion` and `kind` from the items of a list.
        object["apiVersion"] = of.api_version.as_str().into();
        object["kind"] = of.kind.as_str().into();
        let origin = DocumentOrigin { file: "the cluster".into(), document: self.documents.len() + 1, item: None };
        if let Ok(identity) = identity(&mut object) {
            self.documents.insert(identity.clone(), Document { origin, identity, object });
        }
    }
}

/// Returns the identity of an object from a cluster. Without a namespace, such an object is cluster-scoped. An object
/// in a file may be namespaced, and omit its namespace.
pub(crate) fn identity(object: &mut Value) -> Result<Identity, (&'static str, String)> {
    if !object["metadata"]["namespace"].is_null() {
        return Identity::of(object, "default", &Scopes::default());
    }
    let mut placed = object.clone();
    let identity = Identity::of(&mut placed, "default", &Scopes::default())?;
    Ok(Identity { namespace: None, ..identity })
}

/// Lists all objects, page by page.
async fn pages(api: &Api<DynamicObject>, parameters: ListParams) -> Result<Vec<DynamicObject>, kube::Error> {
    let (mut parameters, mut found) = (parameters.limit(PAGE), Vec::new());
    loop {
        let page = api.list(&parameters).await?;
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters.continue_token = Some(token),
            None => return Ok(found),
        }
    }
}

fn value(mut object: DynamicObject) -> Option<Value> {
    object.metadata.managed_fields = None;
    serde_json::to_value(object).ok()
}

/// Returns the name of a target for an error.
fn named(target: &Target) -> String {
    match target {
        Target::Named(Reference { name, .. }) => format!("{} {name}", target.of()),
        Target::Labelled(_) => target.of().to_string(),
    }
}

fn failed(what: String, source: kube::Error) -> LiveError {
    LiveError { what, source }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Namespace, Service};
    use kaos_cluster::Cluster;
    use kube::api::PostParams;
    use serde_json::{from_value, json};

    use super::*;

    #[tokio::test]
    async fn objects_listed_in_one_namespace_are_not_missing_in_another() -> anyhow::Result<()> {
        let cluster = Cluster::builder().start();
        let client = Client::new(cluster.service(), "a");
        for place in ["a", "b"] {
            let namespace = from_value(json!({"metadata": {"name": place}}))?;
            Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
            let service = from_value(json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}))?;
            Api::<Service>::namespaced(client.clone(), place).create(&PostParams::default(), &service).await?;
        }
        let services = ResourceType::new("v1", "Service");
        let target = |place: &str| {
            let (api_version, kind) = (services.api_version.clone(), services.kind.clone());
            Target::Named(Reference { api_version, kind, namespace: Some(place.to_owned()), name: "s".to_owned() })
        };
        let mut gathered = Gathered::new(client);
        gathered.list(&services, Some("a")).await?;
        assert_eq!(gathered.documents().len(), 1);
        assert!(!gathered.read([target("a")]).await?, "the object was read before");
        assert!(gathered.read([target("b")]).await?);
        assert_eq!(gathered.documents().len(), 2);
        let found = gathered.object(&services, "b", "s").await?;
        assert_eq!(found.and_then(|identity| identity.namespace).as_deref(), Some("b"));
        Ok(())
    }
}
