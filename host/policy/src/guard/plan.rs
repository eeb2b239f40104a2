//! Checks a whole plan: first limits, shapes and duplicates, then each manifest and the mapping.
//!
//! If a value has another type than its field, the plan is void. But if the user wrote the value, the guard turns the
//! answer into a refusal with the value's path in the object.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::{
    GuardedManifest, Rule, below,
    below::AmendedPlan,
    breaches::{Breaches, TOLD},
    env, finalizer, manifest, privilege, references,
    rules::{Rules, Stop},
    shape::{Misfit, misfits},
};
use crate::{
    contract::{EnvSource, EnvVar, Plan, Report, ResourceType, Violation},
    extra,
    failure::{Failure, Verb},
    json,
    limits::Limits,
    origins::{InvalidOrigin, Origins, PathStep, Places, is_equal, leaves, nearest, written},
    pods,
    rule::Breach,
};

/// Checks a plan, and returns its parsed manifests with their origins.
pub(crate) fn plan<'a>(plan: &'a Plan, rules: &Rules<'a>) -> Result<(Vec<Value>, Origins<'a>), Stop> {
    let mut breaches = Breaches::default();
    if plan.manifests.len() > rules.limits.manifests {
        let (count, limit) = (plan.manifests.len(), rules.limits.manifests);
        let message = format_args!("the plan has {count} manifests, but the limit is {limit}");
        breaches.add(Rule::Bounded, "manifests", message);
        return Err(Stop::Policy(Failure::Guard(breaches.into_vec())));
    }
    if !json::is_bounded(texts(plan)) {
        breaches.add(Rule::Bounded, "manifests", json::too_many());
        return Err(Stop::Policy(Failure::Guard(breaches.into_vec())));
    }
    let verb = if rules.below.is_some() { Verb::Amend } else { Verb::Translate };
    let manifests = parse(plan, verb).map_err(Stop::Policy)?;
    let mapped = rules.mapped.map(|mapped| mapped.by);
    let within = Places { object: rules.object, layers: rules.layers, layer: rules.layer, mapped, found: &[] };
    let (origins, invalid) = Origins::read(&plan.origins, &plan.env, &manifests, rules.limits, within);
    for InvalidOrigin { breach: Breach { rule, path, message }, variable } in invalid {
        let layer = variable.map_or(0, |EnvVar { container, name, .. }| rules.author(container, name));
        breaches.add_of(layer, rule, path, message);
    }
    // Check shapes first: if a value has a wrong type, the other rules report confusing breaches.
    let violations = shapes(&manifests, &origins, &mut breaches);
    if !violations.is_empty() {
        return Err(Stop::User(violations));
    }
    let amended = rules.below.as_ref().map(|below| AmendedPlan::new(below, &manifests));
    let stage = |(i, manifest)| {
        let kept = amended.as_ref().and_then(|amended| amended.kept(manifest));
        GuardedManifest::new(i, manifest, kept, &origins)
    };
    let stages: Vec<_> = manifests.iter().enumerate().map(stage).collect();
    let mut names = BTreeSet::new();
    for GuardedManifest { path, manifest, specs, .. } in &stages {
        let is_below = amended.as_ref().is_some_and(|amended| amended.has(manifest));
        manifest::check(path, manifest, is_below, rules, &mut breaches);
        bounds(path, specs, rules.limits, &mut breaches);
        let (of, name) = (ResourceType::of_object(manifest), manifest["metadata"]["name"].as_str().unwrap_or_default());
        if !names.insert((of.group().to_owned(), of.kind, name)) {
            breaches.add(Rule::NoDuplicates, path, "occurs twice");
        }
    }
    nothing_extra(&plan.extra, &mut breaches);
    if let Some(below) = &rules.below {
        below::check(plan, &stages, below, &mut breaches);
    }
    // Skip the costly checks of every field if the plan is too large or the list of breaches is full.
    let mut violations = Vec::new();
    if !breaches.is_full() {
        violations = privilege::check(&stages, rules, &mut breaches);
        // The finalizer in an overlay's plan comes from the policy below, so the guard has already checked it.
        if rules.below.is_none() {
            violations.extend(finalizer::check(plan.finalizer.as_deref(), rules, &mut breaches));
        }
        references::check(&stages, rules, &mut breaches);
        env::check(&plan.env, &manifests, rules, &mut breaches);
    }
    drop(stages);
    if origins.is_exhausted() {
        // Report only this breach: other breaches may be wrong, because the guard did not look up all origins.
        let message = "the look-up of the origins takes too many steps: declare each origin for a smaller part of a \
            manifest"
            .to_owned();
        let breach = Breach { rule: Rule::Bounded, path: "origins".to_owned(), message };
        return Err(Stop::Policy(Failure::Guard(vec![breach])));
    }
    match (breaches.of_lowest(), violations.is_empty()) {
        (None, true) => Ok((manifests, origins)),
        (None, false) => Err(Stop::User(violations)),
        (Some((0, breaches)), _) => Err(Stop::Policy(Failure::Guard(breaches))),
        (Some((overlay, breaches)), _) => Err(Stop::Overlay(overlay, Failure::Guard(breaches))),
    }
}

