//! A test's access to its cluster: apply, patch, delete, read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use kaos_cluster::{Cluster, PodFate};
use kaos_operator::operator::Clock;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::crash::CrashPoint;
use super::faults::Script;
use super::kinds::{At, Kind};
use super::read::{text, uid};
use super::running::Running;
use super::scenario::Scenario;
use super::setting::Setting;

/// The cluster of a world.
pub(super) enum Below {
    Embedded(Cluster),
    Real,
}

/// A test's world: a cluster, the test's own namespace, and an operator that the test can start and stop.
pub struct World {
    /// A client that has all rights.
    pub client: Client,
    /// The test's namespace.
    pub namespace: String,
    pub(super) below: Below,
    /// The write at which an operator crashes.
    pub crash_point: CrashPoint,
    pub(super) script: Script,
    pub(super) setting: Setting,
    pub(super) running: RefCell<Vec<Running>>,
}

/// The field manager of the user.
const USER: &str = "user";

impl World {
    /// Creates a world on an existing real cluster. Installs nothing, and starts no operator.
    pub fn over(client: Client, namespace: &str) -> Self {
        let scenario = Scenario::default().environment(&BTreeMap::new());
        let setting = Setting::new(&scenario, Clock::System);
        Self::new(client, namespace.to_owned(), Below::Real, Script::default(), setting)
    }

    /// Creates a world without an operator.
    pub(super) fn new(client: Client, namespace: String, below: Below, script: Script, setting: Setting) -> Self {
        let (crash_point, running) = (CrashPoint::default(), RefCell::default());
        Self { client, namespace, below, crash_point, script, setting, running }
    }

    /// Returns the embedded cluster.
    ///
    /// # Panics
    /// If the world has a real cluster. So the test's scenario must require the embedded cluster.
    #[expect(clippy::panic, reason = "the scenario is wrong")]
    pub fn embedded(&self) -> &Cluster {
        self.try_embedded().unwrap_or_else(|| panic!("the scenario of this test must be `embedded`"))
    }

