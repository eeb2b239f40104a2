//! The plan as a whole: bounds, forms, duplicates; then each manifest and the mapping.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Breach, Rule, UserPrivileges, env, manifest, privilege};
use crate::{
    contract::{Claim, Plan, ResourceType},
    failure::{Failure, Verb},
    limits::Limits,
    manifest::Grants,
    render::ObjectRef,
};

/// Breaches that are told at once.
const TOLD: usize = 20;

/// Everything that decides what a plan may contain.
pub(crate) struct Rules<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) grants: &'a Grants,
    pub(crate) limits: &'a Limits,
    pub(crate) owner: &'a ObjectRef,
    /// The object as the user wrote it.
    pub(crate) object: &'a Value,
    pub(crate) user_privileges: UserPrivileges,
}

/// The manifests of a plan, parsed, if the plan may pass.
pub(crate) fn plan(plan: &Plan, rules: &Rules<'_>) -> Result<Vec<Value>, Failure> {
    let mut breaches = bounds(plan, rules.limits);
    if !breaches.is_empty() {
        return Err(Failure::Guard(breaches));
    }
    let manifests = parse(plan)?;
    let mut seen = BTreeSet::new();
    for (i, value) in manifests.iter().enumerate() {
        let path = manifest::path(i, value);
        manifest::check(&path, value, rules, &mut breaches);
        privilege::check(&path, value, rules, &mut breaches);
        let (of, name) = (type_of(value), value["metadata"]["name"].as_str().unwrap_or_default());
        if !seen.insert((of.group().to_owned(), of.kind, name)) {
            breaches.push(Breach { rule: Rule::NoDuplicates, path, message: "is there twice".to_owned() });
        }
    }
    if !is_object(&plan.extra) {
        let message = "must be a JSON object, {} when there is nothing to say".to_owned();
        breaches.push(Breach { rule: Rule::JsonObjects, path: "extra".to_owned(), message });
    }
    breaches.extend(env::check(&plan.env, &manifests));
    breaches.truncate(TOLD);
    if breaches.is_empty() { Ok(manifests) } else { Err(Failure::Guard(breaches)) }
}

/// The type that a manifest says it is of.
pub(super) fn type_of(manifest: &Value) -> ResourceType {
    let text = |field: &str| manifest[field].as_str().unwrap_or_default();
    ResourceType::new(text("apiVersion"), text("kind"))
}

fn bounds(plan: &Plan, limits: &Limits) -> Vec<Breach> {
    let mut breaches = Vec::new();
    if plan.manifests.len() > limits.manifests {
        breaches.push(Breach {
            rule: Rule::Bounded,
            path: "manifests".to_owned(),
            message: format!("{} manifests, at most {}", plan.manifests.len(), limits.manifests),
        });
    }
    breaches
}

fn parse(plan: &Plan) -> Result<Vec<Value>, Failure> {
    let mut manifests = Vec::with_capacity(plan.manifests.len());
    for (i, text) in plan.manifests.iter().enumerate() {
        let value = serde_json::from_str(text).map_err(|error| Failure::NotJson {
            verb: Verb::Translate,
            what: format!("manifests[{i}]"),
            reason: error.to_string(),
        })?;
        manifests.push(value);
    }
    Ok(manifests)
}

fn is_object(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(Value::Object(_)))
}
