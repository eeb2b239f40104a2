//! The decisions for objects in files, without a cluster.
//!
//! What the files hold is what the cluster holds. Objects that a policy claims are rendered; one that carries no
//! status is seen by others with the status that the operator would first write. That status is found by
//! rendering the object, so everything is rendered when it is first needed, and remembered. A look-up never renders:
//! what it misses is rendered after the pass, and the pass is made again. So one sandbox is open at a time, however
//! long the chain of objects that need each other is.

mod answering;
mod bound;
mod brought;
mod index;
mod status;
mod stored;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, sync::Arc};

use kaos_policy::{
    contract::{Note, Outcome, Refusal, ResourceType, Severity, Target, Violation},
    lookup::{Fixed, Lookup, Sighting},
    render::{Planned, RenderError, Rendered, Renderer, Verdict},
};
use serde_json::Value;

use crate::input::is_cluster_scoped;
pub use answering::Answering;
pub use bound::Started;
pub(crate) use bound::{At, Bound, answer, named_in_vain, renderer};
pub use brought::Brought;
pub use stored::Stored;

/// One object and what came of it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What was decided.
    pub rendered: Rendered,
    /// How far the operator would have come with it.
    pub outcome: Outcome,
    /// The status that the operator would write.
    pub status: Value,
}

/// Objects from files and the policies that answer for them.
pub struct World<'a> {
    stored: &'a Stored,
    answering: &'a dyn Answering,
    hidden: &'a dyn Fn(&ResourceType) -> Option<Sighting>,
    memory: RefCell<Vec<Memory>>,
    pass: RefCell<Pass>,
}

/// What is known of one object.
#[derive(Default)]
struct Memory {
    /// A pass of it was made, and its status is not known yet.
    underway: bool,
    /// With its status, as others see it.
    seen: Option<Arc<Value>>,
    entry: Option<Arc<Entry>>,
}

/// What a pass over one object looked at before that had its status.
#[derive(Default)]
struct Pass {
    /// Objects to render first, and then this one again.
    wanted: Vec<usize>,
    /// Whether it saw an object that itself waits for this one.
    in_circle: bool,
}

impl<'a> World<'a> {
    /// A cluster that holds this and nothing else, and shows every type but those that are `hidden`.
    pub fn new(
        stored: &'a Stored,
        answering: &'a dyn Answering,
        hidden: &'a dyn Fn(&ResourceType) -> Option<Sighting>,
    ) -> Self {
        Self {
            stored,
            answering,
            hidden,
            memory: RefCell::new(stored.objects.iter().map(|_| Memory::default()).collect()),
            pass: RefCell::default(),
        }
    }

    /// What comes of the object at a position; none if no policy claims it.
    pub fn entry(&self, position: usize) -> Option<Result<Arc<Entry>, RenderError>> {
        let renderer = self.renderer(position)?;
        let known = self.memory.borrow()[position].entry.clone();
        Some(known.map_or_else(|| self.make(position, renderer), Ok))
    }

    /// Renders an object, and before it those whose status it needs.
    fn make(&self, position: usize, renderer: &Renderer) -> Result<Arc<Entry>, RenderError> {
        // What has to be rendered before the object, each behind what needs it.
        let mut before: Vec<(usize, &Renderer)> = Vec::new();
        loop {
            let outermost = before.is_empty();
            let (top, renderer) = before.last().copied().unwrap_or((position, renderer));
            if !outermost && self.memory.borrow()[top].seen.is_some() {
                // Several wanted it.
                before.pop();
                continue;
            }
            self.pass.take();
            self.memory.borrow_mut()[top].underway = true;
            let entry = self.decide(top, renderer).map(Arc::new);
            let Pass { wanted, in_circle } = self.pass.take();
            if entry.is_ok() && !wanted.is_empty() {
                let renderer = |position: usize| Some((position, self.renderer(position)?));
                // The first that it named comes first.
                before.extend(wanted.into_iter().rev().filter_map(renderer));
                continue;
            }
            self.remember(top, entry.as_ref().ok(), outermost || !in_circle);
            if outermost {
                return entry;
            }
            // What is wrong with another object is told when it is its turn.
            before.pop();
        }
    }