/// Checks those fields of a report that the host does not copy to the object's status.
pub(crate) fn report(report: &Report) -> Result<(), Failure> {
    let mut breaches = Breaches::default();
    if json::is_bounded(std::iter::once(report.extra.as_str())) {
        nothing_extra(&report.extra, &mut breaches);
    } else {
        breaches.add(Rule::Bounded, "extra", json::too_many());
    }
    let breaches = breaches.into_vec();
    if breaches.is_empty() { Ok(()) } else { Err(Failure::Guard(breaches)) }
}

/// Reports each value that has another type than its field. Returns a violation if the value comes from the object's
/// spec, because then the user must correct the value. Otherwise adds a breach to `breaches`, because then the policy
/// is wrong.
fn shapes(manifests: &[Value], origins: &Origins<'_>, breaches: &mut Breaches) -> Vec<Violation> {
    let mut violations: Vec<Violation> = Vec::new();
    for (i, manifest) in manifests.iter().enumerate() {
        for misfit in misfits(manifest).into_iter().take(TOLD) {
            if let Some(path) = of_the_user(origins, (i, manifest), &misfit) {
                let kind = manifest["kind"].as_str().unwrap_or_default();
                let message = format!("{}: no {kind} can contain this value; correct or remove it", misfit.message);
                violations.push(Violation { path, message });
            } else {
                let path = format_args!("{} {}", manifest::path(i, manifest), written(&misfit.path));
                breaches.add(Rule::FitsKind, path, misfit.message);
            }
        }
    }
    violations.dedup();
    violations.truncate(TOLD);
    violations
}

/// Returns the path in the object's spec from which a value with a wrong type comes. Returns `None` if the value does
/// not come from the spec. The value comes from a declared place in the spec if this place has an equal value. The
/// policy can also have merged the user's value into this value: then both values are objects or both are lists, and
/// [`shares_a_leaf`] is true. Without these conditions, a policy could declare any list of the object as the origin of
/// its own mistake.
fn of_the_user(origins: &Origins<'_>, (index, manifest): (usize, &Value), misfit: &Misfit<'_>) -> Option<String> {
    let places = origins.places(index, manifest, &misfit.path);
    let users = places.iter().filter(|place| place.is_of_the_spec());
    let place = nearest(users.filter(|place| shares_a_leaf(place.value, misfit.value)), misfit.value)?;
    Some(written(&place.path))
}

