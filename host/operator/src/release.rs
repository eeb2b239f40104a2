//! Removes finalizers, so that users can delete objects and their namespaces after the operator is uninstalled.
//!
//! The command `release` removes the finalizers in the claims of policies, and the finalizers of earlier operators.
//! Settings may name further finalizers, so the command also removes every finalizer that this operator added, as the
//! managed fields show. The command keeps all other finalizers.
//!
//! The command removes no finalizers in namespaces where the user has no right to read objects. Such rights can be
//! missing because a user deleted a namespace together with the operator's Role, or because a failed installation never
//! created the Roles. The command reports these namespaces, but does not treat them as a failure.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::{contract::ResourceType, policy::Policy};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, ListParams, PartialObjectMeta, Patch, PatchParams},
    discovery::ApiResource,
};
use serde_json::{Value, json};

use crate::{discovery, error_text::with_causes, reconcile::put_on, watch::Scope};

/// The number of objects in one page of a list request.
const PAGE: u32 = 500;

/// The finalizers to remove, by type.
pub type FinalizersByType = BTreeMap<ResourceType, BTreeSet<String>>;

/// The outcome for one object or one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The cluster does not serve the type, so the type has no objects.
    Unserved(ResourceType),
    /// The command removed these finalizers; in a dry run, it would remove them.
    Released {
        /// The type of the object.
        of: ResourceType,
        /// `namespace/name`.
        object: String,
        /// The removed finalizers.
        finalizers: Vec<String>,
    },
    /// The command deleted an object that the operator stored only for itself; in a dry run, it would delete this
    /// object.
    Removed {
        /// The type of the object.
        of: ResourceType,
        /// `namespace/name`.
        object: String,
    },
    /// The user has no right to read objects in a namespace or in the whole cluster, so the command removed no
    /// finalizers there.
    Barred {
        /// The namespace; `None` for the whole cluster.
        namespace: Option<String>,
        /// The API server's message.
        because: String,
    },
    /// One step failed; the other steps continue.
    Failed {
        /// The type.
        of: ResourceType,
        /// `namespace/name`. If the command could not list objects, a text that says so instead.
        object: String,
        /// The error.
        because: String,
    },
}

/// Returns the finalizers to remove for each type that these policies claim: those in the claims, those of earlier
/// operators, and those in `further`.
pub fn finalizers<'a>(policies: impl IntoIterator<Item = &'a Policy>, further: &[String]) -> FinalizersByType {
    let mut finalizers = FinalizersByType::new();
    for claim in policies.into_iter().flat_map(|policy| &policy.descriptor().claims) {
        let named = claim.finalizer.clone().into_iter().chain(claim.earlier_finalizer()).chain(further.iter().cloned());
        finalizers.entry(claim.primary.clone()).or_default().extend(named);
    }
    finalizers
}

/// Removes the finalizers from every object. Calls `tell` immediately with each outcome. At the end, calls `tell` for
/// each namespace in which the user has no right to read objects.
pub async fn release(
    client: &Client,
    finalizers: &FinalizersByType,
    scope: &Scope,
    dry_run: bool,
    mut tell: impl FnMut(Event),
) -> Result<(), kube::Error> {
    // Fail if the command cannot reach the API server: otherwise the command would report that the cluster serves none
    // of the types.
    client.apiserver_version().await?;
    let mut sights: BTreeMap<Option<&str>, ReadableTypes> = BTreeMap::new();
    for (of, names) in finalizers {
        let Some(served) = discovery::served(client, of).await? else {
            tell(Event::Unserved(of.clone()));
            continue;
        };
        let resource = &served.resource;
        let everywhere = Api::<DynamicObject>::dynamic(client.clone(), resource, &served.scope());
        let places: Vec<(Option<&str>, Api<DynamicObject>)> = match scope {
            Scope::All => vec![(None, everywhere)],
            Scope::Listed(namespaces) => {
                let place = |namespace: &String| everywhere.clone().constrain(namespace);
                namespaces.iter().map(|namespace| (Some(namespace.as_str()), place(namespace))).collect()
            }
        };
        for (namespace, place) in places {
            let job = TypeInPlace { client, of, resource, names, dry_run };
            let sight = sights.entry(namespace).or_default();
            match job.release_all(&place, &mut tell).await {
                Ok(()) => sight.any = true,
                Err(because) => sight.refused.push((of.clone(), because)),
            }
        }
    }
    for (namespace, sight) in sights {
        sight.tell(namespace, &mut tell);
    }
    Ok(())
}