    /// Returns the embedded cluster. Returns `None` on a real cluster.
    pub fn try_embedded(&self) -> Option<&Cluster> {
        match &self.below {
            Below::Embedded(cluster) => Some(cluster),
            Below::Real => None,
        }
    }

    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(if self.try_embedded().is_some() { 900 } else { 600 })
    }

    pub(super) fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let resource = kind.resource();
        if kind.namespaced && !namespace.is_empty() {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        }
    }

    fn at(&self, at: &str) -> (At, Api<DynamicObject>) {
        let at = At::parse(at, &self.namespace);
        let api = self.api(at.kind, &at.namespace);
        (at, api)
    }

    /// Applies an object as the user. An object without a namespace gets the test's namespace.
    pub async fn try_apply(&self, object: &Value) -> kube::Result<Value> {
        self.apply_as(USER, object).await
    }

    /// Applies an object as a field manager.
    pub async fn apply_as(&self, manager: &str, object: &Value) -> kube::Result<Value> {
        let at = At::of(object, &self.namespace);
        let mut object = object.clone();
        if at.kind.namespaced {
            object["metadata"]["namespace"] = json!(at.namespace);
        }
        let params = PatchParams::apply(manager).force();
        self.api(at.kind, &at.namespace).patch(&at.name, &params, &Patch::Apply(&object)).await.map(value)
    }

    /// Applies an object as the user.
    ///
    /// # Panics
    /// If the API server rejects the object.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn apply(&self, object: &Value) -> Value {
        self.try_apply(object).await.unwrap_or_else(|error| panic!("{object} is refused: {error}"))
    }

    /// Applies several objects, one after the other.
    pub async fn apply_all(&self, objects: &[Value]) {
        for object in objects {
            self.apply(object).await;
        }
    }

    /// Creates an object with a POST.
    ///
    /// # Panics
    /// If the API server rejects the object.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn create(&self, object: &Value, params: &PostParams) {
        let at = At::of(object, &self.namespace);
        let created = match serde_json::from_value(object.clone()) {
            Ok(object) => self.api(at.kind, &at.namespace).create(params, &object).await,
            Err(error) => panic!("{object} is no object: {error}"),
        };
        created.unwrap_or_else(|error| panic!("{object} is refused: {error}"));
    }

    /// Changes an object by a merge patch, as another client than the user and the operator.
    ///
    /// # Panics
    /// If the API server rejects the patch.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn patch(&self, at: &str, patch: &Value) -> Value {
        self.try_patch(at, patch).await.unwrap_or_else(|error| panic!("the patch of {at} is refused: {error}"))
    }

    /// Like [`Self::patch`], but returns the API server's error.
    pub async fn try_patch(&self, at: &str, patch: &Value) -> kube::Result<Value> {
        self.try_patch_as("somebody", at, patch).await
    }

    /// Like [`Self::patch`], but with the given field manager.
    ///
    /// # Panics
    /// If the API server rejects the patch.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn patch_as(&self, manager: &str, at: &str, patch: &Value) -> Value {
        let patched = self.try_patch_as(manager, at, patch).await;
        patched.unwrap_or_else(|error| panic!("the patch of {at} is refused: {error}"))
    }

    async fn try_patch_as(&self, manager: &str, at: &str, patch: &Value) -> kube::Result<Value> {
        let (place, api) = self.at(at);
        api.patch(&place.name, &updating(manager), &Patch::Merge(patch)).await.map(value)
    }

    /// Sets the number of replicas through the subresource `scale`, like `kubectl scale` and autoscalers.
    ///
    /// # Panics
    /// If the API server rejects the request.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn scale(&self, at: &str, replicas: i32) {
        let (place, api) = self.at(at);
        let patch = json!({"spec": {"replicas": replicas}});
        let scaled = api.patch_scale(&place.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        drop(scaled.unwrap_or_else(|error| panic!("{at} is not scaled: {error}")));
    }

    /// Changes the status of an object by a merge patch.
    pub async fn patch_status(&self, at: &str, status: &Value) {
        self.patch_status_with(&PatchParams::default(), at, status).await;
    }

    /// Changes the status of an object by a merge patch, as a field manager.
    pub async fn patch_status_as(&self, manager: &str, at: &str, status: &Value) {
        self.patch_status_with(&updating(manager), at, status).await;
    }

    #[expect(clippy::panic, reason = "that is how a test fails")]
    async fn patch_status_with(&self, params: &PatchParams, at: &str, status: &Value) {
        let (place, api) = self.at(at);
        let patch = json!({"status": status});
        let patched = api.patch_status(&place.name, params, &Patch::Merge(&patch)).await;
        patched.unwrap_or_else(|error| panic!("the status of {at} is refused: {error}"));
    }

    /// Deletes an object if it exists.
    ///
    /// # Panics
    /// If the API server rejects the deletion.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn delete(&self, at: &str) {
        self.try_delete(at).await.unwrap_or_else(|error| panic!("the deletion of {at} is refused: {error}"));
    }

    /// Deletes an object, but keeps the objects that it owns.
    ///
    /// # Panics
    /// If the API server rejects the deletion.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn orphan(&self, at: &str) {
        let (place, api) = self.at(at);
        let params = DeleteParams::orphan();
        let deleted = api.delete(&place.name, &params).await;
        drop(deleted.unwrap_or_else(|error| panic!("the deletion of {at} is refused: {error}")));
    }

    /// Like [`World::delete`], but returns the API server's error.
    pub async fn try_delete(&self, at: &str) -> kube::Result<()> {
        let (place, api) = self.at(at);
        match api.delete(&place.name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Reads an object. Returns null if the object does not exist.
    ///
    /// # Panics
    /// If the object cannot be read.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn look(&self, at: &str) -> Value {
        self.try_look(at).await.unwrap_or_else(|error| panic!("{at} cannot be read: {error}"))
    }

    /// Like [`Self::look`], but returns the API server's error.
    pub async fn try_look(&self, at: &str) -> kube::Result<Value> {
        let (place, api) = self.at(at);
        if let Some(cluster) = self.try_embedded() {
            let object = cluster.object(place.kind.group(), place.kind.plural, &place.namespace, &place.name);
            return Ok(object.map(|object| typed((*object).clone(), place.kind)).unwrap_or_default());
        }
        Ok(api.get_opt(&place.name).await?.map(value).unwrap_or_default())
    }

    /// Returns the objects of a kind in the test's namespace.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        self.list_in(Kind::named(kind), &self.namespace).await
    }

    /// Returns the objects of a kind in a namespace. Returns an empty list if the API server does not serve the kind.
    ///
    /// # Panics
    /// If the objects cannot be listed.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn list_in(&self, kind: Kind, namespace: &str) -> Vec<Value> {
        let listed = self.try_list_in(kind, namespace).await;
        listed.unwrap_or_else(|error| panic!("{} cannot be listed: {error}", kind.plural))
    }

    /// Like [`Self::list_in`], but returns the API server's error.
    pub async fn try_list_in(&self, kind: Kind, namespace: &str) -> kube::Result<Vec<Value>> {
        if let Some(cluster) = self.try_embedded() {
            let objects = cluster.objects(kind.group(), kind.plural).into_iter();
            let here = objects.filter(|object| !kind.namespaced || object["metadata"]["namespace"] == *namespace);
            return Ok(here.map(|object| typed((*object).clone(), kind)).collect());
        }
        match self.api(kind, namespace).list(&ListParams::default()).await {
            Ok(list) => Ok(list.items.into_iter().map(|object| typed(value(object), kind)).collect()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the objects of a kind that have this owner.
    pub async fn owned(&self, owner: &str, kind: &str) -> Vec<Value> {
        let owner = self.look(owner).await;
        let is_owned = |object: &Value| {
            let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.any(|reference| text(&reference["uid"]) == uid(&owner))
        };
        self.list(kind).await.into_iter().filter(is_owned).collect()
    }

    /// Returns the number of a Deployment's `ReplicaSets`, because each rollout creates one.
    pub async fn rollouts(&self, deployment: &str) -> usize {
        self.owned(&format!("Deployment/{deployment}"), "ReplicaSet").await.len()
    }

    /// Lists objects as a table, like `kubectl get`.
    ///
    /// # Panics
    /// If the API server does not return a table.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn table(&self, path: &str) -> Value {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let request = http::Request::get(path).header("accept", accept).body(Vec::new());
        let asked = match request {
            Ok(request) => self.client.request(request).await,
            Err(error) => panic!("{path}: {error}"),
        };
        asked.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Sets whether and how the pods of a Deployment become ready or fail.
    pub fn pods_of(&self, deployment: &str, fate: PodFate) {
        self.embedded().set_pods_of(&self.namespace, deployment, Some(fate));
    }

    /// Sets whether and how pods become ready or fail, for all Deployments for which the test did not call
    /// [`Self::pods_of`].
    pub fn pods(&self, fate: PodFate) {
        self.embedded().set_pods(fate);
    }
}

/// Returns the parameters with which the API server records a patch as an update by this field manager.
fn updating(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// Adds `apiVersion` and `kind` to an object from a list, because an API server omits these fields in lists.
fn typed(mut object: Value, kind: Kind) -> Value {
    object["apiVersion"] = json!(kind.api_version);
    object["kind"] = json!(kind.kind);
    object
}
