//! The served types: the built-in types, and the types that `CustomResourceDefinition`s add and remove.

mod builtin;
mod custom;
mod resource;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

pub(crate) use resource::{Column, Custom, Family, Resource, Scale};

use crate::storage::GroupResource;

/// The rank of a version.
type Priority = (u8, u64, u64);

/// Returns group and kind of each type that a cluster serves without a `CustomResourceDefinition`. The group is empty
/// for the core group.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    builtin::kinds()
}

/// All types that the cluster serves.
#[derive(Debug)]
pub(crate) struct Catalogue {
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// The generation of each `CustomResourceDefinition` whose types the cluster serves.
    generations: BTreeMap<String, i64>,
}

impl Catalogue {
    /// Returns a catalogue of the built-in types.
    pub(crate) fn new() -> Self {
        let key = |resource: &Resource| (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        let resources = builtin::RESOURCES.iter().map(|resource| (key(resource), Arc::clone(resource)));
        Self { generations: BTreeMap::new(), resources: resources.collect() }
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Returns a served version of the type with this group and plural, or `None` if the cluster does not serve the
    /// type.
    pub(crate) fn of_storage(&self, resource: &GroupResource) -> Option<&Arc<Resource>> {
        let from = (resource.group.clone(), String::new(), String::new());
        let in_group =
            self.resources.range(from..).map(|(_, found)| found).take_while(|found| found.group == resource.group);
        let mut versions = in_group.filter(|found| found.plural == resource.plural);
        let first = versions.next()?;
        let stored =
            |found: &Arc<Resource>| found.custom.as_ref().is_none_or(|custom| custom.storage_version == found.version);
        if stored(first) { Some(first) } else { versions.find(|found| stored(found)).or(Some(first)) }
    }

    /// Returns all types, sorted by group, version and plural.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Returns all groups with their versions, the preferred version first.
    pub(crate) fn groups(&self) -> BTreeMap<String, Vec<String>> {
        let mut groups: BTreeMap<String, Vec<(Priority, String)>> = BTreeMap::new();
        for resource in self.resources.values() {
            let versions = groups.entry(resource.group.clone()).or_default();
            if !versions.iter().any(|(_, version)| *version == resource.version) {
                versions.push((custom::priority(&resource.version), resource.version.clone()));
            }
        }
        groups
            .into_iter()
            .map(|(group, mut versions)| {
                versions.sort_by(|a, b| b.cmp(a));
                (group, versions.into_iter().map(|(_, version)| version).collect())
            })
            .collect()
    }

    /// Starts to serve the types of a `CustomResourceDefinition`. These types replace the types of the
    /// `CustomResourceDefinition`'s earlier generation.
    pub(crate) fn install(&mut self, definition: &Value, revision: u64) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let generation = definition["metadata"]["generation"].as_i64();
        if generation.is_some() && self.generations.get(name).copied() == generation {
            return;
        }
        self.uninstall(definition);
        self.generations.insert(name.to_owned(), generation.unwrap_or_default());
        for resource in custom::resources(definition, revision) {
            let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
            self.resources.insert(key, Arc::new(resource));
        }
    }

    /// Stops serving the types of a `CustomResourceDefinition`.
    pub(crate) fn uninstall(&mut self, definition: &Value) {
        let (group, plural) = (&definition["spec"]["group"], &definition["spec"]["names"]["plural"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.generations.remove(&format!("{}.{}", text(plural), text(group)));
        self.resources.retain(|_, resource| {
            resource.custom.is_none() || *group != *resource.group || *plural != *resource.plural
        });
    }
}
