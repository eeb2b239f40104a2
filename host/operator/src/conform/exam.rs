//! Runs the passes over one object, and finds problems in the policy's answers.

use std::sync::Arc;

use kaos_policy::{
    contract::{Child, Claim, Cluster, Outcome, Reference, Refusal, ResourceType, Scopes},
    failure::Failure,
    gate::{dropped_variables, trial_stack},
    guard::Rule,
    kubernetes::Checks,
    lookup::{Fixed, claimed},
    policy::Policy,
    render::{PolicyFailure, Rendered, Renderer, Verdict},
    settings::Layer,
};
use serde_json::{Value, json};

use super::{
    cases::Case,
    difference::difference,
    error::ConformError,
    paths,
    results::{End, Property},
    unchecked::{refused, unchecked},
};
use crate::schema::KnownCrds;

/// A policy with its settings, ready for passes.
pub(super) struct Exam<'a> {
    policy: &'a Policy,
    claims: &'a [Claim],
    pub(super) crds: &'a KnownCrds,
    /// A renderer for each claim.
    renderers: Vec<Renderer>,
    /// The scopes of the claimed types, and of the types of the known CRDs.
    scopes: Scopes,
}

/// A problem in the policy's answers for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) property: Property,
    pub(super) message: String,
}

/// The result of all passes over one object.
#[derive(Debug)]
pub(super) struct Examined {
    pub(super) end: End,
    /// The fuel of the first pass, if it ended in a plan or a refusal.
    pub(super) fuel: Option<u64>,
    pub(super) problems: Vec<Problem>,
    /// The refusal in which the first pass ended.
    pub(super) refusal: Option<Refusal>,
    /// The kinds of the planned children whose fields neither Kubernetes nor a known CRD defines.
    pub(super) unchecked: Vec<ResourceType>,
}

impl<'a> Exam<'a> {
    pub(super) fn new(
        policy: &'a Arc<Policy>,
        settings: &[Layer],
        cluster: &Cluster,
        crds: &'a KnownCrds,
    ) -> Result<Self, ConformError> {
        let claims = policy.descriptor().claims.as_slice();
        let renderer = |claim: &Claim| {
            let cluster = Cluster { served: claim.wishes.clone(), ..cluster.clone() };
            let renderer = Renderer::new(&trial_stack(policy, claim)?, settings, cluster)?;
            Ok(renderer.with_checks(Checks::Fields))
        };
        let renderers = claims.iter().map(renderer).collect::<Result<_, ConformError>>()?;
        let mut scopes = claimed(claims);
        scopes.add(crds.scopes());
        Ok(Self { policy, claims, crds, renderers, scopes })
    }

    /// Returns the number of schema violations for which an API server would refuse the object.
    pub(super) fn violations(&self, case: &Case) -> usize {
        let of = &self.claims[case.claim].primary;
        self.crds.admit(of.group(), &of.kind, &mut case.object.clone()).violations.len()
    }

    /// Runs one pass in new sandboxes.
    pub(super) fn render(&self, case: &Case) -> Result<Rendered, ConformError> {
        self.render_with(case, &identified(&case.object), &[])
    }

    /// Runs one pass, and returns the answer as a text, with the needs. The text also contains the policy's report for
    /// the time before the children exist, but not the fuel.
    pub(super) fn answer(&self, case: &Case) -> Result<(String, Rendered), ConformError> {
        let rendered = self.render(case)?;
        let verdict = match &rendered.verdict {
            Verdict::Planned(planned) => json!(**planned),
            Verdict::Refused(refusal) => json!(refusal),
            Verdict::Failed(failed) => json!(failed.to_string()),
        };
        let report = match self.renderers[case.claim].assess(&rendered, Outcome::Applied, Vec::new()) {
            Ok(assessed) => json!(assessed.report),
            Err(failed) => json!(failed.to_string()),
        };
        Ok((json!([verdict, rendered.needs, report]).to_string(), rendered))
    }

