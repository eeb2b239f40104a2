//! Writes the result of each check, with a message for people.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{contract::ResourceType, kubernetes::VERSION, policy::Policy, units::count};

use super::{
    effects::Effects,
    results::{CheckResult, Counterexample, Property},
    spread::Spread,
    unchecked::told,
};

/// The fuel check fails if a pass takes more than this percentage of the limit.
const MAX_PERCENT: u64 = 80;

/// Returns the result of one check. `failure` contains the number of failed objects, and the smallest failing object.
pub(super) fn result(
    property: Property,
    objects: u64,
    failure: Option<(u64, Counterexample)>,
    effects: Option<&Effects>,
    unchecked: &BTreeSet<ResourceType>,
    fuel: Option<Spread>,
    policy: &Arc<Policy>,
) -> CheckResult {
    if let Some((failures, counterexample)) = failure {
        let found = format!("{failures} of {objects} objects fail: {}", counterexample.message);
        return CheckResult::failed(property, found, failures, Some(counterexample));
    }
    match property {
        Property::Gate => CheckResult::passed(property, format!("{} passes all steps of `policy check`", policy.id())),
        Property::Answers => CheckResult::passed(property, format!("{objects} objects end in a plan or a refusal")),
        Property::Determinism => {
            CheckResult::passed(property, "two sandboxes give the same answers and use the same fuel".into())
        }
        Property::Idempotence => CheckResult::passed(property, "a pass after the apply plans the same children".into()),
        Property::Variables => CheckResult::passed(
            property,
            "the containers have all variables of the mapping, and of other layers".into(),
        ),
        Property::Manifests => CheckResult::passed(property, manifests(unchecked)),
        Property::Settings => settings(effects),
        Property::Fuel => match fuel {
            Some(fuel) => of_fuel(fuel, policy.limits().fuel),
            None => CheckResult::skipped(property, "no pass ended in a plan or a refusal"),
        },
    }
}

/// Names the kinds whose fields the check does not know.
fn manifests(unchecked: &BTreeSet<ResourceType>) -> String {
    let valid = format!("valid for Kubernetes {VERSION}");
    told(unchecked).map_or_else(|| valid.clone(), |told| format!("{valid}, except that {told}"))
}

fn settings(effects: Option<&Effects>) -> CheckResult {
    let property = Property::Settings;
    let Some(Effects { effective, declared, without, untried, .. }) = effects else {
        return CheckResult::skipped(property, "this check needs all objects, and --only checks one object");
    };
    let untried = match untried.as_slice() {
        [] => String::new(),
        some => format!("; the check found no other valid value for {}", some.join(", ")),
    };
    if without.is_empty() {
        return CheckResult::passed(property, format!("{effective} of {declared} settings have an effect{untried}"));
    }
    let none = format!("settings without an effect on any object: {}", without.join(", "));
    let remedy = "remove each of these settings, add an object with -f on which the setting has an effect, or accept \
                  the setting with --without-effect";
    CheckResult::failed(property, format!("{none}: {remedy}{untried}"), without.len() as u64, None)
}

fn of_fuel(fuel: Spread, limit: u64) -> CheckResult {
    let Spread { p50, p99, most, .. } = fuel;
    let percent = most.saturating_mul(100) / limit.max(1);
    let [p50, p99, most, limit] = [p50, p99, most, limit].map(count);
    let found = format!("p50 {p50}, p99 {p99}, most {most} of {limit} ({percent} %)");
    if percent > MAX_PERCENT {
        let why = format!(
            "{found}: a pass uses more than {MAX_PERCENT} % of the limit, so a larger object may run out of fuel"
        );
        return CheckResult::failed(Property::Fuel, why, 1, None);
    }
    CheckResult::passed(Property::Fuel, found)
}