/// Which types the user has the right to read, in one namespace or in the whole cluster.
#[derive(Default)]
struct ReadableTypes {
    /// Whether the user has the right to read objects of at least one type.
    any: bool,
    /// The types whose objects the user has no right to read, each with the reason.
    refused: Vec<(ResourceType, String)>,
}

impl ReadableTypes {
    /// Reports the types whose objects the user has no right to read. If the user can read other types, reports each
    /// unreadable type as a failure. Otherwise, reports once that the user can read nothing in this namespace, or in
    /// the whole cluster.
    fn tell(self, namespace: Option<&str>, tell: &mut impl FnMut(Event)) {
        let Self { any, refused } = self;
        if any {
            let failed = |(of, because)| Event::Failed { of, object: unlisted(namespace), because };
            refused.into_iter().map(failed).for_each(tell);
        } else if let Some((_, because)) = refused.into_iter().next() {
            tell(Event::Barred { namespace: namespace.map(str::to_owned), because });
        }
    }
}

/// Returns the text to show instead of an object's name, if the command could not list objects.
fn unlisted(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("objects of namespace {namespace} cannot be listed"),
        None => "objects cannot be listed".to_owned(),
    }
}

/// One type in one namespace, or in the whole cluster.
struct TypeInPlace<'a> {
    client: &'a Client,
    of: &'a ResourceType,
    resource: &'a ApiResource,
    names: &'a BTreeSet<String>,
    dry_run: bool,
}

impl TypeInPlace<'_> {
    /// Removes the finalizers from all objects. The error contains the reason why the user cannot list the objects.
    async fn release_all(&self, place: &Api<DynamicObject>, tell: &mut impl FnMut(Event)) -> Result<(), String> {
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = match place.list_metadata(&params).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    tell(Event::Unserved(self.of.clone()));
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 403 => return Err(status.message),
                Err(error) => {
                    let (of, object) = (self.of.clone(), unlisted(place.namespace()));
                    tell(Event::Failed { of, object, because: with_causes(&error) });
                    return Ok(());
                }
            };
            for object in page.items {
                if let Some(event) = self.release_one(object).await {
                    tell(event);
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(()),
            }
        }
    }

    /// Removes the finalizers from one object. Returns `None` if the object has none of these finalizers.
    async fn release_one(&self, mut object: PartialObjectMeta<DynamicObject>) -> Option<Event> {
        let of = self.of.clone();
        let namespace = object.namespace().unwrap_or_default();
        let shown = if namespace.is_empty() { object.name_any() } else { format!("{namespace}/{}", object.name_any()) };
        let api = match namespace.as_str() {
            "" => Api::<DynamicObject>::all_with(self.client.clone(), self.resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, self.resource),
        };
        loop {
            let entries = object.metadata.managed_fields.iter().flatten();
            let entries: Vec<Value> = entries.filter_map(|entry| serde_json::to_value(entry).ok()).collect();
            let own = put_on(&entries);
            let is_ours = |finalizer: &String| self.names.contains(finalizer) || own.contains(finalizer);
            let (gone, kept): (Vec<String>, Vec<String>) = object.finalizers().iter().cloned().partition(is_ours);
            if gone.is_empty() {
                return None;
            }
            if self.dry_run {
                return Some(Event::Released { of, object: shown, finalizers: gone });
            }
            // The patch contains the resource version, so that it fails if another client added a finalizer after the
            // read. If the object was deleted after the read, nothing is left to do.
            let version = object.resource_version();
            let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version, "finalizers": kept}}));
            let failed = match api.patch_metadata(&object.name_any(), &PatchParams::default(), &patch).await {
                Ok(_) => return Some(Event::Released { of, object: shown, finalizers: gone }),
                Err(kube::Error::Api(status)) if status.is_not_found() => return None,
                Err(kube::Error::Api(status)) if status.is_conflict() => {
                    match api.get_metadata_opt(&object.name_any()).await {
                        Ok(Some(current)) => {
                            object = current;
                            continue;
                        }
                        Ok(None) => return None,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            return Some(Event::Failed { of, object: shown, because: with_causes(&failed) });
        }
    }
}