    fn render_with(&self, case: &Case, object: &Value, children: &[Value]) -> Result<Rendered, ConformError> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let lookup = Fixed::placed(case.others.iter().chain(children).cloned(), &self.scopes, namespace);
        let rendered = self.renderers[case.claim].render(object, &lookup);
        let rendered = rendered.map_err(|why| ConformError::Object { case: case.name.clone(), why })?;
        if let Verdict::Failed(failed) = &rendered.verdict {
            stalled(case, failed)?;
        }
        Ok(rendered)
    }

    /// Runs all passes over an object: two passes over a new object, two reports, and a pass over the object with its
    /// children.
    pub(super) fn examine(&self, case: &Case) -> Result<Examined, ConformError> {
        let (first, second) = (self.render(case)?, self.render(case)?);
        let mut problems: Vec<Problem> = unequal(&first, &second).into_iter().collect();
        let (mut refusal, mut kinds) = (None, Vec::new());
        let (end, fuel) = match &first.verdict {
            Verdict::Failed(failed) => {
                problems.extend(problems_of(failed));
                (End::Failed, None)
            }
            Verdict::Refused(answered) => {
                problems.extend(self.wrong_refusal(case, answered).map(Problem::answers));
                refusal = Some(answered.clone());
                (End::of(answered), Some(first.fuel))
            }
            Verdict::Planned(_) => {
                let message = refused(first.manifests(), self.crds);
                problems.extend(message.map(|message| Problem { property: Property::Manifests, message }));
                kinds.extend(unchecked(first.manifests(), self.crds));
                problems.extend(self.dropped(case, &first)?);
                problems.extend(self.reports(case, &first, &[])?);
                problems.extend(self.again(case, &first)?);
                (End::Planned, Some(first.fuel))
            }
        };
        Ok(Examined { end, fuel, problems, refusal, unchecked: kinds })
    }

    /// Returns the reason why a refusal does not help the user; `None` if the refusal helps.
    fn wrong_refusal(&self, case: &Case, refusal: &Refusal) -> Option<String> {
        match refusal {
            Refusal::Invalid(violations) => {
                let schema = self.crds.schema(&self.claims[case.claim].primary);
                if violations.is_empty() {
                    return Some("the refusal `invalid` names no field".to_owned());
                }
                violations.iter().find_map(|violation| {
                    let path = &violation.path;
                    if violation.message.is_empty() {
                        return Some(format!("the refusal for the path `{path}` has no message"));
                    }
                    let exists = paths::exists(path, &case.object, schema);
                    (!exists).then(|| format!("a refusal names the path `{path}`, which the kind does not have"))
                })
            }
            Refusal::Waiting(blockers) => {
                let is_unclear = blockers.is_empty() || blockers.iter().any(|blocker| blocker.message.is_empty());
                let message = "the refusal `waiting` must name at least one object, with a message for each object";
                is_unclear.then(|| message.to_owned())
            }
            Refusal::Unsupported(message) => {
                message.is_empty().then(|| "the refusal `unsupported` has no message".to_owned())
            }
        }
    }

    /// Returns a problem if the policy drops variables of its mapping.
    fn dropped(&self, case: &Case, rendered: &Rendered) -> Result<Option<Problem>, ConformError> {
        match dropped_variables(self.policy, rendered) {
            Ok(dropped) if dropped.is_empty() => Ok(None),
            Ok(dropped) => {
                let dropped = dropped.join(", ");
                let message = format!("the answer drops variables that the policy got: {dropped} (container and name)");
                Ok(Some(Problem { property: Property::Variables, message }))
            }
            Err(why) if why.says_nothing_of_the_object() => Err(ConformError::Stalled { case: case.name.clone(), why }),
            Err(why) => Ok(Some(Problem::answers(why.to_string()))),
        }
    }

    /// Asks the policy twice for its report, in new sandboxes, and returns the problems.
    fn reports(&self, case: &Case, rendered: &Rendered, seen: &[Child]) -> Result<Vec<Problem>, ConformError> {
        let renderer = &self.renderers[case.claim];
        let assess = || renderer.assess(rendered, Outcome::Applied, seen.to_vec());
        match (assess(), assess()) {
            (Ok(first), Ok(second)) if first == second => Ok(Vec::new()),
            (Ok(_), Ok(_)) => Ok(vec![Problem::determinism("reports")]),
            (Err(failed), _) | (_, Err(failed)) => {
                stalled(case, &failed)?;
                Ok(problems_of(&failed))
            }
        }
    }

    /// Runs a pass over the object after the apply: the host has applied the plan, and the children exist.
    fn again(&self, case: &Case, first: &Rendered) -> Result<Vec<Problem>, ConformError> {
        let namespace = &case.object["metadata"]["namespace"];
        let mut children = first.manifests().to_vec();
        for child in children.iter_mut().filter(|child| child["metadata"]["namespace"].is_null()) {
            child["metadata"]["namespace"] = namespace.clone();
        }
        let mut object = identified(&case.object);
        object["status"] = json!({"appliedGeneration": 1, "observedGeneration": 1});
        let again = self.render_with(case, &object, &children)?;
        let mut problems = match &again.verdict {
            Verdict::Planned(planned) => {
                let (before, after) = (Value::from(first.manifests()), Value::from(planned.manifests.as_slice()));
                let what = |path| format!("the pass after the apply plans another value at manifests{path}");
                difference(&before, &after).map(what).map(Problem::idempotence).into_iter().collect()
            }
            Verdict::Refused(refusal) => {
                let reason = refusal.reason();
                vec![Problem::idempotence(format!("the pass after the apply ends in the refusal {reason}"))]
            }
            Verdict::Failed(failed) => problems_of(failed),
        };
        if problems.is_empty() {
            let child = |live: &Value| Child::new(reference(live), Some(live));
            let seen: Vec<Child> = children.iter().map(child).collect();
            problems = self.reports(case, &again, &seen)?;
        }
        Ok(problems)
    }
}

