//! A plan against a running cluster.

use kaos_policy::contract::ResourceType;
use kube::Client;

use super::{
    super::{answering::Shipped, in_force::standing},
    Place, Sides,
};
use crate::{
    live::Gathered,
    plan::Difference,
    policies::{Loaded, Loader},
};

/// What changes for the objects of a cluster when something is shipped to it.
pub(super) async fn differences(
    client: Client,
    loader: &Loader,
    own: &[Loaded],
    new: Shipped,
    Place { started, namespace }: &Place,
) -> anyhow::Result<Vec<Difference>> {
    let home = &started.cluster.operator_namespace;
    let sides = Sides::of(&standing(&client, loader, own, home).await?, new)?;
    let mut gathered = Gathered::new(client);
    let (reads, wishes) = sides.looked_at();
    for of in sides.kinds().into_iter().chain(reads) {
        gathered.list(of, namespace.as_deref()).await?;
    }
    for of in wishes {
        gathered.serves(of).await?;
    }
    // Objects of other namespaces are there where passes asked for them.
    let is_meant = |place: Option<&str>| match (place, namespace) {
        (Some(place), Some(meant)) => place == meant,
        _ => true,
    };
    loop {
        let hidden = |of: &ResourceType| gathered.hidden(of);
        let mut documents = gathered.documents();
        let mut comparison = sides.compare(&documents, started, &hidden)?;
        // What passes asked for may have them ask for more.
        if !gathered.read(comparison.needs).await? {
            documents.retain(|document| is_meant(document.identity.namespace.as_deref()));
            sides.tell_held(&documents);
            comparison.differences.retain(|difference| is_meant(difference.object.namespace.as_deref()));
            return Ok(comparison.differences);
        }
    }
}
