//! The plan as a whole: bounds, forms, duplicates; then each manifest and the mapping.
//!
//! A value that does not fit its field voids the answer like everything else; if it is what the user wrote, the answer
//! becomes a refusal that tells where.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Breach, Rule, UserPrivileges, env, manifest, privilege,
    shape::{misfits, written},
    words,
};
use crate::{
    contract::{Claim, Plan, ResourceType, Violation},
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

/// Who has to mend a plan that may not pass.
pub(crate) enum Stop {
    /// The policy's author.
    Policy(Failure),
    /// The user: the object has a value that Kubernetes would not take.
    User(Vec<Violation>),
}

/// The manifests of a plan, parsed, if the plan may pass.
pub(crate) fn plan(plan: &Plan, rules: &Rules<'_>) -> Result<Vec<Value>, Stop> {
    let mut breaches = bounds(plan, rules.limits);
    if !breaches.is_empty() {
        return Err(Stop::Policy(Failure::Guard(breaches)));
    }
    let manifests = parse(plan).map_err(Stop::Policy)?;
    // First, since values of a wrong type make every other rule say things that only confuse.
    let violations = shapes(&manifests, rules.object, &mut breaches);
    if !violations.is_empty() {
        return Err(Stop::User(violations));
    }
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
    if breaches.is_empty() { Ok(manifests) } else { Err(Stop::Policy(Failure::Guard(breaches))) }
}

/// What does not fit its field: the user's word as violations, anything else as breaches.
fn shapes(manifests: &[Value], object: &Value, breaches: &mut Vec<Breach>) -> Vec<Violation> {
    let mut violations: Vec<Violation> = Vec::new();
    for (i, manifest) in manifests.iter().enumerate() {
        for misfit in misfits(manifest) {
            match words::of_the_user(object, &misfit.path, misfit.value) {
                Some(path) => {
                    let kind = manifest["kind"].as_str().unwrap_or_default();
                    let message = format!("{}: no {kind} can hold it; correct it or take it out", misfit.message);
                    violations.push(Violation { path: written(&path), message });
                }
                None => breaches.push(Breach {
                    rule: Rule::FitsKind,
                    path: format!("{} {}", manifest::path(i, manifest), written(&misfit.path)),
                    message: misfit.message,
                }),
            }
        }
    }
    violations.dedup();
    violations.truncate(TOLD);
    violations
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
