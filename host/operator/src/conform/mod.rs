//! Checks a policy as a careful author would: runs passes over samples and random objects, and reports which checks
//! fail, each with the smallest failing object. Uses no cluster.
//!
//! | module | contents |
//! |---|---|
//! | `cases` | the objects: samples, objects from files, random objects |
//! | `mutate` | turns a valid object into a random valid object |
//! | `exam` | runs the passes over one object, and finds the problems |
//! | `passes` | passes over the fixed objects, for measurements |
//! | `paths` | decides whether the path in a refusal exists |
//! | `difference` | finds the first difference between two values |
//! | `shrink` | removes fields from a failing object while the check still fails |
//! | `candidates` | other values for a setting |
//! | `effects` | decides which settings have an effect |
//! | `report` | the results of all checks |
//! | `spread` | percentiles |

mod candidates;
mod cases;
mod difference;
mod effects;
mod error;
mod exam;
mod mutate;
mod passes;
mod paths;
mod report;
mod shrink;
mod spread;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{
    contract::Cluster,
    policy::Policy,
    settings::{Layer, Path},
};
use serde_json::Value;

use crate::{input::Document, schema::KnownCrds};
use cases::{Case, Cases};
use effects::Effects;
use exam::{Exam, Examined, Problem};

pub use error::ConformError;
pub use passes::Passes;
pub use report::{CheckResult, ClaimedKind, Counterexample, End, Findings, Passing, Property};
pub use spread::Spread;

/// The maximum number of random objects on which the check tries each setting.
const KEPT: usize = 32;
/// The fuel check fails if a pass takes more than this percentage of the limit.
pub const MOST_FUEL: u64 = 80;

/// The policy to check, and the objects to check it with.
#[derive(Debug)]
pub struct Conform<'a> {
    /// The policy, which has passed the gate.
    pub policy: &'a Arc<Policy>,
    /// The settings of all passes.
    pub settings: &'a [Layer],
    /// Settings that need no effect.
    pub without_effect: &'a [Path],
    /// The facts about the cluster.
    pub cluster: &'a Cluster,
    /// The schemas of kinds.
    pub crds: &'a KnownCrds,
    /// Objects of the user. The policy answers for the objects of its kinds. Its needs can find all other objects.
    pub files: &'a [Document],
    /// The number of random objects.
    pub objects: u64,
    /// The seed of the random objects.
    pub seed: u64,
    /// Checks only the object with this number.
    pub only: Option<u64>,
}

/// The failures of one property so far.
struct Failures {
    count: u64,
    first: Counterexample,
}

impl Conform<'_> {
    /// Runs all checks. Limits the number of objects in memory.
    pub fn run(&self) -> Result<Findings, ConformError> {
        let Self { policy, settings, without_effect: _, cluster, crds, files, objects, seed, only } = *self;
        let exam = Exam::new(policy, settings, cluster, crds)?;
        let cases = Cases::new(policy, crds, files, seed);
        let all = objects.saturating_add(cases.fixed().len() as u64);
        let numbers = only.map_or(0..all, |number| number..number.saturating_add(1));
        let (mut failures, mut ends) = (BTreeMap::<Property, Failures>::new(), BTreeMap::<End, u64>::new());
        let (mut fuel, mut kept, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for number in numbers {
            let case = cases.case(number);
            let Examined { end, fuel: used, problems } = exam.examine(&case)?;
            *ends.entry(end).or_default() += 1;
            fuel.extend(used);
            for problem in problems {
                if let Some(failures) = failures.get_mut(&problem.property) {
                    failures.count += 1;
                    continue;
                }
                let property = problem.property;
                let (case, problem) = shrink::smallest(&exam, case.clone(), problem)?;
                failures.insert(property, Failures { count: 1, first: told(&case, problem, None) });
            }
            let is_fixed = number < cases.fixed().len() as u64;
            let has_room = end == End::Planned && kept.len() < cases.fixed().len() + KEPT;
            // Many settings matter only for certain fields, so keep an object if it has a field that no kept object
            // has.
            if is_fixed || (has_room && fields(&case.object).any(|field| !seen.contains(&field))) {
                seen.extend(fields(&case.object));
                kept.push(case);
            }
        }
        let effects = only.is_none().then(|| Effects::of(self, &kept)).transpose()?;
        if let Some((case, problem, tree)) = effects.as_ref().and_then(|effects| effects.failed.clone()) {
            let first = told(&case, problem, Some(tree));
            failures.entry(Property::Answers).or_insert(Failures { count: 1, first });
        }
        let count = ends.values().sum();
        let spread = Spread::of(fuel);
        let results = Property::ALL.map(|property| {
            let failed = failures.remove(&property);
            report::result(property, count, failed.map(|it| (it.count, it.first)), effects.as_ref(), spread, policy)
        });
        Ok(Findings {
            policy: Some(policy.id().clone()),
            seed,
            objects: count,
            ends,
            kinds: cases.kinds(),
            warnings: cases.warnings().to_vec(),
            results: results.to_vec(),
            fuel: spread,
            fuel_limit: Some(policy.limits().fuel),
        })
    }
}

/// Returns the path of each field, without the positions of list items.
fn fields(object: &Value) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), object)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                open.extend(members.iter().map(|(name, value)| (format!("{path}.{name}"), value)));
            }
            Value::Array(items) => open.extend(items.iter().map(|item| (path.clone(), item))),
            _ => {}
        }
        found.push(path);
    }
    found.into_iter()
}

fn told(case: &Case, Problem { message, .. }: Problem, settings: Option<Value>) -> Counterexample {
    let Case { number, name, object, others, .. } = case;
    let (number, case, object, others) = (*number, name.clone(), object.clone(), others.clone());
    Counterexample { number, case, message, object, others, settings }
}
