//! Masks the secret values of a case. Repeats the pass with the masked inputs, so that the answer in the case belongs to
//! the inputs in the case.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{
    policy::Policy,
    render::{LayerInputs, PassInputs, RecordedAnswer},
    settings::Effective,
};
use serde_json::Value;

use super::{
    answered::answer_of,
    sides::{said, side},
};
use crate::{
    masking::{self, MASK},
    plan::{Around, Change, SecretValues, difference_of, is_reference_key, is_secret_key},
    record::{Case, CaseAnswer, CaseVerdict, MaskEffect, Masked},
};

/// The maximum number of paths of masked values in a case.
const NAMED: usize = 50;
/// The minimum number of digits of a secret number.
const DIGITS: usize = 5;

/// Masks secret values, and remembers their paths.
struct Masker {
    secrets: SecretValues,
    paths: BTreeSet<String>,
}

/// Finds a policy that is at hand.
type Find<'a> = &'a dyn Fn(&LayerInputs) -> Option<Arc<Policy>>;

/// Masks the secret values of a case: the values of fields and variables with secret names, and these values wherever
/// they appear. `find` returns a policy at hand. With all policies at hand, the answer becomes the answer for the masked
/// inputs.
#[must_use]
pub fn masked(mut case: Case, find: Find<'_>) -> Case {
    let mut masker = Masker::new(&case, &case.answer.verdict);
    let (mut inputs, mut assessed) = (case.inputs.clone(), case.assessed.clone());
    masker.inputs(&mut inputs);
    for (_, live) in assessed.iter_mut().flat_map(|assessed| &mut assessed.children) {
        if let Some(live) = live {
            masker.value(live, "children", false);
        }
    }
    let is_input_masked = !masker.paths.is_empty();
    let answer = CaseAnswer::new(masker.verdict(case.answer.verdict.clone()), case.answer.fuel);
    for passed_over in &mut case.passed_over {
        passed_over.how = masker.message(&passed_over.how);
    }
    if masker.paths.is_empty() {
        return case;
    }
    (case.inputs, case.assessed) = (inputs, assessed);
    let again = (is_input_masked && case.incomplete.is_none()).then(|| again(&case, find, &mut masker));
    let effect;
    (case.answer, effect) = match again {
        None => (answer, MaskEffect::Nothing),
        Some(None) => (answer, MaskEffect::Unknown),
        Some(Some(now)) => {
            let effect = effect_of(&case, &answer, &now);
            (now, effect)
        }
    };
    let values = masker.paths.len();
    case.masked = Some(Masked { values, paths: masker.paths.into_iter().take(NAMED).collect(), effect });
    case
}

/// Repeats the decision with the masked inputs.
fn again(case: &Case, find: Find<'_>, masker: &mut Masker) -> Option<CaseAnswer> {
    let layer = |layer: &LayerInputs| Some((find(layer)?, Arc::new(layer.settings.effective())));
    let layers: Vec<(Arc<Policy>, Arc<Effective>)> =
        case.inputs.layers.iter().map(layer).collect::<Option<Vec<_>>>()?;
    let repeated = case.inputs.repeat(layers)?.ok()?;
    // Mask the verdict as a replay does, and then also the values that only the original inputs contain.
    let CaseAnswer { verdict, fuel, .. } = answer_of(case, &repeated);
    Some(CaseAnswer::new(masker.verdict(masked_as(verdict, case)), fuel))
}

/// Masks a verdict in the same way as the case that it belongs to.
pub(super) fn masked_as(verdict: CaseVerdict, case: &Case) -> CaseVerdict {
    Masker::new(case, &verdict).verdict(verdict)
}

fn effect_of(case: &Case, before: &CaseAnswer, now: &CaseAnswer) -> MaskEffect {
    let policies = || case.inputs.layers.iter().map(|layer| &layer.policy);
    let sides = [side(before, policies()), side(now, policies())];
    let around = Around { live: &|_| None, settings: Vec::new() };
    let difference = difference_of(&case.inputs.object, &sides, [None, None], &around);
    // Hashes of masked values always differ.
    let differs = said(&before.verdict) != said(&now.verdict)
        || difference.children.iter().any(|child| match &child.change {
            Change::Changed(fields) => !fields.is_empty(),
            Change::Added | Change::Removed => true,
        });
    match (differs, before.fuel == now.fuel) {
        (true, _) => {
            let what = match (before.verdict.word(), now.verdict.word()) {
                (before, now) if before == now => format!("another {now}"),
                (before, now) => format!("{before} became {now}"),
            };
            MaskEffect::Answer { before: before.fuel, what }
        }
        (false, false) => MaskEffect::Fuel { before: before.fuel },
        (false, true) => MaskEffect::Nothing,
    }
}

