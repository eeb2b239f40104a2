//! Finds kinds, finalizers and fields that the policies of this operator do not handle.

use std::collections::BTreeSet;

use kaos_crds::{API_VERSION, GROUP};
use kaos_policy::contract::Claim;
use serde_json::Value;

use super::report::{Sort, UpgradeFinding};
use crate::{catalogue::Snapshot, input::Document, presets::JANUARY};

/// Returns the findings about kinds, finalizers and fields. `preset` is the name of the preset.
pub(super) fn findings(documents: &[Document], snapshot: &Snapshot, preset: &str) -> Vec<UpgradeFinding> {
    let claims = || snapshot.kinds().flat_map(|(_, answers)| answers.claims());
    let answered: BTreeSet<&str> = claims().map(|claim| &*claim.primary.kind).collect();
    let retired: BTreeSet<String> =
        claims().flat_map(|claim| claim.earlier_finalizer().into_iter().chain(claim.finalizer.clone())).collect();
    let clients: BTreeSet<&str> = claims().filter_map(Claim::client_finalizer).collect();
    let of_group = documents.iter().filter(|document| document.identity.group == GROUP);
    of_group.flat_map(|document| about(document, &answered, &retired, &clients, preset)).collect()
}

fn about(
    document: &Document,
    answered: &BTreeSet<&str>,
    retired: &BTreeSet<String>,
    clients: &BTreeSet<&str>,
    preset: &str,
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
        "AccessGrant" => {
            found.push(UpgradeFinding::new(
                Sort::Note,
                &about,
                "is enforced only if the AuthorizationPolicy kaos-authz lists the AccessGrant's namespace; otherwise the \
                 AccessGrant's condition Enforced becomes False",
                "",
            ));
            found.extend(emails(object).map(|emails| {
                let what = format!(
                    "names users by their email ({emails}): the decision point counts an email only if the user's token \
                     has email_verified: true"
                );
                let remedy = "let the identity provider verify emails, or name the users by the claim sub";
                UpgradeFinding::new(Sort::Note, &about, what, remedy)
            }));
        }
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
    found.extend(ignored(object, preset).map(|fields| {
        let what = format!("this operator uses {fields}, which KAOS ignored");
        UpgradeFinding::new(Sort::Note, &about, what, "remove the field if you do not want its effect")
    }));
    found
}

/// Returns the users that an AccessGrant names by an email, as a text. `None` if it names no user by an email.
fn emails(grant: &Value) -> Option<String> {
    let subjects = grant["spec"]["subjects"].as_array().into_iter().flatten();
    let users = subjects.filter(|subject| subject["kind"] == "User").filter_map(|user| user["name"].as_str());
    let emails: Vec<&str> = users.filter(|name| name.contains('@')).collect();
    (!emails.is_empty()).then(|| emails.join(", "))
}

/// Returns the fields of an object that KAOS's operator stored and ignored, as a text. `None` if the object has no such
/// fields. KAOS of January 2026 ignored these fields of Agents, too.
fn ignored(object: &Value, preset: &str) -> Option<String> {
    let is_kind = object["kind"] == "ModelAPI" || (object["kind"] == "Agent" && preset == JANUARY);
    let is_it = object["apiVersion"] == API_VERSION && is_kind;
    let set = ["image", "command", "args", "resources"]
        .into_iter()
        .filter(|field| !object["spec"]["container"][field].is_null());
    let fields: Vec<String> = set.map(|field| format!("spec.container.{field}")).collect();
    (is_it && !fields.is_empty()).then(|| fields.join(", "))
}
