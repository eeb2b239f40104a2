//! Asks the policies of a running cluster about one live object, as a pass of the operator does.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use kaos_policy::{contract::ResourceType, render::Renderer, stamp::LAST_APPLIED};
use kube::Client;
use serde_json::Value;

use super::{
    answering::{Installed, Instead, PolicySet},
    in_force::standing,
    output::complain,
};
use crate::{
    catalogue::{Answers, Catalogue, Descent, Kind, Snapshot, Without},
    discovery,
    live::Gathered,
    offline::{At, Bound, Entry, Started, StoredObjects, World, answer, renderer},
    policies::Loader,
    reconcile::decide,
};

/// The answer of the policies for a live object.
pub(super) struct LiveAnswer {
    pub(super) object: Value,
    pub(super) entry: Arc<Entry>,
    /// The policies that answered.
    pub(super) kind: Arc<Kind>,
    /// The renderer of these policies.
    pub(super) renderer: Renderer,
    /// The revisions that did not answer.
    pub(super) without: Vec<Without>,
    pub(super) standing: PolicySet,
    pub(super) snapshot: Arc<Snapshot>,
}

impl LiveAnswer {
    /// Asks the policies about an object. Reads the objects that the policies need.
    pub(super) async fn of(
        client: Client,
        loader: &Loader,
        started: &Started,
        (kind, namespace, name): (&str, &str, &str),
    ) -> anyhow::Result<Self> {
        let home = &started.cluster.operator_namespace;
        let standing = standing(&client, loader, &loader.load(&[])?, home).await?;
        let Installed { snapshot, conflicts } =
            standing.install(&Catalogue::default()).context("cannot combine the active policies")?;
        for (revision, why) in &conflicts {
            complain("note", format_args!("PolicyRevision {revision} does not serve: {why}"));
        }
        let kinds = snapshot.kinds().map(|(of, _)| of.clone()).collect();
        let of = discovery::meant(&client, &kinds, kind).await?;
        let mut gathered = Gathered::new(client);
        let position = gathered.object(&of, namespace, name).await?;
        let Some(identity) = position else { bail!("{} {namespace}/{name} does not exist", of.kind) };
        for claim in snapshot.of(&of).into_iter().flat_map(Answers::claims) {
            for wish in &claim.wishes {
                gathered.serves(wish).await?;
            }
        }
        loop {
            let mut documents = gathered.documents();
            for document in &mut documents {
                keep(&mut document.object);
            }
            let stored = StoredObjects::new(&documents);
            let at = documents.iter().position(|document| document.identity == identity).unwrap_or_default();
            let object = &documents[at].object;
            let answering = answer(&snapshot, object).with_context(|| format!("no policy answers for {identity}"))?;
            let is_served = |of: &ResourceType| gathered.hidden(of).is_none();
            let mut bound = Bound::default();
            bound.bind(&snapshot, documents.iter().map(|document| &document.object), started, is_served)?;
            let hidden = |of: &ResourceType| gathered.hidden(of);
            let asking = |kind: &Kind| {
                let usual = At { snapshot: &snapshot, bound: &bound, before: None };
                let renderer = renderer(kind, started, is_served)?;
                let instead = Instead { usual, object, renderer: &renderer };
                let entry = World::new(&stored, &instead, &hidden).entry(at);
                anyhow::Ok(entry.context("no policy answers for the object")??)
            };
            let (Descent { kind, without, .. }, entry) =
                decide(answering, |entry: &Arc<Entry>| &entry.rendered, asking)?;
            let needs: Vec<_> = entry.rendered.needs.iter().map(|need| need.target.clone()).collect();
            let (object, renderer) = (object.clone(), renderer(&kind, started, is_served)?);
            if !gathered.read(needs).await? {
                return Ok(Self { object, entry, kind, renderer, without, standing, snapshot });
            }
        }
    }
}

/// Removes the metadata that the operator does not keep, so that the policies see what they see in a pass.
fn keep(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("selfLink");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}
