//! Finds the namespaces that the user may see.

use k8s_openapi::api::core::v1::Namespace;
use kaos_policy::contract::ResourceType;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};

use crate::watch::Served;

/// The maximum number of namespaces that the console watches one by one.
const MOST: usize = 100;

/// The namespaces that a console shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli::console) struct Places {
    /// The namespaces; `None` for the whole cluster.
    pub(super) shown: Option<Vec<String>>,
    /// The namespaces in which the user has no right to list objects.
    pub(in crate::cli::console) hidden: Vec<String>,
    /// The number of namespaces that the console leaves out, because there are too many.
    pub(in crate::cli::console) left_out: usize,
}

/// Finds the namespaces to show. `named` are the namespaces of the user's flags; if there are none, the console shows
/// the whole cluster, or else every namespace in which the user may list the objects of the first kind.
pub(super) async fn find(
    client: &Client,
    kind: Option<(&ResourceType, &Served)>,
    named: Vec<String>,
) -> Result<Places, kube::Error> {
    let Some((_, served)) = kind else { return Ok(Places::default()) };
    if named.is_empty() && may_list(Api::all_with(client.clone(), &served.resource)).await? {
        return Ok(Places::default());
    }
    let mut candidates = if named.is_empty() { namespaces(client).await? } else { named };
    let left_out = candidates.len().saturating_sub(MOST);
    candidates.truncate(MOST);
    let mut places = Places { shown: Some(Vec::new()), hidden: Vec::new(), left_out };
    for namespace in candidates {
        let may = may_list(Api::namespaced_with(client.clone(), &namespace, &served.resource)).await?;
        let list = if may { places.shown.get_or_insert_default() } else { &mut places.hidden };
        list.push(namespace);
    }
    Ok(places)
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
