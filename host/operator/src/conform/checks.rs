//! Runs the checks over all objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    cases::{Case, Cases},
    effects::Effects,
    error::ConformError,
    exam::{Exam, Examined, Problem},
    inputs::Inputs,
    refusals::Refusals,
    report,
    results::{Counterexample, End, Findings, Property},
    shrink,
    spread::Spread,
};

/// The maximum number of random objects on which the check tries each setting.
const MAX_KEPT: usize = 32;

/// The failures of one property so far.
struct Failures {
    count: u64,
    first: Counterexample,
}

/// Runs all checks. For the check of the settings, keeps some of the objects in memory.
pub fn check(inputs: &Inputs<'_>) -> Result<Findings, ConformError> {
    let Inputs { policy, settings, without_effect: _, cluster, crds, files, objects, seed, only } = *inputs;
    let exam = Exam::new(policy, settings, cluster, crds)?;
    let cases = Cases::new(policy, crds, files, seed);
    let all = objects.saturating_add(cases.fixed().len() as u64);
    let numbers = only.into_iter().chain(0..if only.is_some() { 0 } else { all });
    let (mut failures, mut ends) = (BTreeMap::<Property, Failures>::new(), BTreeMap::<End, u64>::new());
    let (mut fuel, mut kept, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut refusals, mut unchecked) = (Refusals::default(), BTreeSet::new());
    for number in numbers {
        let case = cases.case(number);
        let Examined { end, fuel: used, problems, refusal, unchecked: kinds } = exam.examine(&case)?;
        if let Some(refusal) = &refusal {
            refusals.add(refusal);
        }
        unchecked.extend(kinds);
        *ends.entry(end).or_default() += 1;
        fuel.extend(used);
        for problem in problems {
            if let Some(failures) = failures.get_mut(&problem.property) {
                failures.count += 1;
                continue;
            }
            let property = problem.property;
            let (case, problem) = shrink::smallest(&exam, case.clone(), problem)?;
            failures.insert(property, Failures { count: 1, first: counterexample(&case, problem, None) });
        }
        let is_fixed = number < cases.fixed().len() as u64;
        let has_room = end == End::Planned && kept.len() < cases.fixed().len() + MAX_KEPT;
        // Many settings matter only for certain fields, so keep each object with a field that the kept objects lack.
        if is_fixed || (has_room && fields(&case.object).any(|field| !seen.contains(&field))) {
            seen.extend(fields(&case.object));
            kept.push(case);
        }
    }
    let effects = only.is_none().then(|| Effects::of(inputs, cases.generator(), &kept)).transpose()?;
    if let Some((case, problem, tree)) = effects.as_ref().and_then(|effects| effects.failed.clone()) {
        let first = counterexample(&case, problem, Some(tree));
        failures.entry(Property::Answers).or_insert(Failures { count: 1, first });
    }
    let count = ends.values().sum();
    let spread = Spread::of(fuel);
    let results = Property::ALL.map(|property| {
        let failed = failures.remove(&property);
        let failed = failed.map(|it| (it.count, it.first));
        report::result(property, count, failed, effects.as_ref(), &unchecked, spread, policy)
    });
    Ok(Findings {
        policy: Some(policy.id().clone()),
        seed,
        objects: count,
        ends,
        refusals: refusals.most_frequent(),
        kinds: cases.kinds(),
        unchecked: unchecked.iter().cloned().collect(),
        warnings: cases.warnings().to_vec(),
        results: results.to_vec(),
        fuel: spread,
        fuel_limit: Some(policy.limits().fuel),
    })
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

/// Returns a failing object with the other objects and the settings of its passes.
fn counterexample(case: &Case, Problem { message, .. }: Problem, settings: Option<Value>) -> Counterexample {
    let Case { number, name, object, others, .. } = case;
    let (number, case, object, others) = (*number, name.clone(), object.clone(), others.clone());
    Counterexample { number, case, message, object, others, settings }
}
