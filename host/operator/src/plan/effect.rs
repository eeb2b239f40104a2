//! Adds up the differences of all objects: the effect of a change on a cluster. The size of the result does not depend
//! on the number of objects.

mod counts;
mod path_key;
mod shown;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use kaos_crds::PreviewExample;
use kaos_policy::{
    contract::{Reference, ResourceType},
    cut::{VALUE, cut},
};
use serde_json::Value;

pub use self::counts::{Counts, Fuel};
use self::{
    counts::count,
    path_key::{PathKey, TEXT, key_of, word_of},
};
use super::{
    Change, Child, Compared, Difference, Field, FrozenPath, Said, Side,
    changed_path::{ChangedPath, can_have_renames, with_renames},
};
use crate::masking;

/// The maximum number of different paths that this module counts.
const KNOWN_PATHS: usize = 2000;
/// The maximum number of examples for each path.
const EXAMPLES: usize = 3;

/// The effect of a change on a set of objects. Each object counts once: a later difference of the same object replaces
/// the earlier one.
#[derive(Debug, Default)]
pub struct Effect {
    objects: BTreeMap<Reference, Contribution>,
    /// The groups of changes with the same key, each with its examples.
    ///
    /// Many objects change in the same way, so a contribution refers to these groups by index.
    paths: Vec<(PathKey, Examples)>,
    indexes: BTreeMap<PathKey, usize>,
    frozen: Vec<FrozenPath>,
    /// The kinds with objects that the caller cannot see, each with the reason.
    unknown_kinds: BTreeMap<ResourceType, String>,
}

/// The part of the effect that comes from one object.
#[derive(Debug, Default)]
struct Contribution {
    is_change: bool,
    waits: bool,
    children: u64,
    rolls: u64,
    pods: u64,
    pods_replaced: u64,
    fuel: [Option<u64>; 2],
    problem: Option<(ObjectProblem, String)>,
    /// Whether a policy fails on the object after the change, even if a policy also failed before.
    fails: bool,
    /// The number of changes in each group, by the group's index in [`Effect::paths`].
    paths: BTreeMap<usize, u64>,
    /// The number of changes outside all groups, because the effect already has the maximum number of paths.
    uncounted: u64,
    /// The indexes of the frozen paths that change.
    frozen: BTreeSet<usize>,
}

impl Contribution {
    fn is_unchanged(&self) -> bool {
        !self.is_change && !matches!(self.problem, Some((ObjectProblem::Unknown, _)))
    }
}

/// The problems, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ObjectProblem {
    Refused,
    Failed,
    Unknown,
}

/// The examples of a path: a change of each of the first objects in alphabetical order.
#[derive(Debug, Default)]
struct Examples(BTreeMap<Reference, PreviewExample>);

impl Examples {
    /// Returns whether a change of this object would become an example.
    fn want(&self, object: &Reference) -> bool {
        let is_wanted = self.0.len() < EXAMPLES || self.0.last_key_value().is_some_and(|(last, _)| object < last);
        is_wanted && !self.0.contains_key(object)
    }
}

impl Effect {
    /// Starts an effect without objects. The effect will also count the changes below the `frozen` paths.
    pub fn new(frozen: Vec<FrozenPath>) -> Self {
        Self { frozen, ..Self::default() }
    }

