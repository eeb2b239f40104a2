//! Compares the results of two sets of policies for each object.
//!
//! Both sides render the same objects, in the same way as the verb `render`. The caller gathers the objects and
//! displays the differences.

mod changed_path;
mod effect;
mod fields;
mod immutable;
mod pods;
mod side;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
};

use kaos_policy::{
    contract::{Reference, ResourceType, Target},
    lookup::Sighting,
    render::{RenderError, Rendered},
    stamp::carried_hash,
};
use serde::Serialize;
use serde_json::Value;

pub use changed_path::FrozenPath;
pub use effect::{Counts, Effect, Fuel};
pub use fields::{Field, fields};
pub use immutable::refused;
pub use side::{Said, Side};

use self::pods::pods;
use crate::offline::{Answering, StoredObjects, World};

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
    /// The reason why the API server refuses the change: the server's own answer, or a rule that this program knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The manifest after the change; `None` if the child is deleted.
    #[serde(skip)]
    pub manifest: Option<Value>,
    /// The number of pods that Kubernetes replaces or deletes.
    #[serde(skip)]
    pub pods: u64,
}

/// The difference between the two plans of a child.
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
    /// Returns whether the two sides differ in anything other than the fuel.
    pub fn is_change(&self) -> bool {
        let said = |side: &Option<Side>| side.as_ref().map(|side| side.said.clone());
        !self.children.is_empty() || said(&self.before) != said(&self.after)
    }

    /// Returns whether a policy fails on the object only after the change, or the API server refuses a child.
    pub fn is_failure(&self) -> bool {
        let failed = |side: &Option<Side>| matches!(side, Some(Side { said: Said::Failed(_), .. }));
        (failed(&self.after) && !failed(&self.before)) || self.children.iter().any(|child| child.refused.is_some())
    }
}

/// All differences, and the needs of the passes.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// One difference for each object whose policies or settings differ between the two sides, in the order of the
    /// objects.
    pub differences: Vec<Difference>,
    /// The needs of all passes.
    pub needs: BTreeSet<Target>,
}

/// Renders each object whose policies or settings differ between the sides, and compares the results. Uses one thread
/// for each processor.
pub fn compare(
    stored: &StoredObjects,
    before: &dyn Answering,
    after: &dyn Answering,
    hidden: &(dyn Fn(&ResourceType) -> Option<Sighting> + Sync),
) -> Result<Comparison, RenderError> {
    let concerned: Vec<usize> = stored
        .objects()
        .iter()
        .enumerate()
        .filter_map(|(position, object)| {
            let sides = (before.renderer(object), after.renderer(object));
            match sides {
                (None, None) => None,
                (Some(before), Some(after)) if std::ptr::eq(before, after) => None,
                _ => Some(position),
            }
        })
        .collect();
    let threads = thread::available_parallelism().map_or(1, usize::from).min(concerned.len()).max(1);
    let share = |first: usize| {
        let (before, after) = (World::new(stored, before, hidden), World::new(stored, after, hidden));
        let mut share = (Vec::new(), BTreeSet::new());
        for position in concerned.iter().skip(first).step_by(threads) {
            let (before, after) = (before.entry(*position).transpose()?, after.entry(*position).transpose()?);
            for entry in before.iter().chain(&after) {
                share.1.extend(entry.rendered.needs.iter().map(|need| need.target.clone()));
            }
            let rendered = [&before, &after].map(|entry| entry.as_ref().map(|entry| &entry.rendered));
            share.0.push((*position, difference(&stored.objects()[*position], rendered)));
        }
        Ok::<_, RenderError>(share)
    };
    let shares = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Result<Vec<_>, RenderError>>()
    })?;
    let (mut ordered, mut needs) = (BTreeMap::new(), BTreeSet::new());
    for (differences, asked) in shares {
        ordered.extend(differences);
        needs.extend(asked);
    }
    Ok(Comparison { differences: ordered.into_values().collect(), needs })
}

/// Compares the results for one object before and after a change. `None` means that no policy answers.
pub fn difference(object: &Value, [before, after]: [Option<&Rendered>; 2]) -> Difference {
    let planned = |rendered: Option<&Rendered>| -> Option<BTreeMap<Reference, Value>> {
        let manifests = &rendered?.planned()?.manifests;
        Some(manifests.iter().map(|manifest| (Reference::of_object(manifest), manifest.clone())).collect())
    };
    let old = planned(before).unwrap_or_default();
    let children = match planned(after) {
        Some(new) => children(&old, &new),
        // Without a plan, the operator does not change existing children.
        None => Vec::new(),
    };
    let [before, after] = [before, after].map(|rendered| rendered.map(Side::of));
    Difference { object: Reference::of_object(object), before, after, children, pods: old.values().map(pods).sum() }
}

fn children(old: &BTreeMap<Reference, Value>, new: &BTreeMap<Reference, Value>) -> Vec<Child> {
    let gone = old.keys().filter(|child| !new.contains_key(child));
    let gone = gone.map(|child| Child {
        child: child.clone(),
        change: Change::Removed,
        rolls: false,
        refused: None,
        manifest: None,
        pods: old.get(child).map_or(0, pods),
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
                (Change::Changed(fields), rolls, refused(before, manifest), if rolls { pods(before) } else { 0 })
            }
        };
        Some(Child { child: child.clone(), change, rolls, refused, manifest: Some(manifest.clone()), pods })
    });
    gone.chain(there).collect()
}
