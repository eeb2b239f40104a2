//! Repeats a recorded pass: binds policies to the recorded settings, and answers their needs from the record.

use std::{cell::RefCell, collections::BTreeSet, sync::Arc};

use kaos_objects::Fields;
use serde_json::{Value, json};

use super::{
    AnsweredNeed, DecisionKey, PassInputs, RecordedAnswer, RenderError, Rendered, Renderer,
    binding::{Binding, Bound},
};
use crate::{
    contract::{Followed, ResourceType, Target},
    lookup::{Lookup, Sighting},
    policy::Policy,
    settings::Effective,
};

/// A view of the cluster that consists of the recorded answers of one pass.
struct RecordedLookup<'a> {
    inputs: &'a PassInputs,
    /// The targets that policies asked for and that the record lacks.
    unknown: RefCell<BTreeSet<Target>>,
}

/// The result of a repeated pass.
pub struct Repeated {
    /// The renderer that made the pass.
    pub renderer: Renderer,
    /// The result of the pass.
    pub rendered: Rendered,
    /// The targets that policies asked for and that the record lacks. With such targets, the result has no meaning,
    /// because a pass in the cluster would see other objects.
    pub unknown: BTreeSet<Target>,
}

impl PassInputs {
    /// Repeats the pass with these policies and settings, the lowest layer first. Without layers, returns `None`.
    pub fn repeat(&self, layers: Vec<(Arc<Policy>, Arc<Effective>)>) -> Option<Result<Repeated, RenderError>> {
        let mut bound = layers.into_iter().map(|(policy, settings)| Bound { policy, settings, observer: None });
        let base = bound.next()?;
        let renderer = Renderer(Binding {
            base,
            overlays: bound.collect(),
            cluster: self.cluster.clone(),
            user_privileges: self.user_privileges,
            grantable: self.grantable.clone(),
            checks: self.checks,
            memo: None,
            decision_key: DecisionKey::default(),
        });
        let lookup = RecordedLookup { inputs: self, unknown: RefCell::default() };
        let rendered = renderer.render(&self.whole_object(), &lookup);
        Some(rendered.map(|rendered| Repeated { renderer, rendered, unknown: lookup.unknown.into_inner() }))
    }

    /// Returns the recorded object.
    ///
    /// If the host ever applied a plan for this object, adds `status.appliedGeneration`, the only field of the status
    /// that a pass reads.
    fn whole_object(&self) -> Value {
        let mut object = self.object.clone();
        if let Some(fields) = object.as_object_mut().filter(|_| self.applied) {
            fields.insert("status".to_owned(), json!({"appliedGeneration": 1}));
        }
        object
    }
}

impl RecordedLookup<'_> {
    fn needs(&self) -> impl Iterator<Item = &AnsweredNeed> {
        self.inputs.layers.iter().flat_map(|layer| &layer.needs)
    }

    /// Returns the recorded answer for a target. If no answer has exactly these fields, selects them from an answer
    /// with more fields.
    fn recorded(&self, target: &Target, fields: &Fields) -> Option<Sighting> {
        let of_target = || {
            self.needs()
                .map(|it| (it, it.need.followed()))
                .filter(|(_, Followed { target: known, .. })| known == target)
        };
        let exact = of_target().find(|(_, followed)| followed.fields == *fields);
        let (AnsweredNeed { answer, .. }, followed) =
            exact.or_else(|| of_target().find(|(_, followed)| followed.fields.is_whole())).or_else(|| {
                of_target().find(|(it, followed)| covers(&followed.fields, fields) || !has_fields(&it.answer))
            })?;
        Some(match answer {
            RecordedAnswer::Objects(objects) if followed.fields == *fields => {
                Sighting::Objects(objects.iter().cloned().map(Arc::new).collect())
            }
            RecordedAnswer::Objects(objects) => {
                Sighting::Objects(objects.iter().map(|object| Arc::new(fields.of(object))).collect())
            }
            RecordedAnswer::Secret(facts) => Sighting::Secret(facts.clone()),
            RecordedAnswer::Unserved => Sighting::Unserved,
            RecordedAnswer::Forbidden(reason) => Sighting::Forbidden(reason.clone()),
        })
    }
}

/// Returns whether a recorded selection contains all of the wanted paths.
fn covers(recorded: &Fields, wanted: &Fields) -> bool {
    let is_below = |path: &str, above: &str| {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let is_recorded = |path: &String| recorded.paths().iter().any(|above| is_below(path, above));
    !wanted.is_whole() && wanted.paths().iter().all(is_recorded)
}

/// Returns whether an answer contains objects, of which a need can select fields.
fn has_fields(answer: &RecordedAnswer) -> bool {
    matches!(answer, RecordedAnswer::Objects(objects) if !objects.is_empty())
}

impl Lookup for RecordedLookup<'_> {
    fn look_up(&self, target: &Target) -> Sighting {
        self.look_up_fields(target, &Fields::whole(), &mut 0)
    }

    fn look_up_fields(&self, target: &Target, fields: &Fields, _: &mut usize) -> Sighting {
        self.recorded(target, fields).unwrap_or_else(|| {
            self.unknown.borrow_mut().insert(target.clone());
            Sighting::Objects(Vec::new())
        })
    }

    fn is_cluster_scoped(&self, of: &ResourceType) -> bool {
        self.needs().any(|it| it.cluster_scoped && it.need.target.of() == *of)
    }
}
