//! Finds the renderer of each object in a fixed set of policies, without a cluster.

use std::{collections::BTreeMap, sync::Arc};

use kaos_policy::{
    contract::ResourceType,
    policy::Stack,
    render::Renderer,
    settings::{Layer, SettingsErrors},
};
use serde_json::Value;

use super::{Answering, At, Bound, Started};
use crate::catalogue::{Catalogue, Snapshot};

/// The policies that answer for a set of objects, bound to their settings.
pub struct Brought {
    snapshot: Arc<Snapshot>,
    bound: Bound,
}

impl Brought {
    /// Binds those policies of `stacks` that answer for `objects`. `layers` contains the settings.
    pub fn new<'a>(
        stacks: &BTreeMap<ResourceType, Stack>,
        layers: &[Layer],
        started: &Started,
        is_served: impl Fn(&ResourceType) -> bool,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<Self, SettingsErrors> {
        let snapshot = Catalogue::new(stacks, layers)?.load().unwrap_or_default();
        Self::of(snapshot, started, is_served, objects)
    }

    /// Binds those policies of `snapshot` that answer for `objects`.
    pub fn of<'a>(
        snapshot: Arc<Snapshot>,
        started: &Started,
        is_served: impl Fn(&ResourceType) -> bool,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<Self, SettingsErrors> {
        let mut bound = Bound::default();
        bound.bind(&snapshot, objects, started, is_served)?;
        Ok(Self { snapshot, bound })
    }

    /// Returns the kinds that policies answer for.
    pub fn kinds(&self) -> impl Iterator<Item = &ResourceType> {
        self.snapshot.kinds().map(|(of, _)| of)
    }
}

impl Answering for Brought {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        At { snapshot: &self.snapshot, bound: &self.bound, before: None }.bound_for(object)
    }

    fn left_as_is(&self, object: &Value) -> Option<String> {
        self.snapshot.answer_for(object).no_such_policy(object)
    }
}
