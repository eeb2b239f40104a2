//! Evaluates a policy's own samples. The policy must give equal answers in two passes, stay within the limits and pass
//! the guard. For each kind, the policy must return a plan for at least one sample.

mod idle;
mod state;
mod survey;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    sync::Arc,
};

use serde_json::{Value, json};

use super::{LoadError, Server, Turn, Turns, beneath::trial_stack, turns};
use crate::{
    code::World,
    contract::{Claim, Cluster, Outcome, Refusal, Sample},
    digest::Digest,
    failure::Failure,
    kubernetes::{Checks, VERSION},
    lookup::{Fixed, claimed},
    policy::{Policy, Stack},
    render::{HOST_FIELDS, Rendered, Renderer, Verdict},
    settings::Layer,
};

pub use idle::Schemas;
pub use survey::Survey;
pub(super) use survey::survey_samples;

/// The maximum fuel of all samples together, as a multiple of the fuel of one pass. An answer for an ordinary sample
/// takes less than a hundredth of the fuel of one pass, and the gate asks for each answer six times.
const PASSES: u64 = 20;
/// The fuel that the gate counts for each step of checking the settings in a sample's annotations. One step takes about
/// 0.2 µs. In this time, a component uses about 100 units of fuel.
const STEP: u64 = 100;

/// The result of evaluating the samples, as texts for people.
pub(super) struct SampleReport {
    /// A sentence with the number of samples for which the policy returned a plan.
    pub(super) outcome: String,
    /// A sentence about fields of the policy's reports that the host ignores; `None` if the host ignores no field.
    pub(super) dropped: Option<String>,
    /// A sentence about a field that only a newer API server may accept; `None` if the manifests for the samples have
    /// only known fields.
    pub(super) newer: Option<String>,
    /// The digest of the answer for each sample.
    pub(super) answers: Vec<Digest>,
}

/// The conditions for evaluating samples.
pub(super) struct Terms<'a> {
    /// The maximum fuel of one pass.
    pub(super) fuel: u64,
    pub(super) cluster: &'a Cluster,
    pub(super) turns: &'a dyn Turns,
    /// The API server that will receive the children of the policy's plans.
    pub(super) server: &'a dyn Server,
}

/// Evaluates every sample of every claim. Waits for a turn before each evaluation.
pub(super) fn run(policy: &Arc<Policy>, settings: &[Layer], terms: &Terms<'_>) -> Result<SampleReport, LoadError> {
    let (mut samples, mut plans) = (0, 0);
    let (dropped, answers) = (RefCell::new(BTreeSet::new()), RefCell::default());
    let (used, allowed) = (Cell::new(0), terms.fuel.saturating_mul(PASSES));
    let (checks, mut newer) = (Cell::new(Checks::Fields), None);
    for claim in &policy.descriptor().claims {
        let mut refusal = None;
        let before = plans;
        for sample in &claim.samples {
            samples += 1;
            let case = Case {
                turns: Some(terms.turns),
                policy,
                claim,
                sample,
                used: &used,
                dropped: &dropped,
                answers: &answers,
                checks: &checks,
            };
            if used.get() >= allowed {
                return Err(LoadError::SamplesTooCostly { allowed, before: sample.name.clone() });
            }
            let said = case.evaluate(settings, terms.cluster).or_else(|error| {
                if !case.leaves_fields(&error, terms.server)? {
                    return Err(error);
                }
                newer = Some(error.to_string());
                case.evaluate(settings, terms.cluster)
            })?;
            match said {
                None => plans += 1,
                Some(said) => refusal = Some(said),
            }
        }
        if let (Some(refusal), true) = (refusal, plans == before) {
            return Err(LoadError::NoPlan { kind: claim.primary.kind.clone(), refusal });
        }
    }
    let outcome = format!("{plans} of {samples} samples end in a plan, and each gives the same answer twice");
    let dropped: Vec<_> = dropped.into_inner().into_iter().collect();
    let dropped = (!dropped.is_empty()).then(|| {
        let dropped = dropped.join(", ");
        format!("the policy's reports must not have {dropped} in `fields`: only the operator writes such fields")
    });
    let newer = newer.map(|error| {
        format!(
            "{error}; the API server is newer than Kubernetes {VERSION} and may know the field: the API server decides"
        )
    });
    Ok(SampleReport { outcome, dropped, newer, answers: answers.into_inner() })
}

