//! Compares the results of two sets of policies, before and after a change, for each object.
//!
//! Both sets of policies render the same objects, in the same way as the command `render`. The caller collects the
//! objects and displays the differences. The code calls "before the change" and "after the change" the two sides.
//!
//! | module | content |
//! |---|---|
//! | `comparison` | renders many objects on both sides |
//! | `side`, `fields`, `immutable` | the answer on one side, the fields that differ, and changes that the API server refuses |
//! | `held` | whether plan gates hold back a plan |
//! | `effect`, `changed_path` | adds up the differences of many objects |

mod changed_path;
mod comparison;
mod effect;
mod fields;
mod held;
mod immutable;
mod side;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kaos_policy::{
    contract::{Need, Reference, Target},
    render::Rendered,
    stamp::carried_hash,
};
use serde::Serialize;
use serde_json::Value;

pub use changed_path::FrozenPath;
pub use comparison::{Comparison, Unstored, compare};
pub use effect::{Counts, Effect, Fuel};
pub use fields::{Field, fields};
use held::{Hold, hold};
pub use immutable::refused;
pub use side::{Said, Side};

use crate::{masking::Masks, pods::pods};

/// The results for one object before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The object.
    pub object: Reference,
    /// The result before the change; `None` if no policy answered for the object.
    pub before: Option<Side>,
    /// The result after the change; `None` if no policy answers for the object.
    pub after: Option<Side>,
    /// The children that differ.
    pub children: Vec<Child>,
    /// The number of pods of all children before the change.
    #[serde(skip)]
    pub pods: u64,
    /// The answers of the newest policies before and after the change. Each is present only if the newest policies fail
    /// on the object or refuse it, so that an earlier revision answers instead.
    #[serde(skip)]
    pub newest: [Option<Said>; 2],
    /// The objects that the plan after the change waits for, if plan gates hold back this plan. The children then
    /// change only when the gates open, so the field `children` is empty. This list is empty if no gate holds back the
    /// plan, or if the plan would change no child.
    #[serde(skip)]
    pub waits_for: Vec<Reference>,
}

/// A child that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Child {
    /// The child.
    pub child: Reference,
    /// The kind of difference.
    #[serde(flatten)]
    pub change: Change,
    /// Whether the change replaces the pods of the child.
    pub rolls: bool,
    /// The reason why the API server refuses the change: the server's own answer, or a rule for immutable fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The manifest after the change; `None` if the child is deleted.
    #[serde(skip)]
    pub manifest: Option<Value>,
    /// The manifest of a deleted child; `None` if the child stays.
    #[serde(skip)]
    pub removed: Option<Value>,
    /// The number of the child's pods that Kubernetes replaces or deletes.
    #[serde(skip)]
    pub pods: u64,
}

/// The difference of a child between the two plans.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "change", content = "fields")]
pub enum Change {
    /// The child is new.
    Added,
    /// The child is deleted.
    Removed,
    /// The child is in both plans, and these fields differ.
    Changed(Vec<Field>),
}

impl Difference {
    /// Returns whether the change changes a child, or the answer of the policies.
    pub fn is_change(&self) -> bool {
        let said = |side: &Option<Side>| side.as_ref().map(|side| side.said.clone());
        !self.children.is_empty() || said(&self.before) != said(&self.after)
    }

    /// Returns whether a policy fails on the object only after the change, or the API server refuses a changed child.
    pub fn is_failure(&self) -> bool {
        let failed = |side: &Option<Side>| matches!(side, Some(Side { said: Said::Failed(_), .. }));
        (failed(&self.after) && !failed(&self.before)) || self.children.iter().any(|child| child.refused.is_some())
    }
}

