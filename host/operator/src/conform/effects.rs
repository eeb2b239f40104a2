//! Decides which declared settings have an effect: another value of the setting changes an answer for an object.

use kaos_policy::{
    failure::Failure,
    render::Verdict,
    settings::{Layer, Origin, Path},
};
use serde_json::{Map, Value};

use super::{Case, Conform, ConformError, Exam, Problem, Property, candidates::candidates};
use crate::fuzz::Generator;

/// The maximum number of values to try for a setting.
const VALUES: usize = 5;

/// The effects of all settings.
pub(super) struct Effects {
    /// The number of declared settings.
    pub(super) declared: usize,
    /// Settings without an effect.
    pub(super) without: Vec<String>,
    /// Settings for which the schema accepts no other known value.
    pub(super) untried: Vec<String>,
    /// An object for which the policy fails with another setting, and this setting.
    pub(super) failed: Option<(Case, Problem, Value)>,
}

impl Effects {
    /// Tries each setting on the objects.
    pub(super) fn of(conform: &Conform<'_>, exam: &Exam<'_>, cases: &[Case]) -> Result<Self, ConformError> {
        let usual = cases.iter().map(|case| Ok(exam.answer(case)?.0)).collect::<Result<Vec<_>, ConformError>>()?;
        let Conform { policy, settings, .. } = *conform;
        let (schema, current, generator) = (policy.schema(), policy.settings(settings)?, Generator::default());
        let leaves = schema.leaves();
        let (without, untried) = (Vec::new(), Vec::new());
        let mut effects = Self { declared: leaves.len(), without, untried, failed: None };
        for (path, facets) in leaves {
            let name = path.names().last().map_or("", String::as_str);
            let others = candidates(&generator, name, &facets, path.find_in(current.tree()));
            let layers = others.into_iter().map(|value| {
                let tree = tree(&path, value);
                let layer = Layer::tree(Origin::CommandLine, &policy.id().name, tree.clone());
                (tree, settings.iter().cloned().chain([layer]).collect::<Vec<_>>())
            });
            let valid = layers.filter(|(_, layers)| schema.resolve(&policy.id().name, layers).is_ok());
            let valid: Vec<_> = valid.take(VALUES).collect();
            if valid.is_empty() {
                effects.untried.push(path.to_string());
                continue;
            }
            let mut has_effect = false;
            for (tree, layers) in &valid {
                let changed = Exam::new(policy, layers, conform.cluster, conform.crds)?;
                has_effect = effects.changes(&changed, tree, cases, &usual)?;
                if has_effect {
                    break;
                }
            }
            if !has_effect {
                effects.without.push(path.to_string());
            }
        }
        Ok(effects)
    }

    /// Returns whether the changed settings change an answer. A broken answer is a change too, and the guard may break
    /// it with good reason. Records an answer that the policy itself breaks.
    fn changes(
        &mut self,
        changed: &Exam<'_>,
        tree: &Value,
        cases: &[Case],
        usual: &[String],
    ) -> Result<bool, ConformError> {
        for (case, usual) in cases.iter().zip(usual) {
            let (answer, rendered) = changed.answer(case)?;
            if answer == *usual {
                continue;
            }
            if let Verdict::Failed(failed) = &rendered.verdict
                && !matches!(*failed.failure, Failure::Guard(_))
                && self.failed.is_none()
            {
                let problem = Problem { property: Property::Answers, message: failed.to_string() };
                self.failed = Some((case.clone(), problem, tree.clone()));
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// Returns a tree with one setting.
fn tree(path: &Path, value: Value) -> Value {
    path.names().iter().rev().fold(value, |inner, name| Value::Object(Map::from_iter([(name.clone(), inner)])))
}
