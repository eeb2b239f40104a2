//! Finds kinds, finalizers and fields that the policies of this operator do not handle.

use std::collections::BTreeSet;

use kaos_crds::{API_VERSION, GROUP};
use kaos_policy::contract::Claim;
use serde_json::Value;

use super::report::{Sort, UpgradeFinding};
use crate::{catalogue::Snapshot, input::Document};

/// Returns the findings about kinds, finalizers and fields.
pub(super) fn findings(documents: &[Document], snapshot: &Snapshot) -> Vec<UpgradeFinding> {
    let claims = || snapshot.kinds().flat_map(|(_, answers)| answers.claims());
    let answered: BTreeSet<&str> = claims().map(|claim| &*claim.primary.kind).collect();
    let retired: BTreeSet<String> =
        claims().flat_map(|claim| claim.earlier_finalizer().into_iter().chain(claim.finalizer.clone())).collect();
    let clients: BTreeSet<&str> = claims().filter_map(Claim::client_finalizer).collect();
    let of_group = documents.iter().filter(|document| document.identity.group == GROUP);
    of_group.flat_map(|document| about(document, &answered, &retired, &clients)).collect()
}

fn about(
    document: &Document,
    answered: &BTreeSet<&str>,
    retired: &BTreeSet<String>,
    clients: &BTreeSet<&str>,
) -> Vec<UpgradeFinding> {
    let Document { identity, object, .. } = document;
    let about = identity.to_string();
    let mut found = Vec::new();
    let kind = identity.kind.as_str();
    match kind {
        "PolicyRevision" => return found,
        _ if !answered.contains(kind) => {
            found.push(UpgradeFinding::new(Sort::Lost, &about, format!("no policy answers for {kind}"), ""));
        }
        "AccessGrant" => found.push(UpgradeFinding::new(
            Sort::Note,
            &about,
            "is enforced only if the AuthorizationPolicy kaos-authz lists the AccessGrant's namespace; otherwise the \
             AccessGrant's condition Enforced becomes False",
            "",
        )),
        "MemoryStore" => found.push(UpgradeFinding::new(
            Sort::Note,
            &about,
            "is taken over with its volume claim; the data is deleted with the object, unless the setting volume.keep \
             of the policy memorystore is true",
            "",
        )),
        _ => {}
    }
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_left = |name: &&str| name.split('/').next() == Some(GROUP) && !retired.contains(*name);
    found.extend(finalizers.filter(is_left).map(|finalizer| {
        if clients.contains(finalizer) {
            return UpgradeFinding::new(
                Sort::Lost,
                &about,
                format!(
                    "has the finalizer {finalizer}: when a user deletes the object, this operator removes the \
                     finalizer, and the object's client stays at the identity provider"
                ),
                "let KAOS's operator delete the client before the upgrade, or delete it at the provider",
            );
        }
        UpgradeFinding::new(
            Sort::Breaks,
            &about,
            format!(
                "has the finalizer {finalizer}, which only KAOS's operator removes: without that operator, the object \
                 can never be deleted, and the cleanup for this finalizer never runs"
            ),
            format!(
                "let KAOS's operator remove the finalizer before the upgrade, or remove the finalizer with kubectl \
                 edit {}",
                kind.to_lowercase()
            ),
        )
    }));
    found.extend(ignored(object).map(|fields| {
        let what = format!("this operator uses {fields}, which KAOS ignored");
        UpgradeFinding::new(Sort::Note, &about, what, "remove the field if you do not want its effect")
    }));
    found
}

/// Returns the fields of a ModelAPI that KAOS's operator stored and ignored, as a text. `None` if the object has no
/// such fields.
fn ignored(object: &Value) -> Option<String> {
    let is_it = object["apiVersion"] == API_VERSION && object["kind"] == "ModelAPI";
    let set = ["image", "command", "args", "resources"]
        .into_iter()
        .filter(|field| !object["spec"]["container"][field].is_null());
    let fields: Vec<String> = set.map(|field| format!("spec.container.{field}")).collect();
    (is_it && !fields.is_empty()).then(|| fields.join(", "))
}