impl Difference {
    /// Masks secret values in all fields that callers show.
    fn mask(&mut self, secrets: &Masks) {
        let sides = [&mut self.before, &mut self.after].into_iter().flatten().map(|side| &mut side.said);
        for said in sides.chain(self.newest.iter_mut().flatten()) {
            match said {
                Said::Planned => {}
                Said::Refused(_, messages) => messages.iter_mut().for_each(|message| *message = secrets.text(message)),
                Said::Failed(message) => *message = secrets.text(message),
            }
        }
        for child in &mut self.children {
            child.refused = child.refused.as_deref().map(|why| secrets.text(why));
            let Change::Changed(fields) = &mut child.change else { continue };
            for Field { before, after, .. } in fields {
                for value in [before, after].into_iter().flatten() {
                    *value = secrets.value(value);
                }
            }
        }
    }
}

/// Returns the live object that a reference names, or `None` if it does not exist or the caller does not know it.
pub type LiveObject<'a> = &'a dyn Fn(&Reference) -> Option<Value>;

/// The caller's knowledge about the cluster, which a comparison uses in addition to the answers.
pub struct Around<'a> {
    /// Finds live children, and objects that the policies read. The comparison uses a live child to count pods if the
    /// manifest does not state their number.
    pub live: LiveObject<'a>,
    /// Returns whether a child exists; `None` if the caller does not know.
    pub exists: &'a dyn Fn(&Reference) -> Option<bool>,
    /// The settings of both sides. The comparison masks their secret values.
    pub settings: Vec<&'a Value>,
}

/// The answers for one object on one side of a change.
#[derive(Clone, Copy)]
pub struct Answers<'a> {
    /// The answer of the policies that serve the object.
    pub used: &'a Rendered,
    /// The answer of the newest policies, if an earlier revision answers instead.
    pub newest: Option<&'a Rendered>,
}

impl<'a> Answers<'a> {
    /// Creates the answers if the newest policies serve the object.
    pub fn of(used: &'a Rendered) -> Self {
        Self { used, newest: None }
    }
}

/// One answer for an object, from a pass of this program or from a recorded case.
#[derive(Debug, Clone)]
pub struct AnsweredSide<'a> {
    /// The answer, without its manifests.
    pub side: Side,
    /// The manifests; `None` without a plan.
    pub manifests: Option<&'a [Value]>,
    /// The needs of the policies.
    pub needs: &'a [Need],
    /// The pass; `None` if the answer comes from a recorded case.
    pub rendered: Option<&'a Rendered>,
}

impl<'a> AnsweredSide<'a> {
    /// Returns the answer of a pass.
    pub fn of(rendered: &'a Rendered) -> Self {
        let manifests = rendered.planned().map(|planned| planned.manifests.as_slice());
        Self { side: Side::of(rendered), manifests, needs: &rendered.needs, rendered: Some(rendered) }
    }
}

/// Compares the results for one object before and after a change. `None` means that no policy answers. Masks the secret
/// values of the object, of the objects that the policies read, of the settings, and of both plans.
pub fn difference(object: &Value, answers: [Option<Answers<'_>>; 2], around: &Around<'_>) -> Difference {
    let (sides, newest) = sides(answers);
    difference_of(object, &sides, newest, around)
}

/// Compares two answers, like [`difference`]. The parameter `newest` has the answers of the newest policies, if an
/// earlier revision answers instead.
pub fn difference_of(
    object: &Value,
    answers: &[Option<AnsweredSide<'_>>; 2],
    newest: [Option<Said>; 2],
    around: &Around<'_>,
) -> Difference {
    let mut difference = unmasked(object, answers, newest, around);
    if difference.is_change() || difference.newest.iter().any(Option::is_some) {
        difference.mask(&secrets(object, answers, around));
    }
    difference
}

/// The difference of one object, for an effect. Its secret values may not be masked yet: to collect them takes longer
/// than to compare the plans, and an effect shows values of only a few objects.
pub(crate) struct Compared<'a> {
    difference: Difference,
    is_masked: bool,
    object: &'a Value,
    sides: [Option<AnsweredSide<'a>>; 2],
    around: &'a Around<'a>,
}

/// Compares the results for one object, like [`difference`], but masks no secret values yet.
pub(crate) fn compared<'a>(
    object: &'a Value,
    answers: [Option<Answers<'a>>; 2],
    around: &'a Around<'a>,
) -> Compared<'a> {
    let (sides, newest) = sides(answers);
    let difference = unmasked(object, &sides, newest, around);
    Compared { difference, is_masked: false, object, sides, around }
}

impl Compared<'_> {
    /// Masks the secret values.
    pub(crate) fn mask(&mut self) {
        if !self.is_masked {
            self.difference.mask(&secrets(self.object, &self.sides, self.around));
            self.is_masked = true;
        }
    }
}

