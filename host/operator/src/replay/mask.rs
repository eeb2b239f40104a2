//! Masks the secret values of a case. Then repeats the decision with the masked inputs, so that the case contains the
//! answer and the id for its masked inputs.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{
    contract::Outcome,
    digest::Digest,
    policy::Policy,
    render::{DecisionId, LayerInputs, PassInputs, RecordedAnswer},
    settings::Effective,
    stamp::{APPLIED_DIGEST, HASH_STANDS_FOR, POD_SPEC_HASH},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    answered::answer_of,
    sides::{said, side},
};
use crate::{
    masking::{MASK, Masks},
    plan::{Around, Change, difference_of},
    record::{Case, CaseAnswer, CaseFailure, CaseVerdict, MaskEffect, Masked, ObservedChildren},
};

/// The maximum number of paths of masked values in a case.
const NAMED: usize = 50;
/// The annotations with hashes of whole manifests or pod templates. With such a hash and the rest of the manifest, a
/// reader could test guesses of a secret value.
const HASHES: [&str; 3] = [APPLIED_DIGEST, HASH_STANDS_FOR, POD_SPEC_HASH];

/// Masks secret values, and remembers their paths.
struct Masker {
    masks: Masks,
    paths: BTreeSet<String>,
}

/// A function that returns a recorded policy, if this program has it.
type Find<'a> = &'a dyn Fn(&LayerInputs) -> Option<Arc<Policy>>;

/// Masks the secret values of a case: the values of fields and variables with secret names, and these values wherever
/// they appear. The function `find` returns a policy if this program has it. If the program has all policies of the
/// case, it runs them with the masked inputs, and the case gets their answer instead of the recorded answer. The case
/// also gets the id of the decision about the masked inputs, so that a reader cannot use the id to test guesses of a
/// masked value.
#[must_use]
pub fn masked(mut case: Case, find: Find<'_>) -> Case {
    let mut masker = Masker::new(&case, &case.answer.verdict);
    let (mut inputs, mut assessed) = (case.inputs.clone(), case.assessed.clone());
    masker.inputs(&mut inputs);
    if let Some(assessed) = &mut assessed {
        masker.assessed(assessed);
    }
    let is_input_masked = !masker.paths.is_empty();
    let answer = CaseAnswer::new(masker.verdict(case.answer.verdict.clone(), &case), case.answer.fuel);
    for passed_over in &mut case.passed_over {
        passed_over.how = masker.text(&passed_over.how, "passedOver");
    }
    if masker.paths.is_empty() {
        return case;
    }
    without_hashes(&mut inputs, assessed.as_mut());
    (case.inputs, case.assessed) = (inputs, assessed);
    case.decision = DecisionId::of(&Digest::of_json(&json!([case.inputs, case.assessed])));
    let again = (is_input_masked && case.incomplete.is_none()).then(|| again(&case, find, &mut masker));
    let effect;
    (case.answer, effect) = match again {
        None => (answer, MaskEffect::Nothing),
        Some(None) => (without_hashes_of(answer), MaskEffect::Unknown),
        Some(Some((now, decision))) => {
            let effect = effect_of(&case, &answer, &now);
            case.decision = decision;
            (now, effect)
        }
    };
    let values = masker.paths.len();
    case.masked = Some(Masked { values, paths: masker.paths.into_iter().take(NAMED).collect(), effect });
    case
}

/// Repeats the decision with the masked inputs. Returns its answer and its id.
fn again(case: &Case, find: Find<'_>, masker: &mut Masker) -> Option<(CaseAnswer, DecisionId)> {
    let layer = |layer: &LayerInputs| Some((find(layer)?, Arc::new(layer.settings.effective())));
    let layers: Vec<(Arc<Policy>, Arc<Effective>)> =
        case.inputs.layers.iter().map(layer).collect::<Option<Vec<_>>>()?;
    let repeated = case.inputs.repeat(layers)?.ok()?;
    let decision = match &case.assessed {
        None => repeated.rendered.decision(),
        Some(assessed) => repeated.rendered.assessment(&assessed.outcome, &assessed.children()),
    };
    // First mask the values that are secret in the masked case, as a replay does. Then also mask the values that are
    // secret only in the original inputs.
    let CaseAnswer { verdict, fuel, .. } = answer_of(case, &repeated);
    let verdict = masker.verdict(masked_as(verdict, case), case);
    Some((CaseAnswer::new(verdict, fuel), decision))
}

/// Masks the secret values of a case in a verdict.
pub(super) fn masked_as(verdict: CaseVerdict, case: &Case) -> CaseVerdict {
    Masker::new(case, &verdict).verdict(verdict, case)
}