impl Masker {
    /// Collects the secret values of the inputs and of the answer.
    fn new(Case { inputs, assessed, .. }: &Case, verdict: &CaseVerdict) -> Self {
        let manifests = match verdict {
            CaseVerdict::Planned(planned) => planned.manifests.as_slice(),
            CaseVerdict::Refused(_) | CaseVerdict::Failed(_) => &[],
        };
        let settings = inputs.layers.iter().map(|layer| &layer.settings.values);
        let found = inputs.layers.iter().flat_map(|layer| &layer.needs).flat_map(|need| match &need.answer {
            RecordedAnswer::Objects(objects) => objects.as_slice(),
            RecordedAnswer::Secret(_) | RecordedAnswer::Unserved | RecordedAnswer::Forbidden(_) => &[],
        });
        let children = assessed.iter().flat_map(|assessed| &assessed.children).filter_map(|(_, live)| live.as_ref());
        let all = std::iter::once(&inputs.object).chain(settings).chain(found).chain(manifests).chain(children);
        Self { secrets: SecretValues::of(all), paths: BTreeSet::new() }
    }

    fn inputs(&mut self, inputs: &mut PassInputs) {
        self.value(&mut inputs.object, "object", false);
        for layer in &mut inputs.layers {
            let name = &layer.policy.name;
            self.value(&mut layer.settings.values, &format!("settings of {name}"), false);
            for need in &mut layer.needs {
                let RecordedAnswer::Objects(objects) = &mut need.answer else { continue };
                for object in objects {
                    self.value(object, &format!("{name}/{}", need.need.id), false);
                }
            }
        }
    }

    fn verdict(&mut self, verdict: CaseVerdict) -> CaseVerdict {
        if let CaseVerdict::Failed(mut failure) = verdict {
            failure.message = self.message(&failure.message);
            return CaseVerdict::Failed(failure);
        }
        let Ok(mut value) = serde_json::to_value(&verdict) else { return verdict };
        self.value(&mut value, "answer", false);
        serde_json::from_value(value).unwrap_or(verdict)
    }

    /// Masks a message of a policy, which can quote its input.
    fn message(&mut self, text: &str) -> String {
        let shown = masking::text(&self.secrets.text(text));
        if shown != text {
            self.paths.insert("answer".to_owned());
        }
        shown
    }

    /// Masks the secret texts in a value. With `hidden`, every text is secret.
    fn value(&mut self, value: &mut Value, path: &str, hidden: bool) {
        match value {
            Value::String(text) => {
                let is_masked = hidden && !matches!(text.as_str(), "" | "true" | "false");
                let shown = if is_masked { MASK.to_owned() } else { self.secrets.text(text) };
                if shown != *text {
                    self.paths.insert(path.to_owned());
                    *text = shown;
                }
            }
            Value::Number(number) => {
                if hidden && number.to_string().len() >= DIGITS {
                    self.paths.insert(path.to_owned());
                    *value = 0.into();
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.value(item, &format!("{path}[{at}]"), hidden);
                }
            }
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
                let (is_secret, named) = (text("kind") == "Secret", masking::is_secret(text("name")));
                for (key, value) in fields {
                    let is_content = is_secret && matches!(key.as_str(), "data" | "stringData");
                    let is_value = named && matches!(key.as_str(), "value" | "literal");
                    let path = format!("{path}.{key}");
                    if let Some(literal) = value.get_mut("literal").filter(|_| named && key == "source") {
                        self.value(literal, &path, true);
                    } else {
                        let hidden = (hidden && !is_reference_key(key)) || is_content || is_value || is_secret_key(key);
                        self.value(value, &path, hidden);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}
