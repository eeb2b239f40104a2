//! Checks the finalizer that a plan asks for. The operator adds the finalizer to the object, and removes the finalizer
//! when the children are gone. The operator finds the finalizer by its name, so the name must not belong to another
//! controller.

use serde_json::Value;

use super::{Rule, breaches::Breaches, rules::Rules};
use crate::{
    contract::Violation,
    cut::{VALUE, cut},
    describe::{is_finalizer, is_of_group},
};

/// The path of the finalizer in a plan.
const PATH: &str = "finalizer";

/// Adds a breach if the finalizer may belong to another controller. If a namespace's settings name the finalizer,
/// returns a violation instead, because the author of these settings must correct the finalizer.
pub(super) fn check(finalizer: Option<&str>, rules: &Rules<'_>, breaches: &mut Breaches) -> Option<Violation> {
    let finalizer = finalizer?;
    let shown = cut(finalizer, VALUE);
    if !is_finalizer(finalizer) {
        let message = format_args!("`{shown}` is not a valid finalizer: write a finalizer as domain/name");
        breaches.add(Rule::OwnFinalizer, PATH, message);
        return None;
    }
    let group = rules.claim.primary.group();
    let own_settings = rules.layers.get(rules.layer);
    let is_own = is_of_group(finalizer, group) || rules.grants.finalizers.contains(finalizer);
    if is_own || own_settings.is_some_and(|(_, settings)| is_named(&settings.of_operator(), finalizer)) {
        return None;
    }
    let of_a_namespace = own_settings.and_then(|(policy, settings)| {
        let mut given = settings.of_namespaces();
        let (path, source, _) = given.find(|(_, _, value)| is_named(value, finalizer))?;
        let message = format!(
            "comes from {source}, but settings of a namespace must only name finalizers of {group}: use such a \
             finalizer, or ask the operator's owner to set this finalizer for the cluster"
        );
        Some(Violation { path: format!("settings.{policy}.{path}"), message })
    });
    if of_a_namespace.is_none() {
        let message = format_args!(
            "`{shown}` is not in the claimed kind's group {group}, and the operator's settings do not name it: list \
             the finalizer in grants.finalizers of policy.yaml"
        );
        breaches.add(Rule::OwnFinalizer, PATH, message);
    }
    of_a_namespace
}

/// Returns whether the settings have this finalizer as the value of a field whose name contains `finalizer`.
fn is_named(settings: &Value, finalizer: &str) -> bool {
    match settings {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let says_so = name.to_ascii_lowercase().contains("finalizer");
            is_named(value, finalizer)
                || (says_so
                    && (value == finalizer
                        || value.as_array().is_some_and(|all| all.iter().any(|one| one == finalizer))))
        }),
        Value::Array(items) => items.iter().any(|item| is_named(item, finalizer)),
        _ => false,
    }
}
