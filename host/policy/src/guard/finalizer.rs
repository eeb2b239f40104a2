//! The finalizer that a plan asks for: the operator puts it on the object, and takes it off when the children are gone. Off
//! comes whatever has the name, so it must be nobody else's.

use serde::Deserialize;
use serde_json::Value;

use super::{Rule, breaches::Breaches, rules::Rules};
use crate::{
    contract::Violation,
    cut::{VALUE, cut},
    describe::{is_finalizer, is_of_group},
};

/// Where a plan asks for it.
const PATH: &str = "extra.finalizer";

/// What a plan's `extra` says about it.
#[derive(Deserialize)]
struct Extra {
    finalizer: Option<String>,
}

/// Notes one that is somebody else's; one that a namespace's settings name is handed back, since whoever wrote them has to
/// mend it and not the policy.
pub(super) fn check(extra: &str, rules: &Rules<'_>, breaches: &mut Breaches) -> Option<Violation> {
    let Ok(Extra { finalizer }) = serde_json::from_str(extra) else {
        breaches.add(Rule::JsonObjects, PATH, "must be one text");
        return None;
    };
    let finalizer = finalizer.filter(|finalizer| !finalizer.is_empty())?;
    let shown = cut(&finalizer, VALUE);
    if !is_finalizer(&finalizer) {
        breaches.add(Rule::OwnFinalizer, PATH, format_args!("`{shown}` is not a finalizer: write it as domain/name"));
        return None;
    }
    let group = rules.claim.primary.group();
    let is_own = is_of_group(&finalizer, group) || rules.grants.finalizers.contains(&finalizer);
    if is_own || is_named(rules.settings, &finalizer) {
        return None;
    }
    let of_a_namespace = rules.layers.iter().find_map(|(policy, settings)| {
        let mut given = settings.of_namespaces();
        let (path, source, _) = given.find(|(_, _, value)| is_named(value, &finalizer))?;
        let message = format!(
            "comes from {source}, and settings of a namespace name no finalizer of others: take one of {group}, or have \
             it set for the cluster"
        );
        Some(Violation { path: format!("settings.{policy}.{path}"), message })
    });
    if of_a_namespace.is_none() {
        let message = format_args!(
            "`{shown}` is not of the claimed kind's group {group}, nor in the operator's settings: list it in \
             grants.finalizers"
        );
        breaches.add(Rule::OwnFinalizer, PATH, message);
    }
    of_a_namespace
}

/// Whether settings name a finalizer, in a field that says so.
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
