//! The decisions for objects in files, without a cluster.
//!
//! What the files hold is what the cluster holds. Objects that a policy claims are rendered; one that carries no
//! status is seen by others with the status that the operator would first write. That status is found by
//! rendering the object, so everything is rendered when it is first needed, and remembered.

mod index;
mod status;
#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
};

use kaos_policy::{
    contract::{Outcome, Reference, ResourceType, Target},
    lookup::{Fixed, Lookup, Sighting},
    render::{ObjectRef, RenderError, Rendered, Renderer},
};
use serde_json::Value;

use crate::input::{Document, is_cluster_scoped};
use index::Index;

/// Chains of objects that need each other's status are followed this far; beyond it, an object is seen without one.
/// The stack of the thread must have room for it: see [`STACK`].
const DEEPEST: usize = 2_000;

/// Bytes of stack that a thread needs for the longest chain. Only what is used of it becomes memory.
pub const STACK: usize = 1 << 30;

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
    objects: Vec<Arc<Value>>,
    index: Index,
    renderers: &'a HashMap<ResourceType, Renderer>,
    unserved: &'a dyn Fn(&ResourceType) -> bool,
    memory: RefCell<Vec<Memory>>,
    /// How many objects are being rendered, one because of the other.
    depth: Cell<usize>,
    /// Whether the object that is being rendered saw another before that had its status.
    cut: Cell<bool>,
}

/// What is known of one object.
#[derive(Default)]
struct Memory {
    underway: bool,
    /// With its status, as others see it.
    seen: Option<Arc<Value>>,
    entry: Option<Arc<Entry>>,
}

impl<'a> World<'a> {
    /// A cluster that holds these objects and nothing else, and serves every type but those.
    pub fn new(
        documents: &[Document],
        renderers: &'a HashMap<ResourceType, Renderer>,
        unserved: &'a dyn Fn(&ResourceType) -> bool,
    ) -> Self {
        Self {
            objects: documents.iter().map(|document| Arc::new(document.object.clone())).collect(),
            index: Index::new(documents),
            renderers,
            unserved,
            memory: RefCell::new(documents.iter().map(|_| Memory::default()).collect()),
            depth: Cell::new(0),
            cut: Cell::new(false),
        }
    }

    /// What comes of the object at a position; none if no policy claims it.
    pub fn entry(&self, position: usize) -> Option<Result<Arc<Entry>, RenderError>> {
        let renderer = self.renderers.get(&type_of(&self.objects[position]))?;
        let known = self.memory.borrow()[position].entry.clone();
        Some(known.map_or_else(|| self.make(position, renderer), Ok))
    }

    fn make(&self, position: usize, renderer: &Renderer) -> Result<Arc<Entry>, RenderError> {
        let cut_outside = self.cut.replace(false);
        self.memory.borrow_mut()[position].underway = true;
        self.depth.set(self.depth.get() + 1);
        let entry = self.decide(position, renderer).map(Arc::new);
        self.depth.set(self.depth.get() - 1);
        let outermost = self.depth.get() == 0;
        let cut = self.cut.replace(cut_outside);
        if cut && !outermost {
            self.cut.set(true);
        }
        let mut memory = self.memory.borrow_mut();
        let memory = &mut memory[position];
        memory.underway = false;
        if let Ok(entry) = &entry {
            // In a circle nobody has a status first. What came of the others on the way is good enough to be their
            // status, as it is in a cluster; what came of them is made again when it is their turn.
            if !cut || outermost {
                memory.entry = Some(Arc::clone(entry));
            }
            memory.seen.get_or_insert_with(|| with_status(&self.objects[position], &entry.status));
        }
        entry
    }

    fn decide(&self, position: usize, renderer: &Renderer) -> Result<Entry, RenderError> {
        let object = &self.objects[position];
        let rendered = renderer.render(object, self)?;
        let (outcome, status) = status::first(renderer, &rendered, object, self);
        Ok(Entry { rendered, outcome, status })
    }

    /// The object that a reference means, as it stands in the files.
    fn stored(&self, reference: &Reference) -> Option<&Value> {
        let target = Target::Named(reference.clone());
        let positions = self.index.find(&target, self.is_cluster_scoped(&reference.of()), &self.objects);
        positions.first().map(|position| &*self.objects[*position])
    }

    /// What an object owns, as it stands in the files.
    fn owned_by(&self, owner: &ObjectRef) -> impl Iterator<Item = &Value> {
        self.index.owned_by(owner).map(|position| &*self.objects[position])
    }

    /// An object as others see it.
    fn seen(&self, position: usize) -> Arc<Value> {
        let object = &self.objects[position];
        if !object["status"].is_null() {
            return Arc::clone(object);
        }
        let Some(renderer) = self.renderers.get(&type_of(object)) else { return Arc::clone(object) };
        let (seen, underway) = {
            let memory = &self.memory.borrow()[position];
            (memory.seen.clone(), memory.underway)
        };
        if let Some(seen) = seen {
            return seen;
        }
        if underway || self.depth.get() >= DEEPEST {
            self.cut.set(true);
            return Arc::clone(object);
        }
        // What is wrong with that object is told when it is its turn.
        let _ = self.make(position, renderer);
        self.memory.borrow()[position].seen.clone().unwrap_or_else(|| Arc::clone(object))
    }
}

impl Lookup for World<'_> {
    fn look_up(&self, target: &Target) -> Sighting {
        let of = target.of();
        if (self.unserved)(&of) {
            return Sighting::Unserved;
        }
        let positions = self.index.find(target, self.is_cluster_scoped(&of), &self.objects);
        if of.is_secret() {
            let secrets = positions.into_iter().map(|position| self.objects[position].as_ref().clone());
            return Fixed::new(secrets).look_up(target);
        }
        Sighting::Objects(positions.into_iter().map(|position| self.seen(position)).collect())
    }

    fn is_cluster_scoped(&self, of: &ResourceType) -> bool {
        is_cluster_scoped(of.group(), &of.kind)
    }
}

fn with_status(object: &Value, status: &Value) -> Arc<Value> {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("status".to_owned(), status.clone());
    }
    Arc::new(object)
}

/// The type that an object says it is of.
pub fn type_of(object: &Value) -> ResourceType {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ResourceType::new(text(&object["apiVersion"]), text(&object["kind"]))
}
