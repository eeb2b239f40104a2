//! Decides which declared settings have an effect. A setting has an effect if another value changes the answer for at
//! least one object.
//!
//! Many settings have an effect only together with other settings. For example, the name of a Gateway has no effect
//! while the Gateway is off. So if a setting has no effect, the check tries the setting again, together with other
//! settings.

use fastrand::Rng;
use kaos_policy::{
    failure::Failure,
    render::Verdict,
    settings::{Layer, Origin, Path},
};
use serde_json::{Map, Value};

use super::{
    candidates::candidates,
    cases::Case,
    error::ConformError,
    exam::{Exam, Problem},
    inputs::Inputs,
    results::Property,
};
use crate::{fuzz::Generator, merged::merge};

/// The maximum number of values to try for a setting.
const MAX_VALUES: usize = 5;
/// The maximum number of rounds. In each round, the check tries a setting together with other changed settings.
const ROUNDS: u64 = 4;
/// The maximum number of objects on which the check tries settings together.
const MAX_PROBED: usize = 12;

/// The effects of all settings.
pub(super) struct Effects {
    /// The number of settings with an effect.
    pub(super) effective: usize,
    /// The number of declared settings.
    pub(super) declared: usize,
    /// Settings without an effect.
    pub(super) without: Vec<String>,
    /// Settings that the check could not try, because the schema accepts none of the other values that the check knows.
    pub(super) untried: Vec<String>,
    /// The first object for which the policy fails with other settings, the problem, and these settings.
    pub(super) failed: Option<(Case, Problem, Value)>,
}

/// A setting, with other values that the schema accepts. Each value is a tree with only this setting.
struct Setting {
    path: Path,
    values: Vec<Value>,
}

/// Tries settings on objects.
struct Trial<'a> {
    inputs: &'a Inputs<'a>,
    generator: &'a Generator,
    failed: Option<(Case, Problem, Value)>,
}

impl Effects {
    /// Tries each setting on the objects.
    pub(super) fn of(inputs: &Inputs<'_>, generator: &Generator, cases: &[Case]) -> Result<Self, ConformError> {
        let mut trial = Trial { inputs, generator, failed: None };
        let (mut all, mut untried) = (trial.all()?, Vec::new());
        let declared = all.len();
        all.retain(|setting| {
            let is_tried = !setting.values.is_empty();
            if !is_tried {
                untried.push(setting.path.to_string());
            }
            is_tried
        });
        let needs_effect = |setting: &&Setting| !inputs.without_effect.contains(&setting.path);
        let mut without = trial.without_effect(all.iter().filter(needs_effect).collect(), &[], cases)?;
        let probed: Vec<Case> = trial.planned(cases)?.into_iter().take(MAX_PROBED).collect();
        for round in 0..ROUNDS {
            if without.is_empty() || probed.is_empty() {
                break;
            }
            let others = trial.together(&all, &probed, round)?;
            without = trial.without_effect(without, &others, &probed)?;
        }
        let effective = all.iter().filter(needs_effect).count() - without.len();
        let without = without.iter().map(|setting| setting.path.to_string()).collect();
        Ok(Self { effective, declared, without, untried, failed: trial.failed })
    }
}

