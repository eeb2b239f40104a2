//! Renders one object of a cluster as a pass of the operator does. Reads the objects that the policies need for the
//! pass.

use std::sync::Arc;

use anyhow::Context as _;
use kaos_policy::{
    contract::{ResourceType, Scopes},
    render::Renderer,
    stamp::LAST_APPLIED,
};
use serde_json::Value;

use super::answering::Instead;
use crate::{
    catalogue::{Answers, Descent, Kind, Snapshot, Without},
    input::Identity,
    live::Gathered,
    offline::{At, Bound, Entry, Started, StoredObjects, World, answer, renderer},
    reconcile::decide,
};

/// The result of a pass over one object.
pub(super) struct RenderedObject {
    pub(super) object: Value,
    /// The policies that gave the answer.
    pub(super) kind: Arc<Kind>,
    /// The renderer of these policies.
    pub(super) renderer: Renderer,
    /// The revisions that the operator leaves out for this object.
    pub(super) without: Vec<Without>,
    pub(super) entry: Arc<Entry>,
    /// The scopes of the types that the passes looked up.
    pub(super) scopes: Scopes,
}

/// Renders the object `identity`, which `gathered` already has. If the caller passes the object `edited`, renders this
/// object instead of the object in the cluster.
pub(super) async fn rendered(
    gathered: &mut Gathered,
    snapshot: &Snapshot,
    started: &Started,
    identity: &Identity,
    edited: Option<&Value>,
) -> anyhow::Result<RenderedObject> {
    let of = gathered.iter().find(|document| document.identity == *identity);
    let of = of.map(|document| ResourceType::of_object(&document.object));
    let claims = of.iter().filter_map(|of| snapshot.of(of)).flat_map(Answers::claims);
    let wishes: Vec<ResourceType> = claims.flat_map(|claim| claim.wishes.clone()).collect();
    for wish in wishes {
        gathered.serves(&wish).await?;
    }
    loop {
        let (rendered, needs) = {
            let mut documents = gathered.documents();
            let at = documents.iter().position(|document| document.identity == *identity).unwrap_or_default();
            if let Some(edited) = edited {
                documents[at].object = edited.clone();
            }
            for document in &mut documents {
                keep(&mut document.object);
            }
            let stored = StoredObjects::new(&documents, &gathered.scopes());
            let object = &documents[at].object;
            let answering = answer(snapshot, object).with_context(|| format!("no policy answers for {identity}"))?;
            let is_served = |of: &ResourceType| gathered.hidden(of).is_none();
            let mut bound = Bound::default();
            bound.bind(snapshot, documents.iter().map(|document| &document.object), started, is_served)?;
            let hidden = |of: &ResourceType| gathered.hidden(of);
            let asking = |kind: &Kind| {
                let usual = At { snapshot, bound: &bound, before: None };
                let renderer = renderer(kind, started, is_served)?;
                let instead = Instead { usual, object, renderer: &renderer };
                let entry = World::new(&stored, &instead, &hidden).entry(at);
                anyhow::Ok(entry.context("no policy answers for the object")??)
            };
            let (Descent { kind, without, .. }, entry) =
                decide(answering, |entry: &Arc<Entry>| &entry.rendered, asking)?;
            let needs: Vec<_> = entry.rendered.needs.iter().map(|need| need.target.clone()).collect();
            let renderer = renderer(&kind, started, is_served)?;
            let scopes = gathered.scopes();
            (RenderedObject { object: object.clone(), kind, renderer, without, entry, scopes }, needs)
        };
        if !gathered.read(needs).await? {
            return Ok(rendered);
        }
    }
}

/// Removes the metadata that the operator does not keep, so that the policies see the same object as in a pass.
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