impl Problem {
    fn answers(message: String) -> Self {
        Self { property: Property::Answers, message }
    }

    fn determinism(what: &str) -> Self {
        let message = format!("two sandboxes give different {what} for the same input");
        Self { property: Property::Determinism, message }
    }

    fn idempotence(message: String) -> Self {
        Self { property: Property::Idempotence, message }
    }
}

/// Returns the object with the metadata that an API server adds.
fn identified(object: &Value) -> Value {
    let mut object = object.clone();
    for (field, value) in [("uid", json!("00000000-0000-4000-8000-000000000001")), ("generation", json!(1))] {
        if object["metadata"][field].is_null() {
            object["metadata"][field] = value;
        }
    }
    object
}

fn reference(live: &Value) -> Reference {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Reference {
        api_version: text(&live["apiVersion"]),
        kind: text(&live["kind"]),
        namespace: live["metadata"]["namespace"].as_str().map(str::to_owned),
        name: text(&live["metadata"]["name"]),
    }
}

/// Returns an error if neither the object nor the policy caused the failure.
fn stalled(case: &Case, failed: &PolicyFailure) -> Result<(), ConformError> {
    if failed.failure.says_nothing_of_the_object() {
        return Err(ConformError::Stalled { case: case.name.clone(), why: (*failed.failure).clone() });
    }
    Ok(())
}

/// Returns a problem for each property that a failure violates.
fn problems_of(failed: &PolicyFailure) -> Vec<Problem> {
    let Failure::Guard(breaches) = &*failed.failure else { return vec![Problem::answers(failed.to_string())] };
    let mut properties: Vec<Property> = breaches.iter().map(|breach| property_of(breach.rule)).collect();
    properties.sort_unstable();
    properties.dedup();
    let message = |property| {
        let of = breaches.iter().filter(|breach| property_of(breach.rule) == property);
        of.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    properties.into_iter().map(|property| Problem { property, message: message(property) }).collect()
}

fn property_of(rule: Rule) -> Property {
    match rule {
        Rule::EnvAsMapped | Rule::NoDuplicateEnv => Property::Variables,
        Rule::FitsKind | Rule::WellFormed => Property::Manifests,
        _ => Property::Answers,
    }
}

/// Returns the problem if two passes with the same input differ.
fn unequal(first: &Rendered, second: &Rendered) -> Option<Problem> {
    let is_equal = match (&first.verdict, &second.verdict) {
        (Verdict::Planned(first), Verdict::Planned(second)) => {
            first == second && serde_json::to_string(&**first).ok() == serde_json::to_string(&**second).ok()
        }
        (Verdict::Refused(first), Verdict::Refused(second)) => first == second,
        (Verdict::Failed(first), Verdict::Failed(second)) => first == second,
        _ => false,
    };
    let what = if !is_equal {
        "answers"
    } else if first.needs != second.needs {
        "needs"
    } else if first.fuel != second.fuel {
        "fuel"
    } else {
        return None;
    };
    Some(Problem::determinism(what))
}