/// Returns, for each side, the answer that serves the object. Also returns the answer of the newest policies, if an
/// earlier revision answers instead.
fn sides(answers: [Option<Answers<'_>>; 2]) -> ([Option<AnsweredSide<'_>>; 2], [Option<Said>; 2]) {
    let newest = answers.map(|answers| answers.and_then(|answers| answers.newest).map(|newest| Side::of(newest).said));
    (answers.map(|answers| answers.map(|answers| AnsweredSide::of(answers.used))), newest)
}

/// Collects the secret values of the object, of the objects that the policies read, of the settings, and of both plans.
fn secrets(object: &Value, answers: &[Option<AnsweredSide<'_>>; 2], around: &Around<'_>) -> Masks {
    let answers = || answers.iter().flatten();
    let read: Vec<Value> = answers().flat_map(|answer| read_by(answer.needs, around.live)).collect();
    let manifests = answers().filter_map(|answer| answer.manifests).flatten();
    let passes = || answers().filter_map(|answer| answer.rendered);
    let found: Vec<Value> = passes().flat_map(Rendered::found_objects).collect();
    let bound = passes().flat_map(|rendered| rendered.settings.iter().map(|settings| settings.tree()));
    let known = std::iter::once(object).chain(manifests).chain(&read).chain(&found).chain(bound);
    Masks::of(known.chain(around.settings.iter().copied()))
}

/// Compares two answers, and masks nothing.
fn unmasked(
    object: &Value,
    answers: &[Option<AnsweredSide<'_>>; 2],
    newest: [Option<Said>; 2],
    around: &Around<'_>,
) -> Difference {
    let Around { live, exists, .. } = around;
    let planned = |answer: &Option<AnsweredSide<'_>>| -> Option<BTreeMap<Reference, Value>> {
        let manifests = answer.as_ref()?.manifests?;
        Some(manifests.iter().map(|manifest| (Reference::of_object(manifest), manifest.clone())).collect())
    };
    let [old, new] = answers.each_ref().map(planned);
    let pass = |side: usize| answers[side].as_ref()?.rendered?.planned();
    let [was_held, is_held] =
        [(0, None), (1, old.as_ref())].map(|(side, other)| hold(pass(side)?, object, other, exists));
    let planned = match (&old, &new) {
        (Some(old), Some(new)) => children(old, new, live),
        (None, Some(new)) => appearing(new, live),
        // Without a plan after the change, the operator does not change existing children.
        (_, None) => Vec::new(),
    };
    let gates = || pass(1).into_iter().flat_map(|planned| &planned.gates).map(|gate| gate.on.clone());
    let waits_for = if is_held.is_some() && !planned.is_empty() { gates().collect() } else { Vec::new() };
    let children = match (is_held, was_held, &old, &new) {
        (Some(_), ..) => Vec::new(),
        (None, Some(Hold::BeforeFirstApply), _, Some(new)) => appearing(new, live),
        (None, Some(Hold::KeepsChildren), Some(old), Some(new)) => reappearing(old, new, live),
        _ => planned,
    };
    let pods = match (&old, &new) {
        (Some(old), _) if was_held.is_none() => {
            old.iter().map(|(child, manifest)| pods(manifest, || live(child))).sum()
        }
        (Some(old), _) => old.keys().filter_map(live).map(|child| pods(&child, || Some(child.clone()))).sum(),
        // The object can still have children from an earlier plan.
        (None, Some(new)) => new.keys().filter_map(live).map(|child| pods(&child, || Some(child.clone()))).sum(),
        (None, None) => 0,
    };
    let [before, after] = answers.each_ref().map(|answer| answer.as_ref().map(|answer| answer.side.clone()));
    Difference { object: Reference::of_object(object), before, after, children, pods, newest, waits_for }
}

/// Returns the objects that a pass read by name, if the caller knows them.
fn read_by(needs: &[Need], live: LiveObject<'_>) -> Vec<Value> {
    let named = needs.iter().filter_map(|need| match &need.target {
        Target::Named(reference) => live(reference),
        Target::Labelled(_) => None,
    });
    named.collect()
}

/// Returns an object with its secret values masked.
pub fn masked(object: &Value) -> Value {
    Masks::of([object]).value(object)
}

fn children(old: &BTreeMap<Reference, Value>, new: &BTreeMap<Reference, Value>, live: LiveObject<'_>) -> Vec<Child> {
    let gone = old.iter().filter(|(child, _)| !new.contains_key(child));
    let gone = gone.map(|(child, manifest)| Child {
        child: child.clone(),
        change: Change::Removed,
        rolls: false,
        refused: None,
        manifest: None,
        removed: Some(manifest.clone()),
        pods: pods(manifest, || live(child)),
    });
    let there = new.iter().filter_map(|(child, manifest)| {
        let (change, rolls, refused, pods) = match old.get(child) {
            None => (Change::Added, false, None, 0),
            Some(before) => {
                let fields = fields(before, manifest);
                let rolls = carried_hash(before) != carried_hash(manifest);
                if fields.is_empty() && !rolls {
                    return None;
                }
                let pods = replaced([before, manifest], rolls, || live(child));
                (Change::Changed(fields), rolls, refused(before, manifest), pods)
            }
        };
        let manifest = Some(manifest.clone());
        Some(Child { child: child.clone(), change, rolls, refused, manifest, removed: None, pods })
    });
    gone.chain(there).collect()
}

/// Returns the children that change if the operator applies the plan `new`, after plan gates held back the plan `old`.
/// The live children come from a plan before `old`. If the caller does not know a live child, this function uses the
/// manifest in `old`.
fn reappearing(old: &BTreeMap<Reference, Value>, new: &BTreeMap<Reference, Value>, live: LiveObject<'_>) -> Vec<Child> {
    let known = |child: &Reference| live(child).or_else(|| old.get(child).cloned());
    let gone = children(old, new, &known).into_iter().filter(|child| child.change == Change::Removed);
    gone.chain(appearing(new, &known)).collect()
}

/// Returns all children of a plan as new, because the object had no applied plan before the change. Some children of an
/// earlier plan can still exist.
fn appearing(new: &BTreeMap<Reference, Value>, live: LiveObject<'_>) -> Vec<Child> {
    let child = |(child, manifest): (&Reference, &Value)| {
        let known = live(child);
        let rolls = known.as_ref().is_some_and(|known| carried_hash(known) != carried_hash(manifest));
        let pods = known.as_ref().map_or(0, |known| replaced([known, manifest], rolls, || Some(known.clone())));
        Child {
            child: child.clone(),
            change: Change::Added,
            rolls,
            refused: None,
            manifest: Some(manifest.clone()),
            removed: None,
            pods,
        }
    };
    new.iter().map(child).collect()
}

/// Returns the number of pods that Kubernetes replaces or deletes.
fn replaced([before, after]: [&Value; 2], rolls: bool, live: impl Fn() -> Option<Value>) -> u64 {
    if !rolls && before["spec"]["replicas"] == after["spec"]["replicas"] {
        return 0;
    }
    let many = pods(before, &live);
    if rolls { many } else { many.saturating_sub(pods(after, &live)) }
}