    /// Keeps what came of an object. In a circle nobody has a status first: what came of the others on the way is good
    /// enough to be their status, as it is in a cluster, but not final; it is made again when it is their turn.
    fn remember(&self, position: usize, entry: Option<&Arc<Entry>>, is_final: bool) {
        let object = &self.stored.objects[position];
        let memory = &mut self.memory.borrow_mut()[position];
        memory.underway = false;
        memory.seen.get_or_insert_with(|| {
            entry.map_or_else(|| Arc::clone(object), |entry| with_status(object, &entry.status))
        });
        if is_final {
            memory.entry = entry.cloned();
        }
    }

    fn renderer(&self, position: usize) -> Option<&'a Renderer> {
        self.answering.renderer(&self.stored.objects[position])
    }

    fn decide(&self, position: usize, renderer: &Renderer) -> Result<Entry, RenderError> {
        let object = &self.stored.objects[position];
        let mut rendered = renderer.render(object, self)?;
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return Ok(going(rendered, object));
        }
        let left_as_is = self.answering.left_as_is(object);
        let (outcome, status) = status::first(renderer, &rendered, object, (self.stored, self), left_as_is.as_deref());
        if let (Verdict::Planned(_), Some(message)) = (&rendered.verdict, left_as_is) {
            // Nothing of the plan is applied.
            let violation = Violation { path: "metadata.annotations".to_owned(), message };
            rendered.verdict = Verdict::Refused(Refusal::Invalid(vec![violation]));
        }
        Ok(Entry { rendered, outcome, status })
    }

    /// An object as others see it. Without its status if that is not known yet; then the pass is told so.
    fn seen(&self, position: usize) -> Arc<Value> {
        let object = &self.stored.objects[position];
        if !object["status"].is_null() || self.renderer(position).is_none() {
            return Arc::clone(object);
        }
        let memory = &self.memory.borrow()[position];
        if let Some(seen) = &memory.seen {
            return Arc::clone(seen);
        }
        let mut pass = self.pass.borrow_mut();
        if memory.underway {
            pass.in_circle = true;
        } else {
            pass.wanted.push(position);
        }
        Arc::clone(object)
    }
}

impl Lookup for World<'_> {
    fn look_up(&self, target: &Target) -> Sighting {
        let of = target.of();
        if let Some(sighting) = (self.hidden)(&of) {
            return sighting;
        }
        let positions = self.stored.index.find(target, self.is_cluster_scoped(&of), &self.stored.objects);
        if of.is_secret() {
            let secrets = positions.into_iter().map(|position| self.stored.objects[position].as_ref().clone());
            return Fixed::new(secrets).look_up(target);
        }
        Sighting::Objects(positions.into_iter().map(|position| self.seen(position)).collect())
    }

    fn is_cluster_scoped(&self, of: &ResourceType) -> bool {
        is_cluster_scoped(of.group(), &of.kind)
    }
}

/// What comes of an object that is being deleted: nothing new, and its status stays as it is.
fn going(mut rendered: Rendered, object: &Value) -> Entry {
    let note = Note {
        severity: Severity::Info,
        reason: "BeingDeleted".to_owned(),
        message: "it is being deleted: the operator cleans up after it, and makes nothing for it any more".to_owned(),
        path: Some("metadata.deletionTimestamp".to_owned()),
    };
    rendered.verdict = Verdict::Planned(Arc::new(Planned { notes: vec![note], ..Planned::default() }));
    Entry { rendered, outcome: Outcome::Applied, status: object["status"].clone() }
}

fn with_status(object: &Value, status: &Value) -> Arc<Value> {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("status".to_owned(), status.clone());
    }
    Arc::new(object)
}
