//! What is in force, and what would be.

use std::{collections::HashMap, sync::Arc};

use kaos_policy::{
    contract::{Cluster, ResourceType},
    manifest::Scope,
    memo::Memo,
    render::Renderer,
    settings::{Layer, Origin as Given},
};
use serde_json::Value;

use super::super::{settings, shipment::Ready};
use crate::{
    offline::{self, Answering},
    policies::{Loaded, Origin, select},
};

/// Bytes of answers that are remembered: what many objects need is decided once on each side.
const MEMORY: usize = 256 << 20;

/// The annotation in which an object names the policy that is to answer for it.
const PIN: &str = "kaos.tools/policy";

/// What is in force, and what would be.
pub(super) struct Sides {
    pub(super) before: Before,
    pub(super) after: After,
}

/// What is in force.
pub(super) struct Before(Arc<HashMap<ResourceType, Renderer>>);

/// What would be in force: something else, but only where it holds.
pub(super) struct After {
    elsewhere: Arc<HashMap<ResourceType, Renderer>>,
    here: HashMap<ResourceType, Renderer>,
    scope: Scope,
    /// The policy's name, and the kinds that are answered for in another way.
    name: String,
    concerned: Vec<ResourceType>,
}

impl Sides {
    /// What these policies come to without and with what is shipped.
    pub(super) fn of(in_force: Vec<Loaded>, ready: Ready, cluster: &Cluster) -> anyhow::Result<Self> {
        let Ready { file, policy, .. } = ready;
        let before = Arc::new(renderers(&in_force, Vec::new(), cluster)?);
        let name = file.name.clone().unwrap_or_default();
        let (mut policies, mut layers) = (in_force, Vec::new());
        if let Some(new) = policy {
            policies.retain(|old| !gives_way(old, &new));
            policies.push(new);
        } else {
            layers.push(Layer::tree(Given::ClusterPolicy(name.clone()), &name, file.settings));
        }
        let here = renderers(&policies, layers, cluster)?;
        // Whose stack is without the policy is answered for as before.
        let concerned = here
            .iter()
            .filter(|(_, renderer)| renderer.layers().any(|(policy, _)| policy.id().name == name))
            .map(|(of, _)| of.clone())
            .collect();
        let after = After { elsewhere: Arc::clone(&before), here, scope: file.scope, name, concerned };
        Ok(Self { before: Before(before), after })
    }

    /// Every claimed kind.
    pub(super) fn claimed(&self) -> Vec<&ResourceType> {
        self.after.here.keys().chain(self.before.0.keys()).collect()
    }

    /// Whether something answers for an object, on either side.
    pub(super) fn claims(&self, object: &Value) -> bool {
        self.before.renderer(object).is_some() || self.after.renderer(object).is_some()
    }
}

/// Whether a policy goes when another one comes: it came from outside, too, and has the same name or claims the same.
fn gives_way(old: &Loaded, new: &Loaded) -> bool {
    let kinds = |loaded: &Loaded| -> Vec<ResourceType> {
        loaded.policy.descriptor().claims.iter().map(|claim| claim.primary.clone()).collect()
    };
    let same = old.policy.id().name == new.policy.id().name
        || (old.policy.world() == new.policy.world() && kinds(old).iter().any(|of| kinds(new).contains(of)));
    old.origin != Origin::Embedded && same
}

fn renderers(
    policies: &[Loaded],
    more: Vec<Layer>,
    cluster: &Cluster,
) -> anyhow::Result<HashMap<ResourceType, Renderer>> {
    let mut layers = settings::layers(policies, None, &[])?;
    layers.extend(more);
    let memo = Arc::new(Memo::new(MEMORY));
    let renderers = offline::renderers(&select(policies)?, &layers, cluster, |_| true)?;
    Ok(renderers.into_iter().map(|(of, renderer)| (of, renderer.with_memo(Arc::clone(&memo)))).collect())
}

impl Answering for Before {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        self.0.renderer(object)
    }
}

impl Answering for After {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        let of = ResourceType::of_object(object);
        let Scope { namespaces, pinned } = &self.scope;
        let metadata = &object["metadata"];
        let holds = namespaces.is_empty() || namespaces.iter().any(|name| metadata["namespace"] == **name);
        let named = !pinned || metadata["annotations"][PIN] == *self.name;
        let here = holds && named && self.concerned.contains(&of);
        if here { self.here.get(&of) } else { self.elsewhere.get(&of) }
    }
}