fn effect_of(case: &Case, before: &CaseAnswer, now: &CaseAnswer) -> MaskEffect {
    let policies = || case.inputs.layers.iter().map(|layer| &layer.policy);
    let sides = [side(before, policies()), side(now, policies())];
    let around = Around { live: &|_| None, exists: &|_| None, settings: Vec::new() };
    let difference = difference_of(&case.inputs.object, &sides, [None, None], &around);
    // Do not compare whole verdicts, because the hashes of masked manifests always differ. The comparison of fields
    // ignores these hashes.
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

/// Masks the hashes of manifests in the needed objects and the live children of a case.
fn without_hashes(inputs: &mut PassInputs, assessed: Option<&mut ObservedChildren>) {
    for need in inputs.layers.iter_mut().flat_map(|layer| &mut layer.needs) {
        if let RecordedAnswer::Objects(objects) = &mut need.answer {
            objects.iter_mut().for_each(mask_hashes);
        }
    }
    let children = assessed.into_iter().flat_map(|assessed| &mut assessed.children);
    children.filter_map(|(_, live)| live.as_mut()).for_each(mask_hashes);
}

/// Masks the hashes of manifests in an answer to the original inputs.
fn without_hashes_of(CaseAnswer { verdict, fuel, .. }: CaseAnswer) -> CaseAnswer {
    let verdict = match verdict {
        CaseVerdict::Planned(mut planned) => {
            planned.manifests.iter_mut().for_each(mask_hashes);
            CaseVerdict::Planned(planned)
        }
        other => other,
    };
    CaseAnswer::new(verdict, fuel)
}

fn mask_hashes(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask_hashes),
        Value::Object(fields) => {
            for (key, value) in fields {
                if HASHES.contains(&key.as_str()) { *value = MASK.into() } else { mask_hashes(value) }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Masker {
    /// Collects the secret values of the inputs and of the answer.
    fn new(Case { inputs, assessed, .. }: &Case, verdict: &CaseVerdict) -> Self {
        let settings = inputs.layers.iter().map(|layer| &layer.settings.values);
        let found = inputs.layers.iter().flat_map(|layer| &layer.needs).flat_map(|need| match &need.answer {
            RecordedAnswer::Objects(objects) => objects.as_slice(),
            RecordedAnswer::Secret(_) | RecordedAnswer::Unserved | RecordedAnswer::Forbidden(_) => &[],
        });
        let manifests = match verdict {
            CaseVerdict::Planned(planned) => planned.manifests.as_slice(),
            CaseVerdict::Refused(_) | CaseVerdict::Failed(_) => &[],
        };
        let children = assessed.iter().flat_map(|assessed| &assessed.children).filter_map(|(_, live)| live.as_ref());
        let all = std::iter::once(&inputs.object).chain(settings).chain(found).chain(manifests).chain(children);
        Self { masks: Masks::of(all), paths: BTreeSet::new() }
    }

    fn inputs(&mut self, inputs: &mut PassInputs) {
        self.value(&mut inputs.object, "object");
        for layer in &mut inputs.layers {
            let name = &layer.policy.name;
            let path = format!("settings of {name}");
            self.value(&mut layer.settings.values, &path);
            for source in &mut layer.settings.sources {
                source.path = self.text(&source.path, &path);
            }
            for need in &mut layer.needs {
                let path = format!("{name}/{}", need.need.id);
                self.typed(&mut need.need.target, &path);
                match &mut need.answer {
                    RecordedAnswer::Objects(objects) => {
                        for object in objects {
                            self.value(object, &path);
                        }
                    }
                    RecordedAnswer::Forbidden(reason) => *reason = self.text(reason, &path),
                    RecordedAnswer::Secret(_) | RecordedAnswer::Unserved => {}
                }
            }
        }
    }

    fn assessed(&mut self, assessed: &mut ObservedChildren) {
        if !self.typed(&mut assessed.outcome, "outcome") {
            assessed.outcome = Outcome::Failed(MASK.to_owned());
        }
        for (_, live) in &mut assessed.children {
            if let Some(live) = live {
                self.value(live, "children");
            }
        }
    }

    /// Masks the secret values in a verdict. If the masked verdict is not readable, returns a failure instead.
    fn verdict(&mut self, mut verdict: CaseVerdict, case: &Case) -> CaseVerdict {
        if let CaseVerdict::Failed(failure) = &mut verdict {
            failure.message = self.text(&failure.message, "answer");
            return verdict;
        }
        if self.typed(&mut verdict, "answer") {
            return verdict;
        }
        let message = "the answer is not readable with masks".to_owned();
        let policy = case.inputs.layers.first().map(|layer| layer.policy.clone());
        let failed = |policy| CaseVerdict::Failed(CaseFailure { policy, category: "Masked".to_owned(), message });
        policy.map_or(verdict, failed)
    }

    /// Masks the secret values in a text, such as a policy's message that quotes its input.
    fn text(&mut self, text: &str, path: &str) -> String {
        let shown = self.masks.text(text);
        if shown != text {
            self.paths.insert(path.to_owned());
        }
        shown
    }

    /// Masks the secret values inside a typed value. Returns `false` if the masked value does not fit the type.
    fn typed<T: Serialize + DeserializeOwned>(&mut self, value: &mut T, path: &str) -> bool {
        let Ok(mut masked) = serde_json::to_value(&*value) else { return false };
        self.value(&mut masked, path);
        serde_json::from_value(masked).map(|masked| *value = masked).is_ok()
    }

    fn value(&mut self, value: &mut Value, path: &str) {
        let paths = &mut self.paths;
        self.masks.mask(value, path, &mut |path| {
            paths.insert(path.to_owned());
        });
    }
}