impl Trial<'_> {
    /// Returns all declared settings.
    fn all(&self) -> Result<Vec<Setting>, ConformError> {
        let Inputs { policy, settings, .. } = *self.inputs;
        let (schema, current) = (policy.schema(), policy.settings(settings)?);
        let setting = |(path, facets): (Path, Vec<&Value>)| {
            let name = path.names().last().map_or("", String::as_str);
            let others = candidates(self.generator, name, &facets, path.find_in(current.tree()));
            let trees = others.into_iter().map(|value| tree(&path, value));
            let values = trees.filter(|tree| self.is_valid(&[tree])).take(MAX_VALUES).collect();
            Setting { path, values }
        };
        Ok(schema.leaves().into_iter().map(setting).collect())
    }

    /// Returns the layers of the usual settings, with the changes as the strongest layer.
    fn layers(&self, changes: &[&Value]) -> Vec<Layer> {
        let Inputs { policy, settings, .. } = *self.inputs;
        let layer = Layer::tree(Origin::CommandLine, &policy.id().name, merged(changes));
        settings.iter().cloned().chain([layer]).collect()
    }

    fn is_valid(&self, changes: &[&Value]) -> bool {
        let policy = self.inputs.policy;
        policy.schema().resolve(&policy.id().name, &self.layers(changes)).is_ok()
    }

    fn exam(&self, changes: &[&Value]) -> Result<Exam<'_>, ConformError> {
        let Inputs { policy, cluster, crds, .. } = *self.inputs;
        Exam::new(policy, &self.layers(changes), cluster, crds)
    }

    /// Returns the objects that get a plan with the usual settings.
    fn planned(&self, cases: &[Case]) -> Result<Vec<Case>, ConformError> {
        let (exam, mut planned) = (self.exam(&[])?, Vec::new());
        for case in cases {
            if exam.render(case)?.planned().is_some() {
                planned.push(case.clone());
            }
        }
        Ok(planned)
    }

    /// Returns other values for many settings. All objects must still get a plan with these values, because without a
    /// plan, no further setting has an effect. The first round changes the settings that are off or empty. The later
    /// rounds choose settings at random.
    fn together(&self, all: &[Setting], cases: &[Case], round: u64) -> Result<Vec<Value>, ConformError> {
        let mut rng = Rng::with_seed(round);
        let current = self.inputs.policy.settings(self.inputs.settings)?;
        let is_off = |setting: &Setting| match setting.path.find_in(current.tree()) {
            None | Some(Value::Null | Value::Bool(false)) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(members)) => members.is_empty(),
            Some(_) => false,
        };
        let chosen: Vec<&Setting> =
            all.iter().filter(|setting| if round == 0 { is_off(setting) } else { rng.bool() }).collect();
        let (mut changes, mut used) = (Vec::<Value>::new(), Vec::new());
        // One setting can require another, so go over the settings twice.
        for setting in chosen.iter().chain(&chosen) {
            if used.contains(&&setting.path) {
                continue;
            }
            let mut values: Vec<&Value> = setting.values.iter().collect();
            if round > 0 {
                rng.shuffle(&mut values);
            }
            for value in values {
                let with: Vec<&Value> = changes.iter().chain([value]).collect();
                if self.is_valid(&with) && self.all_planned(&with, cases)? {
                    changes.push(value.clone());
                    used.push(&setting.path);
                    break;
                }
            }
        }
        Ok(changes)
    }

    fn all_planned(&self, changes: &[&Value], cases: &[Case]) -> Result<bool, ConformError> {
        let exam = self.exam(changes)?;
        for case in cases {
            if exam.render(case)?.planned().is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the settings that change no answer while the settings in `others` also have other values.
    fn without_effect<'s>(
        &mut self,
        settings: Vec<&'s Setting>,
        others: &[Value],
        cases: &[Case],
    ) -> Result<Vec<&'s Setting>, ConformError> {
        let mut without = Vec::new();
        for setting in settings {
            let others: Vec<&Value> = others.iter().filter(|other| setting.path.find_in(other).is_none()).collect();
            let exam = self.exam(&others)?;
            let usual = cases.iter().map(|case| Ok(exam.answer(case)?.0)).collect::<Result<Vec<_>, ConformError>>()?;
            let mut has_effect = false;
            for value in &setting.values {
                let with: Vec<&Value> = others.iter().copied().chain([value]).collect();
                has_effect |= self.is_valid(&with) && self.changes(&with, cases, &usual)?;
            }
            if !has_effect {
                without.push(setting);
            }
        }
        Ok(without)
    }

    /// Returns whether the changed settings change an answer. A failure is a change, too. Records the first failure.
    /// Does not record plans that break a rule of the guard, because a tried value may be invalid, such as a wrong
    /// image name.
    fn changes(&mut self, changes: &[&Value], cases: &[Case], usual: &[String]) -> Result<bool, ConformError> {
        let exam = self.exam(changes)?;
        for (case, usual) in cases.iter().zip(usual) {
            let (answer, rendered) = exam.answer(case)?;
            if answer == *usual {
                continue;
            }
            if let Verdict::Failed(failed) = &rendered.verdict
                && !matches!(*failed.failure, Failure::Guard(_))
                && self.failed.is_none()
            {
                let problem = Problem { property: Property::Answers, message: failed.to_string() };
                self.failed = Some((case.clone(), problem, merged(changes)));
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// Returns a tree of settings that contains only this setting.
fn tree(path: &Path, value: Value) -> Value {
    path.names().iter().rev().fold(value, |inner, name| Value::Object(Map::from_iter([(name.clone(), inner)])))
}

/// Returns one tree with the settings of all trees.
fn merged(trees: &[&Value]) -> Value {
    let mut all = Value::Object(Map::new());
    for tree in trees {
        merge(&mut all, tree);
    }
    all
}
