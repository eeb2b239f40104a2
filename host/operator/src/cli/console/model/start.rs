//! Starts a console: reads the policies, finds the namespaces that the user may see, and starts the watches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kaos_policy::contract::ResourceType;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::{
    descriptors,
    places::{Place, Places},
    state::{Model, RECORD},
    used_objects,
    watched_type::{Role, WatchedType},
    watches,
};
use crate::{
    catalogue::{Catalogue, Snapshot},
    cli::{facts::OperatorFacts, output::complain, policy::serving_policies},
    discovery,
    error_text::with_causes,
    watch::Served,
};

/// After a watch reports a record, the console waits for this time before it compares the states of all records.
const QUIET: Duration = Duration::from_secs(1);
/// The console also reads the policies at this interval, because no record shows a change of the operator's own
/// settings.
pub(super) const REREAD: Duration = Duration::from_mins(5);

/// Reads the policies, finds the namespaces that the user may see, and starts the watches.
pub(in crate::cli::console) async fn start(
    client: Client,
    operator: OperatorFacts,
    named: Vec<String>,
) -> anyhow::Result<Arc<Model>> {
    descriptors::raise_limit();
    let catalogue = Catalogue::default();
    let serving = serving_policies(&client, &operator, &catalogue).await?;
    let mut kinds = Vec::new();
    for (of, _) in serving.snapshot.kinds() {
        if let Some(served) = discovery::served(&client, of).await? {
            kinds.push((of.clone(), served));
        }
    }
    let places = Places::find(&client, &kinds, named, wanted(&serving.snapshot).len()).await?;
    let model = Arc::new(Model::new(client, operator, places, (catalogue, serving)));
    for (of, served) in kinds {
        model.lock().serves(of, Some(served));
    }
    watch(&model).await?;
    tokio::spawn(follow_policies(Arc::clone(&model)));
    tokio::spawn(used_objects::follow(Arc::clone(&model)));
    Ok(model)
}

/// Returns the types to watch, each with its role. If a type has several roles, `Claimed` wins.
fn wanted(snapshot: &Snapshot) -> BTreeMap<ResourceType, Role> {
    let mut wanted = BTreeMap::from([(ResourceType::new(RECORD.0, RECORD.1), Role::Record)]);
    let emitted = snapshot.kinds().flat_map(|(_, answers)| answers.claims()).flat_map(|claim| claim.emits.clone());
    wanted.extend(emitted.filter(|of| !of.is_secret()).map(|of| (of, Role::Child)));
    wanted.extend(snapshot.kinds().map(|(of, _)| (of.clone(), Role::Claimed)));
    wanted
}

/// Starts the missing watches, and ends the watches that the console no longer needs.
pub(super) async fn watch(model: &Arc<Model>) -> anyhow::Result<()> {
    let snapshot = model.snapshot();
    let claims = snapshot.kinds().flat_map(|(_, answers)| answers.claims());
    let wishes: BTreeSet<ResourceType> = claims.flat_map(|claim| claim.wishes.clone()).collect();
    for of in wishes {
        let served = discovery::served(&model.client, &of).await?;
        model.lock().serves(of, served);
    }
    for (of, role) in model.end_watches(wanted(&snapshot)) {
        let served = discovery::served(&model.client, &of).await?;
        model.lock().serves(of.clone(), served.clone());
        // Skip a type that the cluster does not serve. The cluster may serve it at the next call.
        let Some(served) = served else { continue };
        let places = places_of(model, &of, &served, role).await?;
        let watched = WatchedType { of, served, place: None, role, stop: CancellationToken::new() };
        for watched in model.begin_watches(&watched, places) {
            tokio::spawn(watches::follow(Arc::clone(model), watched));
        }
    }
    Ok(())
}

/// Returns where to watch a type.
async fn places_of(model: &Model, of: &ResourceType, served: &Served, role: Role) -> anyhow::Result<Vec<Place>> {
    Ok(match role {
        Role::Record => vec![Some(model.operator.cluster.operator_namespace.clone())],
        Role::Claimed => model.places.of_kind(of, served),
        Role::Child => model.places.of_child(&model.client, served).await?,
    })
}

/// Reads the policies again whenever a record changes.
async fn follow_policies(model: Arc<Model>) {
    let mut seen = model.records();
    loop {
        let changed = async {
            while model.records() == seen {
                model.recorded.notified().await;
                tokio::time::sleep(QUIET).await;
            }
        };
        let _is_due = tokio::time::timeout(REREAD, changed).await;
        seen = model.records();
        let asked = Arc::clone(&model);
        let started = match model.blocking(async move |_| asked.read_policies().await).await {
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
