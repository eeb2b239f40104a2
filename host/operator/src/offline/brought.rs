//! The answers of an operator that has only the policies that it brought: its own catalogue, without a cluster.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    sync::Arc,
};

use kaos_policy::{
    contract::{Cluster, ResourceType},
    kubernetes::Checks,
    manifest::Privilege,
    policy::Stack,
    render::Renderer,
    settings::{Layer, SettingsErrors},
};
use serde_json::Value;

use super::Answering;
use crate::catalogue::{Catalogue, Kind, Snapshot};

/// The answers for some objects.
pub struct Brought {
    snapshot: Arc<Snapshot>,
    /// By the place in memory of what answers: objects have it in common.
    renderers: HashMap<usize, Renderer>,
}

impl Brought {
    /// The answers of these policies under these settings for `objects`. `grantable` are the privileges that installed
    /// settings may raise; all if none are listed.
    pub fn new<'a>(
        stacks: &BTreeMap<ResourceType, Stack>,
        layers: &[Layer],
        cluster: &Cluster,
        grantable: Option<&BTreeSet<Privilege>>,
        is_served: impl Fn(&ResourceType) -> bool,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<Self, SettingsErrors> {
        let catalogue = Catalogue::new(stacks, layers)?;
        let snapshot = catalogue.load().unwrap_or_default();
        let mut renderers = HashMap::new();
        for object in objects {
            let Some(kind) = snapshot.answer_for(object).kind() else { continue };
            if let Entry::Vacant(vacant) = renderers.entry(place(&kind)) {
                let renderer = kind.renderer(cluster, &is_served)?.with_grantable_privileges(grantable.cloned());
                vacant.insert(renderer.with_checks(Checks::Fields));
            }
        }
        Ok(Self { snapshot, renderers })
    }

    /// The kinds that policies answer for.
    pub fn kinds(&self) -> impl Iterator<Item = &ResourceType> {
        self.snapshot.kinds().map(|(of, _)| of)
    }
}

impl Answering for Brought {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        self.renderers.get(&place(&self.snapshot.answer_for(object).kind()?))
    }

    fn left_as_is(&self, object: &Value) -> Option<String> {
        self.snapshot.answer_for(object).no_such_policy(object)
    }
}

fn place(kind: &Arc<Kind>) -> usize {
    Arc::as_ptr(kind).addr()
}
