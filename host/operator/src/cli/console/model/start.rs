//! Starts a console: reads the policies, finds the namespaces that the user may see, and starts the watches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kaos_policy::contract::{Cluster, ResourceType};
use kube::Client;

use super::{
    connections, places,
    state::{Model, RECORD},
    watched_type::{Role, WatchedType},
    watches,
};
use crate::{
    cli::{output::complain, policy::serving_policies},
    discovery,
    error_text::with_causes,
    watch::Served,
};

/// After a change, the console waits for this time before it looks whether a record changed.
const QUIET: Duration = Duration::from_secs(1);
/// The console also reads the policies at this interval, because settings of the operator have no record.
const REREAD: Duration = Duration::from_mins(5);

/// Reads the policies, finds the namespaces that the user may see, and starts the watches.
pub(in crate::cli::console) async fn start(
    client: Client,
    cluster: Cluster,
    named: Vec<String>,
) -> anyhow::Result<Arc<Model>> {
    let serving = serving_policies(&client, &cluster).await?;
    let claimed: Vec<ResourceType> = serving.snapshot.kinds().map(|(of, _)| of.clone()).collect();
    let mut first = None;
    for of in &claimed {
        if let Some(served) = discovery::served(&client, of).await? {
            first = Some((of, served));
            break;
        }
    }
    let places = places::find(&client, first.as_ref().map(|(of, served)| (*of, served)), named).await?;
    let model = Arc::new(Model::new(client, cluster, places, serving));
    watch(&model).await?;
    tokio::spawn(follow_policies(Arc::clone(&model)));
    tokio::spawn(connections::follow(Arc::clone(&model)));
    Ok(model)
}

/// Starts the watches that do not run yet.
async fn watch(model: &Arc<Model>) -> anyhow::Result<()> {
    let snapshot = model.snapshot();
    let mut wanted: BTreeMap<ResourceType, Role> = BTreeMap::new();
    wanted.insert(ResourceType::new(RECORD.0, RECORD.1), Role::Record);
    for of in snapshot.kinds().flat_map(|(_, answers)| answers.claims()).flat_map(|claim| claim.emits.clone()) {
        if !of.is_secret() {
            wanted.insert(of, Role::Child);
        }
    }
    let claims = snapshot.kinds().flat_map(|(_, answers)| answers.claims());
    let wishes: BTreeSet<ResourceType> = claims.flat_map(|claim| claim.wishes.clone()).collect();
    for of in wishes {
        let served = discovery::served(&model.client, &of).await?;
        model.lock().serves(of, served);
    }
    wanted.extend(snapshot.kinds().map(|(of, _)| (of.clone(), Role::Claimed)));
    for (of, role) in wanted {
        if model.is_watched(&of) {
            continue;
        }
        let served = discovery::served(&model.client, &of).await?;
        model.lock().serves(of.clone(), served.clone());
        // A type that the cluster does not serve may be served later.
        let Some(served) = served else { continue };
        model.set_watched(of.clone());
        for place in places_of(model, &served, role) {
            let watched = WatchedType { of: of.clone(), served: served.clone(), place, role };
            tokio::spawn(watches::follow(Arc::clone(model), watched));
        }
    }
    Ok(())
}

/// Returns the namespaces in which to watch a type; `None` for the whole cluster.
fn places_of(model: &Model, served: &Served, role: Role) -> Vec<Option<String>> {
    match &model.places.shown {
        _ if role == Role::Record => vec![Some(model.cluster.operator_namespace.clone())],
        Some(places) if served.namespaced => places.iter().cloned().map(Some).collect(),
        _ => vec![None],
    }
}

/// Reads the policies again whenever a record changes.
async fn follow_policies(model: Arc<Model>) {
    let mut changes = model.changes();
    let mut seen = model.records();
    loop {
        let changed = tokio::time::timeout(REREAD, async {
            while model.records() == seen {
                if changes.changed().await.is_err() {
                    return;
                }
                tokio::time::sleep(QUIET).await;
            }
        });
        let _is_due = changed.await;
        seen = model.records();
        let asked = Arc::clone(&model);
        let read = model.blocking(async move || serving_policies(&asked.client, &asked.cluster).await).await;
        let started = match read {
            Ok(serving) => {
                model.serve(serving);
                watch(&model).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = started {
            complain("note", format_args!("cannot read the policies again: {}", with_causes(error.as_ref())));
        }
    }
}
