//! Reads completion candidates from the cluster. If the cluster does not answer within a short time, the command offers
//! no candidates.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kaos_crds::{API_VERSION, manifests};
use kaos_policy::contract::ResourceType;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};

use super::{
    super::{
        connection::on_cluster,
        policy::{claimed, installed},
    },
    words::Words,
};
use crate::discovery;

/// The time limit for reading candidates from the cluster. The limit is short because the user waits while typing.
const TIME_LIMIT: Duration = Duration::from_secs(3);
/// The maximum number of objects of one kind whose names the command offers.
const MAX_CANDIDATES: u32 = 500;

/// Returns the names of all namespaces.
pub(super) fn namespaces(words: &Words) -> Vec<String> {
    ask(words, async |client| {
        let listed = Api::<Namespace>::all(client).list_metadata(&ListParams::default().limit(MAX_CANDIDATES)).await?;
        Ok(listed.items.into_iter().filter_map(|found| found.metadata.name).collect())
    })
}

/// If the typed text contains a kind and a slash, returns the objects of this kind as `KIND/NAME`. Otherwise, returns
/// the kinds. If `alone` is true, a kind without a name is a complete argument.
pub(super) fn objects(words: &Words, typed: &str, alone: bool) -> Vec<String> {
    let home = words.home();
    ask(words, async |client| {
        let kinds = kinds(&client, &home).await;
        let Some((word, _)) = typed.split_once('/') else {
            let name = |of: &ResourceType| of.kind.to_lowercase();
            let with_slash = kinds.iter().map(|of| format!("{}/", name(of)));
            let plain = kinds.iter().filter(|_| alone).map(name);
            return Ok(plain.chain(with_slash).collect());
        };
        let of = discovery::meant(&client, &kinds, word).await?;
        let Some(served) = discovery::served(&client, &of).await? else { return Ok(Vec::new()) };
        let place = words.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
        let api: Api<DynamicObject> = if words.all_namespaces || !served.namespaced {
            Api::all_with(client, &served.resource)
        } else {
            Api::namespaced_with(client, &place, &served.resource)
        };
        let listed = api.list_metadata(&ListParams::default().limit(MAX_CANDIDATES)).await?;
        let names: BTreeSet<String> = listed.items.into_iter().filter_map(|found| found.metadata.name).collect();
        Ok(names.into_iter().map(|name| format!("{word}/{name}")).collect())
    })
}

/// Returns the names of installed policies, and the names of their ConfigMaps.
pub(super) fn packages(words: &Words) -> Vec<String> {
    let home = words.home();
    ask(words, async |client| Ok(installed(client, &home).await?.packages.into_iter().collect()))
}

/// Returns the names of policy revisions.
pub(super) fn revisions(words: &Words) -> Vec<String> {
    let home = words.home();
    ask(words, async |client| Ok(installed(client, &home).await?.revisions))
}

/// Returns the kinds for which policies answer. Without the right to read installed policies, returns the kinds of the
/// default policies.
async fn kinds(client: &Client, home: &str) -> BTreeSet<ResourceType> {
    let further = claimed(client.clone(), home).await.unwrap_or_default();
    manifests::claimed().map(|kind| ResourceType::new(API_VERSION, kind)).chain(further).collect()
}

/// Asks the cluster. After an error, returns no candidates and prints no message, because the message would appear in
/// the line that the user types.
fn ask(words: &Words, work: impl AsyncFnOnce(Client) -> anyhow::Result<Vec<String>>) -> Vec<String> {
    let asked = on_cluster(words.connection(), async |client| {
        tokio::time::timeout(TIME_LIMIT, work(client)).await.unwrap_or_else(|_| Ok(Vec::new()))
    });
    asked.unwrap_or_default()
}