    /// Adds up differences.
    pub fn of<'a>(differences: impl IntoIterator<Item = &'a Difference>) -> Self {
        let mut effect = Self::default();
        for difference in differences {
            effect.set(difference);
        }
        effect
    }

    /// Adds the difference of an object, or replaces its earlier difference. If the effect will show or compare values
    /// of the difference, masks the secret values first.
    pub(crate) fn add(&mut self, mut compared: Compared<'_>) {
        if self.uses_values(&compared) {
            compared.mask();
        }
        self.set(&compared.difference);
    }

    /// Returns whether the effect needs values of the difference: in a message, to find renamed fields, or as an
    /// example. Removes the earlier difference of the object, because the new one will replace it.
    pub(crate) fn uses_values(&mut self, compared: &Compared<'_>) -> bool {
        self.forget(&compared.difference.object);
        self.shows_values(&compared.difference)
    }

    /// Adds the difference of an object, or replaces its earlier difference. The caller must have masked secret values.
    pub fn set(&mut self, difference: &Difference) {
        let object = &difference.object;
        self.forget(object);
        let Difference { before, after, children, pods, newest: [newest_before, newest_after], .. } = difference;
        let said = |side: &'_ Option<Side>| side.as_ref().map(|side| side.said.clone());
        // If an earlier revision answers for the object both before and after the change, the newest policies had a
        // problem with the object even before the change. So the change is not the cause of the problem.
        let is_as_before = newest_before.is_some() && newest_after.is_some();
        let was_served = said(before) == Some(Said::Planned) && !is_as_before;
        let problem = match newest_after.clone().or_else(|| said(after)) {
            None if was_served => {
                Some((ObjectProblem::Refused, "no policy answers for the object any more".to_owned()))
            }
            Some(said @ Said::Refused(..)) if was_served => Some((ObjectProblem::Refused, text_of(&said))),
            Some(Said::Failed(message)) if !is_failed(before.as_ref()) && !is_as_before => {
                Some((ObjectProblem::Failed, masking::text(&message)))
            }
            _ => children.iter().find_map(|Child { child, refused, .. }| {
                let why = refused.as_ref()?;
                let why = masking::text(why);
                Some((ObjectProblem::Failed, format!("the API server refuses the planned {child}: {why}")))
            }),
        };
        let mut contribution = Contribution {
            is_change: difference.is_change(),
            waits: !difference.waits_for.is_empty(),
            children: count(children.len()),
            rolls: count(children.iter().filter(|child| child.rolls).count()),
            pods: *pods,
            pods_replaced: children.iter().map(|child| child.pods).sum(),
            fuel: [before, after].map(|side| side.as_ref().map(|side| side.fuel)),
            fails: is_failed(after.as_ref()) || matches!(newest_after, Some(Said::Failed(_))),
            ..Contribution::default()
        };
        if problem.is_none() {
            self.answer(difference, &mut contribution);
        }
        contribution.problem = problem.map(|(problem, message)| (problem, cut(&message, TEXT).into_owned()));
        for child in children {
            self.child(object, child, &mut contribution);
        }
        self.objects.insert(object.clone(), contribution);
    }

    /// Adds an object for which the effect is unknown.
    pub fn set_unknown(&mut self, object: &Reference, why: &str) {
        self.forget(object);
        let problem = Some((ObjectProblem::Unknown, cut(why, TEXT).into_owned()));
        self.objects.insert(object.clone(), Contribution { problem, ..Contribution::default() });
    }

    /// Adds a kind with objects that the caller cannot see.
    pub fn set_kind_unknown(&mut self, kind: &ResourceType, why: &str) {
        self.unknown_kinds.insert(kind.clone(), cut(why, TEXT).into_owned());
    }

    /// Removes an object.
    pub fn forget(&mut self, object: &Reference) {
        let Some(contribution) = self.objects.remove(object) else { return };
        for at in contribution.paths.keys() {
            if let Some((_, Examples(examples))) = self.paths.get_mut(*at) {
                examples.remove(object);
            }
        }
    }

    /// Counts a changed answer, for example a plan instead of a refusal. The caller itself counts a new answer that is
    /// a problem.
    fn answer(&mut self, Difference { object, before, after, .. }: &Difference, to: &mut Contribution) {
        let said = |side: &Option<Side>| side.as_ref().map(|side| side.said.clone());
        if said(before) == said(after) {
            return;
        }
        let text = |side| said(side).map(|said| cut(&text_of(&said), VALUE).into_owned());
        let change = word_of(before.is_some(), after.is_some());
        let key = PathKey { kind: object.kind.clone(), child: None, path: None, change, value: None };
        self.change(object, key, to, || PreviewExample {
            object: place(object),
            child: None,
            before: text(before),
            after: text(after),
        });
    }

    fn shows_values(&self, difference: &Difference) -> bool {
        let Difference { object, before, after, children, newest, .. } = difference;
        let has_message = |said: &Said| *said != Said::Planned;
        let mut said = [before, after].into_iter().flatten().map(|side| &side.said).chain(newest.iter().flatten());
        let uses = |child: &Child| {
            let Change::Changed(fields) = &child.change else { return child.refused.is_some() };
            let is_example = |field: &Field| self.wants(object, &key_of(object, &child.child, &field.path, field));
            // The mask of a secret number is a text, so masking changes the type of the value, which is a part of the
            // key.
            let is_masked_number = |field: &Field| [&field.before, &field.after].into_iter().flatten().any(is_maskable);
            child.refused.is_some()
                || can_have_renames(fields)
                || fields.iter().any(|field| is_example(field) || is_masked_number(field))
        };
        said.any(has_message) || children.iter().any(uses)
    }

    /// Returns whether the object would become an example for the group with this key.
    fn wants(&self, object: &Reference, key: &PathKey) -> bool {
        match self.indexes.get(key).and_then(|at| self.paths.get(*at)) {
            None => self.paths.len() < KNOWN_PATHS,
            Some((_, examples)) => examples.want(object),
        }
    }

    fn child(&mut self, object: &Reference, child: &Child, to: &mut Contribution) {
        let Child { child, change, removed, .. } = child;
        let example = |before: Option<String>, after: Option<String>| PreviewExample {
            object: place(object),
            child: Some(child.name.clone()),
            before,
            after,
        };
        let key = |path, change| PathKey::of(object, child, path, change, None);
        let fields = match change {
            Change::Added => return self.change(object, key(None, "Added"), to, || example(None, None)),
            Change::Removed => {
                to.frozen.extend(self.frozen_that(|frozen| removed.as_ref().is_some_and(|it| frozen.is_in(it))));
                return self.change(object, key(None, "Removed"), to, || example(None, None));
            }
            Change::Changed(fields) => fields,
        };
        if !self.frozen.is_empty() {
            let changed: Vec<ChangedPath> = fields.iter().map(|field| ChangedPath::new(&field.path)).collect();
            to.frozen.extend(self.frozen_that(|frozen| changed.iter().any(|path| frozen.covers(path))));
        }
        if fields.is_empty() {
            // Only the hash of the child's pod template differs, for example because a ConfigMap of the plan changes.
            self.change(object, key(Some("(pods)".to_owned()), "Changed"), to, || example(None, None));
        }
        for (path, field) in with_renames(fields) {
            let Some(field) = field else {
                let path = Some(cut(&path, TEXT).into_owned());
                self.change(object, key(path, "Renamed"), to, || example(None, None));
                continue;
            };
            let shown = |value: &Option<Value>| value.as_ref().map(text);
            let example = || example(shown(&field.before), shown(&field.after));
            self.change(object, key_of(object, child, &path, field), to, example);
        }
    }

    fn change(
        &mut self,
        object: &Reference,
        key: PathKey,
        to: &mut Contribution,
        example: impl FnOnce() -> PreviewExample,
    ) {
        let at = match self.indexes.get(&key) {
            Some(at) => *at,
            None if self.paths.len() >= KNOWN_PATHS => {
                to.uncounted += 1;
                return;
            }
            None => {
                self.indexes.insert(key.clone(), self.paths.len());
                self.paths.push((key, Examples::default()));
                self.paths.len() - 1
            }
        };
        let Some((_, examples)) = self.paths.get_mut(at) else { return };
        *to.paths.entry(at).or_default() += 1;
        if examples.want(object) {
            examples.0.insert(object.clone(), example());
            if examples.0.len() > EXAMPLES {
                examples.0.pop_last();
            }
        }
    }

    /// Returns the indexes of the frozen paths for which `fits` returns true.
    fn frozen_that(&self, fits: impl Fn(&FrozenPath) -> bool) -> Vec<usize> {
        self.frozen.iter().enumerate().filter(|(_, frozen)| fits(frozen)).map(|(at, _)| at).collect()
    }

    /// Returns the numbers.
    pub fn counts(&self) -> Counts {
        let (objects, unknown) = (count(self.objects.len()), count(self.unknown_kinds.len()));
        let mut counts = Counts { objects, unknown, ..Counts::default() };
        for it in self.objects.values() {
            counts.changed += u64::from(it.is_change);
            counts.children += it.children;
            counts.rolls += it.rolls;
            counts.pods += it.pods;
            counts.pods_replaced += it.pods_replaced;
            counts.failing += u64::from(it.fails);
            counts.waiting += u64::from(it.waits);
            match it.problem {
                Some((ObjectProblem::Refused, _)) => counts.refused += 1,
                Some((ObjectProblem::Failed, _)) => counts.failed += 1,
                Some((ObjectProblem::Unknown, _)) => counts.unknown += 1,
                None => {}
            }
        }
        counts
    }

    /// Returns the median and maximum fuel of the passes, before and after the change.
    pub fn fuel(&self) -> [Fuel; 2] {
        [0, 1].map(|side| Fuel::of(self.objects.values().filter_map(|it| it.fuel[side]).collect()))
    }

    /// Returns each frozen path with changes, and the number of objects whose children change below this path.
    pub fn frozen_changes(&self) -> Vec<(&str, u64)> {
        let objects = |at: usize| count(self.objects.values().filter(|it| it.frozen.contains(&at)).count());
        let all = self.frozen.iter().enumerate().map(|(at, frozen)| (frozen.path.as_str(), objects(at)));
        all.filter(|(_, objects)| *objects > 0).collect()
    }
}

impl ObjectProblem {
    fn word(self) -> &'static str {
        match self {
            Self::Refused => "Refused",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

fn is_failed(side: Option<&Side>) -> bool {
    matches!(side, Some(Side { said: Said::Failed(_), .. }))
}

/// Formats an answer. Masks a value in a message if the message itself shows that the value is secret.
fn text_of(said: &Said) -> String {
    match said {
        Said::Planned => said.to_string(),
        Said::Refused(reason, messages) => {
            Said::Refused(reason.clone(), messages.iter().map(|message| masking::text(message)).collect()).to_string()
        }
        Said::Failed(message) => Said::Failed(masking::text(message)).to_string(),
    }
}

fn place(object: &Reference) -> String {
    object.namespace.as_ref().map_or_else(|| object.name.clone(), |namespace| format!("{namespace}/{}", object.name))
}

/// Returns whether this value is a number with enough digits that it may be masked as a secret.
fn is_maskable(value: &Value) -> bool {
    value.as_number().is_some_and(masking::can_be_secret)
}

fn text(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    cut(&text, VALUE).into_owned()
}
