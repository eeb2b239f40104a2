//! The task that writes the objects for the decision point.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fastrand::Rng;
use kaos_crds::{API_VERSION, access::PROJECTION_NAME, manifests};
use kaos_policy::contract::ResourceType;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::Value;
use tracing::{info, warn};

use super::{
    DecisionPoint, News,
    wanted::{ChosenNamespaces, KIND, LABEL, REFERENCE_GRANT, grant, grant_name, policy},
};
use crate::{
    backoff::Backoff,
    error_text::with_causes,
    watch::{ObjectKey, Scope, Watch},
};

/// The field manager of this task. Passes write other fields of an AuthorizationPolicy, with another field manager. If
/// the task and the passes used the same field manager, each apply would remove the fields of the other writer.
const WRITER: &str = "kaos-operator-decision-point";
/// The delay before the task reads the list of namespaces again. Users often create objects of several namespaces at
/// the same time, and one write handles all of them.
const GATHER: Duration = Duration::from_secs(1);
/// The delays after failures.
const RETRY: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_mins(5) };

/// Writes the objects for the decision point, and keeps them up to date.
pub(crate) struct Keeper {
    pub(crate) client: Client,
    pub(crate) watch: Watch,
    pub(crate) news: Arc<News>,
    pub(crate) home: String,
    pub(crate) scope: Scope,
    pub(crate) options: DecisionPoint,
}

impl Keeper {
    /// Writes the objects at the start and after each change. Never ends.
    pub(crate) async fn keep(self) {
        let (mut failures, mut rng) = (0_u32, Rng::new());
        loop {
            let Some(found) = self.found() else {
                // Read the list of namespaces again soon, because the watch does not report when it has listed all
                // types.
                tokio::time::sleep(GATHER).await;
                continue;
            };
            match self.write(&found).await {
                Ok(()) => {
                    failures = 0;
                    self.news.know(found);
                    self.news.came().await;
                    tokio::time::sleep(GATHER).await;
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    let why = with_causes(&error);
                    warn!("could not write the objects for the decision point; trying again: {why}");
                    tokio::time::sleep(RETRY.after(failures, &mut rng)).await;
                }
            }
        }
    }

    /// Returns the namespaces for the AuthorizationPolicy: the namespaces that the user listed. If the user listed
    /// none, returns the namespaces in which the operator works. If the operator works in all namespaces, returns the
    /// namespaces with objects. Returns `None` while the operator does not see all objects: if the list lacked the
    /// namespace of an object, users would lose access to the object.
    fn found(&self) -> Option<BTreeSet<String>> {
        self.sees(KIND)?;
        let listed = self.options.listed();
        if !listed.is_empty() {
            return Some(listed);
        }
        if let Scope::Listed(namespaces) = &self.scope {
            return Some(namespaces.clone());
        }
        let mut found = BTreeSet::new();
        for kind in manifests::claimed().filter(|kind| *kind != KIND) {
            let of = self.sees(kind)?;
            found.extend(self.watch.keys(&of).into_iter().map(|key| key.namespace));
        }
        Some(found)
    }

    /// Returns the type of a kind if the watch has listed the objects of this kind.
    fn sees(&self, kind: &str) -> Option<ResourceType> {
        let of = ResourceType::new(API_VERSION, kind);
        let is_listed = self.watch.served(&of).is_some() && self.watch.unlisted(&of).iter().all(|other| *other != of);
        (is_listed && self.watch.trouble_in(&of, &self.home).is_none()).then_some(of)
    }

    async fn write(&self, found: &BTreeSet<String>) -> kube::Result<()> {
        let key = ObjectKey::new(ResourceType::new(API_VERSION, KIND), &*self.home, PROJECTION_NAME);
        let live = self.watch.object(&key);
        let spec = live.as_ref().map_or(&Value::Null, |live| &live["spec"]);
        let before = spec["namespaces"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let ChosenNamespaces { listed, left_out } = ChosenNamespaces::choose(found, &before.collect());
        if !left_out.is_empty() {
            let namespaces = left_out.into_iter().collect::<Vec<_>>().join(", ");
            warn!(
                namespaces,
                "the AuthorizationPolicy {PROJECTION_NAME} has no room for these namespaces: their objects have no \
                 access"
            );
        }
        let wanted = policy(&self.options.spec, &listed, &self.home);
        let uid = match live {
            Some(live) if live["spec"] == wanted["spec"] => live["metadata"]["uid"].as_str().map(str::to_owned),
            _ => {
                info!("writing AuthorizationPolicy {PROJECTION_NAME} with {} namespaces", listed.len());
                self.apply(&self.api(API_VERSION, KIND), &wanted).await?.metadata.uid
            }
        };
        if self.options.is_served { self.allow_references(found, &uid.unwrap_or_default()).await } else { Ok(()) }
    }

    /// Writes a `ReferenceGrant` for each of the `namespaces`. Skips the operator's own namespace, whose
    /// SecurityPolicies need no `ReferenceGrant`. Deletes the `ReferenceGrants` for all other namespaces.
    async fn allow_references(&self, namespaces: &BTreeSet<String>, uid: &str) -> kube::Result<()> {
        let grants = self.api(REFERENCE_GRANT.0, REFERENCE_GRANT.1);
        let ours = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let live = match grants.list(&ours).await {
            Ok(live) => live.items,
            // A cluster without the Gateway API has no routes, so it needs no `ReferenceGrants`.
            Err(kube::Error::Api(answer)) if answer.code == 404 => return Ok(()),
            Err(error) => return Err(error),
        };
        let others = namespaces.iter().filter(|namespace| **namespace != self.home);
        let mut wanted = BTreeSet::new();
        for namespace in others {
            let manifest = grant(namespace, &self.home, uid);
            let name = grant_name(namespace);
            let is_owned = |live: &DynamicObject| live.owner_references().iter().any(|owner| owner.uid == uid);
            let is_it = |live: &DynamicObject| live.name_any() == name && live.data["spec"] == manifest["spec"];
            if !live.iter().any(|live| is_it(live) && is_owned(live)) {
                self.apply(&grants, &manifest).await?;
            }
            wanted.insert(name);
        }
        for grant in live.iter().map(ResourceExt::name_any).filter(|name| !wanted.contains(name)) {
            match grants.delete(&grant, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(answer)) if answer.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.home, &resource)
    }

    async fn apply(&self, api: &Api<DynamicObject>, manifest: &Value) -> kube::Result<DynamicObject> {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        api.patch(name, &PatchParams::apply(WRITER).force(), &Patch::Apply(manifest)).await
    }
}
