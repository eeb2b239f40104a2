//! Renders objects from files without a cluster.
//!
//! The files represent the cluster. This module renders the objects that a policy claims. If a claimed object has no
//! status, the policies of other objects see the status that the operator would first write.
//!
//! To get a missing status, the module must render the object. A lookup during a pass does not render, but records the
//! objects whose status is missing. After the pass, the module renders these objects, remembers the results, and runs
//! the pass again. So only one sandbox is open at a time, even for a long chain of needs.

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

use crate::status::is_unwritten;
pub use answering::Answering;
pub use bound::Started;
pub(crate) use bound::{At, Bound, answer, answer_after, is_same, named_in_vain, renderer};
pub use brought::Brought;
pub use stored::StoredObjects;

/// The result of rendering one object.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The answer of the policies.
    pub rendered: Rendered,
    /// The outcome that the operator's pass over the object would have.
    pub outcome: Outcome,
    /// The status that the operator would write.
    pub status: Value,
}

/// Objects from files, and the policies that answer for them.
pub struct World<'a> {
    stored: &'a StoredObjects,
    answering: &'a dyn Answering,
    hidden: &'a dyn Fn(&ResourceType) -> Option<Sighting>,
    memory: RefCell<Vec<ResultsSoFar>>,
    pass: RefCell<PassOverAll>,
}

/// The results so far for one object.
#[derive(Default)]
struct ResultsSoFar {
    /// Whether the module has started to render the object, and has no result yet.
    underway: bool,
    /// The object with its status, as the policies of other objects see it.
    seen: Option<Arc<Value>>,
    entry: Option<Arc<Entry>>,
}

/// The objects that the current pass looked up, and whose status the module does not know yet.
#[derive(Default)]
struct PassOverAll {
    /// The positions of objects to render before the object of this pass.
    wanted: Vec<usize>,
    /// Whether the pass looked up an object that itself needs the status of the object of this pass.
    in_circle: bool,
}

impl<'a> World<'a> {
    /// Creates a cluster that contains only the objects in `stored`. If `hidden` returns a lookup result for a type,
    /// passes get this result instead of the objects.
    pub fn new(
        stored: &'a StoredObjects,
        answering: &'a dyn Answering,
        hidden: &'a dyn Fn(&ResourceType) -> Option<Sighting>,
    ) -> Self {
        Self {
            stored,
            answering,
            hidden,
            memory: RefCell::new(stored.objects.iter().map(|_| ResultsSoFar::default()).collect()),
            pass: RefCell::default(),
        }
    }

    /// Returns the result for the object at a position in `stored`. Returns `None` if no policy claims the object.
    pub fn entry(&self, position: usize) -> Option<Result<Arc<Entry>, RenderError>> {
        let renderer = self.renderer(position)?;
        let known = self.memory.borrow()[position].entry.clone();
        Some(known.map_or_else(|| self.make(position, renderer), Ok))
    }

    /// Renders an object. First renders the objects whose status this object needs.
    fn make(&self, position: usize, renderer: &Renderer) -> Result<Arc<Entry>, RenderError> {
        // A stack of objects to render before this object. On the stack, each object is above the object that needs it.
        let mut before: Vec<(usize, &Renderer)> = Vec::new();
        loop {
            let outermost = before.is_empty();
            let (top, renderer) = before.last().copied().unwrap_or((position, renderer));
            if !outermost && self.memory.borrow()[top].seen.is_some() {
                // Several objects need the object `top`, so it is on the stack several times. The module has already
                // rendered it.
                before.pop();
                continue;
            }
            self.pass.take();
            self.memory.borrow_mut()[top].underway = true;
            let entry = self.decide(top, renderer).map(Arc::new);
            let PassOverAll { wanted, in_circle } = self.pass.take();
            if entry.is_ok() && !wanted.is_empty() {
                let renderer = |position: usize| Some((position, self.renderer(position)?));
                // Put the objects on the stack in reverse order, so that the first of them is rendered first.
                before.extend(wanted.into_iter().rev().filter_map(renderer));
                continue;
            }
            self.remember(top, entry.as_ref().ok(), outermost || !in_circle);
            if outermost {
                return entry;
            }
            // Ignore an error in another object here: `entry` reports the error when the caller requests that object.
            before.pop();
        }
    }

    /// Remembers the result for an object. If objects need each other in a circle, the module renders one of them while
    /// another has no status yet, as in a cluster. Such a result is preliminary: other objects see its status, but when
    /// the caller requests the result, the module renders the object again.
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
            // Report a refusal, because the operator would apply nothing of the plan.
            let violation = Violation { path: "metadata.annotations".to_owned(), message };
            rendered.verdict = Verdict::Refused(Refusal::Invalid(vec![violation]));
        }
        Ok(Entry { rendered, outcome, status })
    }

    /// Returns an object as the policies of other objects see it. If the object's status is not known yet, returns the
    /// object without a status, and records that the status is missing.
    fn seen(&self, position: usize) -> Arc<Value> {
        let object = &self.stored.objects[position];
        if !is_unwritten(&object["status"]) || self.renderer(position).is_none() {
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
        self.stored.is_cluster_scoped(of)
    }
}

/// Returns the result for an object that is being deleted: no children, and the existing status.
fn going(mut rendered: Rendered, object: &Value) -> Entry {
    let note = Note {
        severity: Severity::Info,
        reason: "BeingDeleted".to_owned(),
        message: "the object is being deleted: the operator deletes its children, and applies no children any more"
            .to_owned(),
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