/// Renders the samples once with these settings. All samples together can use at most the fuel of one pass. Returns an
/// error for an invalid plan. A refusal is not an error: the sample may show an object that the policy must refuse.
pub(super) fn with_settings(
    policy: &Arc<Policy>,
    settings: &[Layer],
    cluster: &Cluster,
    server: &dyn Server,
) -> Result<(), LoadError> {
    let (used, dropped, checks) = (Cell::new(0), RefCell::new(BTreeSet::new()), Cell::new(Checks::Fields));
    let answers = RefCell::default();
    for claim in &policy.descriptor().claims {
        for sample in &claim.samples {
            // When the samples have used up the fuel, stop without an error: for real objects, each pass has its own
            // fuel.
            if used.get() >= policy.limits().fuel {
                return Ok(());
            }
            let case = Case {
                turns: None,
                policy,
                claim,
                sample,
                used: &used,
                dropped: &dropped,
                answers: &answers,
                checks: &checks,
            };
            case.once(settings, cluster).or_else(|error| {
                if case.leaves_fields(&error, server)? { case.once(settings, cluster) } else { Err(error) }
            })?;
        }
    }
    Ok(())
}

/// A sample with the claim to which it belongs.
struct Case<'a> {
    /// Gives a turn for each evaluation of this sample. `None` in a trial of settings, because the operator holds one
    /// permit for a processor during the whole trial.
    turns: Option<&'a dyn Turns>,
    policy: &'a Arc<Policy>,
    claim: &'a Claim,
    sample: &'a Sample,
    /// The fuel that the samples have used so far.
    used: &'a Cell<u64>,
    /// The fields that the host drops from the reports of the samples, because only the host writes these fields.
    dropped: &'a RefCell<BTreeSet<&'static str>>,
    /// The digest of the answer for each sample so far.
    answers: &'a RefCell<Vec<Digest>>,
    /// How strictly the gate checks the manifests of the samples.
    checks: &'a Cell<Checks>,
}

