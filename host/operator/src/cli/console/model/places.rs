//! Finds the namespaces that the user may see. Rights can differ for each kind, so each kind has its own namespaces.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kaos_policy::contract::ResourceType;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};

use super::descriptors::most_namespaces;
use crate::watch::Served;

/// The number of questions about rights that the console asks at once.
const AT_ONCE: usize = 16;

/// Where to watch a type: a namespace, or `None` for the whole cluster.
pub(super) type Place = Option<String>;

/// The namespaces that a console shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli::console) struct Places {
    /// Where to watch each kind.
    of_kind: BTreeMap<ResourceType, Vec<Place>>,
    /// The namespaces in which the user may be able to see objects; `None` for the whole cluster.
    candidates: Option<Vec<String>>,
    /// Whether the user named the namespaces.
    are_named: bool,
    /// The namespaces in which the user may list no kind.
    pub(in crate::cli::console) hidden: Vec<String>,
    /// The number of namespaces that the console leaves out, because it cannot watch so many namespaces.
    pub(in crate::cli::console) left_out: usize,
    /// The kinds that the user may not list, each with the namespace in which the right is missing. `None` if the user
    /// may list the kind in no namespace.
    pub(super) refused: Vec<(ResourceType, Place)>,
}

impl Places {
    /// Finds where to watch each of these kinds. `named` are the namespaces of the user's flags. Without flags, the
    /// console shows each kind in the whole cluster. If the user may not list the kind in the whole cluster, the
    /// console shows the kind in every namespace in which the user may list it. `types` is the number of all types to
    /// watch.
    pub(super) async fn find(
        client: &Client,
        kinds: &[(ResourceType, Served)],
        named: Vec<String>,
        types: usize,
    ) -> Result<Self, kube::Error> {
        let mut places = Self { are_named: !named.is_empty(), ..Self::default() };
        let everywhere = places.allowed_everywhere(client, kinds).await?;
        if everywhere.len() == kinds.len() {
            places.of_kind = everywhere.into_iter().map(|of| (of, vec![None])).collect();
            return Ok(places);
        }
        let mut candidates = if named.is_empty() { namespaces(client).await? } else { named };
        places.left_out = candidates.len().saturating_sub(most_namespaces(types));
        candidates.truncate(candidates.len() - places.left_out);
        let others: Vec<&(ResourceType, Served)> = kinds.iter().filter(|(of, _)| !everywhere.contains(of)).collect();
        let allowed = allowed(client, &others, &candidates).await?;
        let shown: BTreeSet<&String> = allowed.values().flatten().collect();
        if everywhere.is_empty() {
            places.hidden = candidates.iter().filter(|candidate| !shown.contains(*candidate)).cloned().collect();
        }
        for (of, _) in &others {
            let own = &allowed[of];
            let missing = candidates.iter().filter(|it| !own.contains(it.as_str()) && !places.hidden.contains(it));
            if own.is_empty() {
                places.refused.push((of.clone(), None));
            } else {
                places.refused.extend(missing.map(|namespace| (of.clone(), Some(namespace.clone()))));
            }
        }
        let in_namespaces = allowed.into_iter().map(|(of, own)| (of, own.into_iter().map(Some).collect()));
        places.of_kind = everywhere.into_iter().map(|of| (of, vec![None])).chain(in_namespaces).collect();
        places.candidates = Some(candidates);
        Ok(places)
    }

    /// Returns the kinds that the user may list in the whole cluster.
    async fn allowed_everywhere(
        &self,
        client: &Client,
        kinds: &[(ResourceType, Served)],
    ) -> Result<BTreeSet<ResourceType>, kube::Error> {
        if self.are_named {
            return Ok(BTreeSet::new());
        }
        let asked = stream::iter(kinds.to_vec()).map(|(of, served)| {
            let api = Api::all_with(client.clone(), &served.resource);
            async move { Ok::<_, kube::Error>(may_list(api).await?.then_some(of)) }
        });
        let found: Vec<Option<ResourceType>> = asked.buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns where to watch a kind. If a policy claimed the kind only after the start of the console, the rights are
    /// unknown: returns every namespace in which the user may be able to see objects.
    pub(super) fn of_kind(&self, of: &ResourceType, served: &Served) -> Vec<Place> {
        self.of_kind.get(of).cloned().unwrap_or_else(|| self.of_other(served))
    }

    /// Returns where to watch a type that no policy claims.
    pub(super) async fn of_child(&self, client: &Client, served: &Served) -> Result<Vec<Place>, kube::Error> {
        let is_whole = self.candidates.is_none()
            || (!self.are_named && may_list(Api::all_with(client.clone(), &served.resource)).await?);
        Ok(if is_whole { vec![None] } else { self.of_other(served) })
    }

    fn of_other(&self, served: &Served) -> Vec<Place> {
        match &self.candidates {
            Some(candidates) if served.namespaced => {
                candidates.iter().filter(|candidate| !self.hidden.contains(candidate)).cloned().map(Some).collect()
            }
            _ => vec![None],
        }
    }
}

/// Returns the namespaces in which the user may list each of these kinds.
async fn allowed(
    client: &Client,
    kinds: &[&(ResourceType, Served)],
    candidates: &[String],
) -> Result<BTreeMap<ResourceType, BTreeSet<String>>, kube::Error> {
    let namespaced = kinds.iter().filter(|(_, served)| served.namespaced);
    let question = |(of, served): &(ResourceType, Served), place: &String| {
        let api = Api::namespaced_with(client.clone(), place, &served.resource);
        let (of, place) = (of.clone(), place.clone());
        async move { Ok::<_, kube::Error>((of, place, may_list(api).await?)) }
    };
    let questions: Vec<_> = namespaced.flat_map(|kind| candidates.iter().map(move |place| (*kind, place))).collect();
    let asked = stream::iter(questions).map(|(kind, place)| question(kind, place));
    let answers: Vec<(ResourceType, String, bool)> = asked.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut allowed: BTreeMap<ResourceType, BTreeSet<String>> =
        kinds.iter().map(|(of, _)| (of.clone(), BTreeSet::new())).collect();
    for (of, place, _) in answers.into_iter().filter(|(_, _, may)| *may) {
        allowed.entry(of).or_default().insert(place);
    }
    Ok(allowed)
}

async fn may_list(api: Api<DynamicObject>) -> Result<bool, kube::Error> {
    match api.list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(answer)) if answer.code == 403 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lists all namespaces. If the user may not list namespaces, returns the namespace of the context.
async fn namespaces(client: &Client) -> Result<Vec<String>, kube::Error> {
    match Api::<Namespace>::all(client.clone()).list_metadata(&ListParams::default()).await {
        Ok(listed) => Ok(listed.items.into_iter().filter_map(|namespace| namespace.metadata.name).collect()),
        Err(kube::Error::Api(answer)) if answer.code == 403 => Ok(vec![client.default_namespace().to_owned()]),
        Err(error) => Err(error),
    }
}
