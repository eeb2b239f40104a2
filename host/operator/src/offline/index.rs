//! Finds objects by type, namespace and name, or by label, without scanning all objects.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use kaos_policy::{contract::Target, render::ObjectRef, stamp::owners};
use serde_json::Value;

use crate::input::Document;

/// Group, kind and namespace. The namespace of cluster-scoped objects is empty.
type KindInNamespace = (String, String, String);

/// The positions of objects. Within one namespace, the positions are sorted by the names of the objects.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: HashMap<KindInNamespace, BTreeMap<String, usize>>,
    /// The positions of objects, by the kind, namespace and name of their owner.
    owned: HashMap<KindInNamespace, Vec<usize>>,
}

impl Index {
    pub(super) fn new(documents: &[Document]) -> Self {
        let mut index = Self::default();
        for (position, document) in documents.iter().enumerate() {
            let identity = &document.identity;
            let namespace = identity.namespace.clone().unwrap_or_default();
            let place = (identity.group.clone(), identity.kind.clone(), namespace);
            index.places.entry(place).or_default().insert(identity.name.clone(), position);
            for owner in owners(&document.object) {
                let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
                let namespace = identity.namespace.clone().unwrap_or_default();
                index.owned.entry((text("kind"), namespace, text("name"))).or_default().push(position);
            }
        }
        index
    }

    /// Returns the positions of the objects that an object owns.
    pub(super) fn owned_by(&self, owner: &ObjectRef) -> impl Iterator<Item = usize> {
        let owner = (owner.kind.clone(), owner.namespace.clone(), owner.name.clone());
        self.owned.get(&owner).into_iter().flatten().copied()
    }

    /// Returns the positions of the objects that a target refers to. Ignores the API version, because versions are only
    /// views of the same object.
    pub(super) fn find(&self, target: &Target, cluster_scoped: bool, objects: &[Arc<Value>]) -> Vec<usize> {
        let of = target.of();
        let namespace = target.namespace().filter(|_| !cluster_scoped).unwrap_or_default();
        let place = (of.group().to_owned(), of.kind.clone(), namespace.to_owned());
        let Some(names) = self.places.get(&place) else { return Vec::new() };
        match target {
            Target::Named(reference) => names.get(&reference.name).copied().into_iter().collect(),
            Target::Labelled(selector) => {
                let carries = |position: &usize| {
                    let labels = &objects[*position]["metadata"]["labels"];
                    selector.labels.iter().all(|(key, value)| labels[key.as_str()] == **value)
                };
                names.values().copied().filter(carries).collect()
            }
        }
    }
}