impl Case<'_> {
    fn spend(&self, fuel: u64) {
        self.used.set(self.used.get().saturating_add(fuel));
    }

    /// Adds to the used fuel: the fuel of a pass, and fuel for the check of the settings in the sample's annotations.
    fn spend_all(&self, rendered: &Rendered) {
        let steps = u64::try_from(rendered.steps).unwrap_or(u64::MAX);
        self.spend(rendered.fuel.saturating_add(steps.saturating_mul(STEP)));
    }

    /// Evaluates the sample. Returns the refusal of the policy, or `None` if the policy gives a plan.
    fn evaluate(&self, settings: &[Layer], cluster: &Cluster) -> Result<Option<Refusal>, LoadError> {
        let (renderer, object) = (self.renderer(settings, cluster)?, self.object()?);
        let (first, second) = (self.render(&renderer, &object)?, self.render(&renderer, &object)?);
        self.spend_all(&first);
        self.spend_all(&second);
        for rendered in [&first, &second] {
            if let Verdict::Failed(failed) = &rendered.verdict
                && failed.failure.says_nothing_of_the_object()
            {
                return Err(self.fails((*failed.failure).clone()));
            }
        }
        self.same(&first, &second)?;
        match &first.verdict {
            Verdict::Failed(failed) => Err(self.fails((*failed.failure).clone())),
            Verdict::Refused(refusal) => {
                let answer = json!([self.sample.name, first.needs, refusal]);
                self.answers.borrow_mut().push(Digest::of_json(&answer));
                Ok(Some(refusal.clone()))
            }
            Verdict::Planned(planned) => {
                self.keeps_no_state(&first)?;
                let report = self.assesses(&renderer, &first)?;
                let answer = json!([self.sample.name, first.needs, **planned, planned.origins, report]);
                self.answers.borrow_mut().push(Digest::of_json(&answer));
                Ok(None)
            }
        }
    }

    /// Renders the sample once. Returns an error for an invalid plan.
    fn once(&self, settings: &[Layer], cluster: &Cluster) -> Result<(), LoadError> {
        let rendered = self.render(&self.renderer(settings, cluster)?, &self.object()?)?;
        self.spend_all(&rendered);
        match rendered.verdict {
            Verdict::Failed(failed) => Err(self.fails(*failed.failure)),
            Verdict::Planned(_) | Verdict::Refused(_) => Ok(()),
        }
    }

    /// Turns off the check of field names if the API server is newer than this program. `error` may be about a field
    /// that only the newer server has. Returns whether this call turned the check off. Returns an error if the server
    /// does not report its version.
    fn leaves_fields(&self, error: &LoadError, server: &dyn Server) -> Result<bool, LoadError> {
        let may_be_fields = matches!(error, LoadError::FailsSample { failure: Failure::Guard(_), .. });
        if !may_be_fields || self.checks.get() != Checks::Fields {
            return Ok(false);
        }
        let unanswered = |why| LoadError::Unanswered { error: Box::new(error.clone()), why };
        let leaves = server.is_newer().map_err(unanswered)?;
        if leaves {
            self.checks.set(Checks::Values);
        }
        Ok(leaves)
    }

    fn turn(&self) -> Result<Option<Turn>, LoadError> {
        self.turns.map(turns::next).transpose()
    }

    fn renderer(&self, settings: &[Layer], cluster: &Cluster) -> Result<Renderer, LoadError> {
        let cluster = Cluster { served: self.claim.wishes.clone(), ..cluster.clone() };
        Ok(Renderer::new(&self.stack()?, settings, cluster)?.with_checks(self.checks.get()))
    }

    fn render(&self, renderer: &Renderer, object: &Value) -> Result<Rendered, LoadError> {
        let beside: Vec<Value> = self.sample.beside.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        let _turn = self.turn()?;
        let known = claimed(&self.policy.descriptor().claims);
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        renderer
            .render(object, &Fixed::placed(beside, &known, namespace))
            .map_err(|error| self.unusable(&error.to_string()))
    }

    fn object(&self) -> Result<Value, LoadError> {
        let mut object: Value =
            serde_json::from_str(&self.sample.object).map_err(|error| self.unusable(&error.to_string()))?;
        let metadata = &mut object["metadata"];
        if metadata.is_object() && metadata["namespace"].is_null() {
            metadata["namespace"] = "default".into();
        }
        Ok(object)
    }

    fn stack(&self) -> Result<Stack, LoadError> {
        trial_stack(self.policy, self.claim).map_err(|error| self.unusable(&error.to_string()))
    }

    fn same(&self, first: &Rendered, second: &Rendered) -> Result<(), LoadError> {
        let differs = match (&first.verdict, &second.verdict) {
            (Verdict::Planned(first), Verdict::Planned(second)) => first != second,
            (Verdict::Refused(first), Verdict::Refused(second)) => first != second,
            (Verdict::Failed(first), Verdict::Failed(second)) => first != second,
            _ => true,
        };
        let what = if differs {
            "answers"
        } else if first.needs != second.needs {
            "needs"
        } else if first.fuel != second.fuel {
            "fuel"
        } else {
            return Ok(());
        };
        let (kind, sample) = self.names();
        Err(LoadError::NotDeterministic { kind, sample, what })
    }

    /// Asks the policy to assess the sample like a new object, which has no children yet, and returns the report.
    /// Returns null for an overlay.
    fn assesses(&self, renderer: &Renderer, first: &Rendered) -> Result<Value, LoadError> {
        if self.policy.world() != World::Policy {
            return Ok(Value::Null);
        }
        let _turn = self.turn()?;
        let assess = || renderer.assess(first, Outcome::Applied, Vec::new());
        let reports = (assess(), assess());
        for report in [&reports.0, &reports.1].into_iter().flatten() {
            self.spend(report.fuel);
        }
        match reports {
            (Ok(first), Ok(second)) if first == second => {
                let own = HOST_FIELDS.into_iter().filter(|field| first.fields.contains_key(*field));
                self.dropped.borrow_mut().extend(own);
                Ok(json!(first.report))
            }
            (Err(failed), _) | (_, Err(failed)) => Err(self.fails(*failed.failure)),
            (Ok(_), Ok(_)) => {
                let (kind, sample) = self.names();
                Err(LoadError::NotDeterministic { kind, sample, what: "reports" })
            }
        }
    }

    fn names(&self) -> (String, String) {
        (self.claim.primary.kind.clone(), self.sample.name.clone())
    }

    fn fails(&self, failure: Failure) -> LoadError {
        let (kind, sample) = self.names();
        LoadError::FailsSample { kind, sample, failure }
    }

    fn unusable(&self, reason: &str) -> LoadError {
        let (kind, sample) = self.names();
        LoadError::BadSample { kind, sample, reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests;
