//! Finds out whether the policies of the demo answer for the demo's objects.

use kaos_policy::contract::ResourceType;
use serde_json::Value;

use crate::{input::Document, policies::Loaded};

/// Returns whether a policy answers for any of the objects.
pub(super) fn any(policies: &[Loaded], objects: &[Document]) -> bool {
    let claims = |of: &ResourceType| policies.iter().any(|loaded| loaded.policy.claim(of).is_some());
    objects.iter().any(|document| claims(&ResourceType::of_object(&document.object)))
}

/// Returns whether one of the policies that the settings name answers for one of the objects.
pub(super) fn concern(settings: &Value, policies: &[Loaded], objects: &[Document]) -> bool {
    let named = policies.iter().filter(|loaded| settings.get(&loaded.policy.id().name).is_some());
    let claims = named.flat_map(|loaded| &loaded.policy.descriptor().claims);
    let kinds: Vec<&ResourceType> = claims.map(|claim| &claim.primary).collect();
    objects.iter().any(|document| kinds.contains(&&ResourceType::of_object(&document.object)))
}