/// Returns whether `other` can be the result of a merge with `one`: they are equal, they share a leaf, or one of them
/// has no leaf. For example, a merge turns `{$retainKeys: [], a: [null]}` into `{a: []}`. Ignores positions in lists,
/// because a merge moves items.
fn shares_a_leaf(one: &Value, other: &Value) -> bool {
    let named = |(path, leaf): (Vec<PathStep>, &Value)| {
        let names: Vec<String> = path.iter().filter_map(PathStep::name).map(str::to_owned).collect();
        (names, leaf.to_string())
    };
    let is_empty = |leaves: &[(Vec<PathStep>, &Value)]| {
        leaves.iter().all(|(path, leaf)| path.is_empty() && (leaf.is_object() || leaf.is_array()))
    };
    let merged = content(one);
    let (own, others) = (leaves(&merged), leaves(other));
    if is_equal(one, other) || is_empty(&own) || is_empty(&others) {
        return true;
    }
    let others: HashSet<_> = others.into_iter().map(named).collect();
    own.into_iter().map(named).any(|leaf| others.contains(&leaf))
}

/// Returns the part of a patch that a merge keeps if the base has no value: everything except nulls, the directives of
/// the patch, and the objects that these directives delete.
fn content(patch: &Value) -> Value {
    let is_directive = |key: &str| {
        key == "$patch"
            || key == "$retainKeys"
            || key.starts_with("$setElementOrder/")
            || key.starts_with("$deleteFromPrimitiveList/")
    };
    match patch {
        Value::Object(members) => {
            let is_kept = |value: &Value| value.get("$patch").is_none_or(|word| word == "replace" || word == "merge");
            let kept = members.iter().filter(|(key, value)| !is_directive(key) && !value.is_null() && is_kept(value));
            kept.map(|(key, value)| (key.clone(), content(value))).collect()
        }
        Value::Array(items) => {
            let kept = items.iter().filter(|item| !item.is_null() && item.get("$patch").is_none());
            kept.map(content).collect()
        }
        other => other.clone(),
    }
}

/// Limits the number of pod specs and containers.
fn bounds(path: &str, specs: &[(String, &Value)], limits: &Limits, breaches: &mut Breaches) {
    if specs.len() >= pods::SPECS {
        breaches.add(Rule::Bounded, path, format_args!("has more than {} pod specs", pods::SPECS - 1));
    }
    for (at, spec) in specs {
        let containers = pods::containers(spec).count();
        if containers > limits.containers {
            let message = format_args!("has {containers} containers, but the limit is {}", limits.containers);
            breaches.add(Rule::Bounded, format_args!("{path} {at}"), message);
        }
    }
}

/// Returns every JSON text that the guard parses in a plan.
fn texts(plan: &Plan) -> impl Iterator<Item = &str> + Clone {
    fn other(variable: &EnvVar) -> Option<&str> {
        if let EnvSource::Other(text) = &variable.source { Some(text.as_str()) } else { None }
    }
    plan.manifests.iter().map(String::as_str).chain(plan.env.iter().filter_map(other)).chain([plan.extra.as_str()])
}

fn parse(plan: &Plan, verb: Verb) -> Result<Vec<Value>, Failure> {
    let mut manifests = Vec::with_capacity(plan.manifests.len());
    for (i, text) in plan.manifests.iter().enumerate() {
        let value = serde_json::from_str(text).map_err(|error| Failure::NotJson {
            verb,
            what: format!("manifests[{i}]"),
            reason: error.to_string(),
        })?;
        manifests.push(value);
    }
    Ok(manifests)
}

/// Adds a breach if an `extra` is not an object or has members. This version of the contract defines no members.
fn nothing_extra(text: &str, breaches: &mut Breaches) {
    if !matches!(serde_json::from_str(text), Ok(Value::Object(_))) {
        breaches.add(Rule::JsonObjects, "extra", "must be a JSON object: write {} if there is nothing to report");
    } else if let Some(key) = extra::unknown(text) {
        breaches.add(Rule::KnownExtra, "extra", extra::not_known(&key));
    }
}
