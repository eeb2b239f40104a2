//! Plans against a running cluster.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::{
    contract::{Reference, ResourceType, Target},
    kubernetes::{Checks, VERSION},
};
use kube::Client;
use serde_json::Value;

use super::{
    super::{in_force::standing, output::complain},
    PlanScope, Planned, Sides,
    change::ProposedChange,
};
use crate::{
    error_text::with_causes,
    input::Document,
    live::{DryRunAnswer, Gathered},
    plan::{Child, Difference, Unstored},
    policies::{Loaded, Loader},
};

/// The maximum number of children for which the command sends a dry run to the API server.
const TRIED: usize = 200;

/// Compares the objects of a cluster before and after a change.
pub(super) async fn planned(
    client: Client,
    loader: &Loader,
    own: &[Loaded],
    new: ProposedChange,
    place: &PlanScope,
) -> anyhow::Result<Planned> {
    let home = &place.started.cluster.operator_namespace;
    let sides = new.sides(&standing(&client, loader, own, home).await?, loader)?;
    let mut started = place.started.clone();
    if loader.server().is_newer {
        started.checks = Checks::Values;
        let what = format!(
            "newer than Kubernetes {VERSION}, the version that this program knows: only the API server checks the \
             names of fields"
        );
        complain("note", format_args!("the API server is {what}"));
    }
    compared(client, &sides, &PlanScope { started, namespace: place.namespace.clone() }).await
}

/// Compares the plans for the objects of a cluster before and after a change.
pub(in crate::cli::policy) async fn compared(
    client: Client,
    sides: &Sides,
    PlanScope { started, namespace }: &PlanScope,
) -> anyhow::Result<Planned> {
    let mut gathered = Gathered::new(client);
    let (reads, wishes) = sides.looked_at();
    for of in sides.kinds().into_iter().chain(reads) {
        gathered.list(of, namespace.as_deref()).await?;
    }
    for of in wishes {
        gathered.serves(of).await?;
    }
    // `documents` also contains objects of other namespaces, because passes may need them.
    let is_meant = |place: Option<&str>| match (place, namespace) {
        (Some(place), Some(meant)) => place == meant,
        _ => true,
    };
    let mut sees_children = true;
    loop {
        let (hidden, is_read) = (|of: &ResourceType| gathered.hidden(of), |target: &Target| gathered.has_read(target));
        let mut documents = gathered.documents();
        let unstored = Unstored { hidden: &hidden, is_read: &is_read };
        let mut comparison = sides.compare(&documents, &gathered.scopes(), started, &unstored)?;
        let mut has_new = gathered.read(comparison.needs).await?;
        if sees_children {
            match gathered.read(comparison.gated).await {
                Ok(any) => has_new |= any,
                Err(error) => {
                    (sees_children, has_new) = (false, true);
                    let so = "the status of the objects decides which plans their gates hold back";
                    complain("note", format_args!("{}: {so}", with_causes(&error)));
                }
            }
        }
        // Repeat, because the objects from this round may have needs of their own.
        if !has_new {
            documents.retain(|document| is_meant(document.identity.namespace.as_deref()));
            sides.tell_held(&documents);
            tell_unnamed(&documents, &comparison.differences);
            comparison.differences.retain(|difference| is_meant(difference.object.namespace.as_deref()));
            try_children(&mut gathered, &mut comparison.differences).await?;
            return Ok(Planned::of(sides, &documents, comparison.differences));
        }
    }
}

/// Prints a note for each policy that answers for an object in the cluster, but that this command cannot see. Only the
/// flags of the running operator name such a policy.
fn tell_unnamed(documents: &[Document], differences: &[Difference]) {
    let mut told = BTreeSet::new();
    for Difference { object, .. } in differences.iter().filter(|difference| difference.before.is_none()) {
        let same = documents.iter().find(|document| Reference::of_object(&document.object) == *object);
        let policy = same.and_then(|document| answering(&document.object));
        if let Some(policy) = policy.filter(|policy| told.insert((object.kind.clone(), policy.clone()))) {
            let remedy = "to compare with this policy, name its component with --policy";
            complain(
                "note",
                format_args!(
                    "{object}: policy {policy} answers for this object, but no PolicyRevision contains this policy. \
                     The operator probably got it with --policy. Because this command does not know its plans, the \
                     output shows `no policy` and `new`: {remedy}"
                ),
            );
        }
    }
}

/// Returns the name of the policy that wrote the status of an object.
fn answering(object: &Value) -> Option<String> {
    object["status"]["policy"]["name"].as_str().map(str::to_owned)
}

/// Tries each changed child on the API server with a dry run. The server may refuse a child, for example because a
/// field is immutable.
async fn try_children(gathered: &mut Gathered, differences: &mut [Difference]) -> anyhow::Result<()> {
    let mut open: BTreeMap<ResourceType, String> = BTreeMap::new();
    let children = differences.iter_mut().flat_map(|difference| &mut difference.children);
    let children: Vec<&mut Child> = children.filter(|child| child.manifest.is_some()).collect();
    let beyond = children.len().saturating_sub(TRIED);
    for child in children.into_iter().take(TRIED) {
        let Some(manifest) = &child.manifest else { continue };
        match gathered.try_apply(manifest).await? {
            DryRunAnswer::Taken => child.refused = None,
            DryRunAnswer::Refused(why) => {
                let known = child.refused.take();
                child.refused = Some(known.map_or(why.clone(), |known| format!("{known}; the API server says: {why}")));
            }
            DryRunAnswer::Open(why) => drop(open.entry(ResourceType::of_object(manifest)).or_insert(why)),
        }
    }
    for (of, why) in open {
        complain("note", format_args!("cannot check whether the API server accepts the planned {of}: {why}"));
    }
    if beyond > 0 {
        complain("note", format_args!("{beyond} more children change; the API server did not check them"));
    }
    Ok(())
}
