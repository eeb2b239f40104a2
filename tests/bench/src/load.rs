//! The objects of the load. All Agents share the first `ModelAPI`. No ModelAPI and no MCPServer refers to another
//! object.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use fastrand::Rng;
use kaos_tests::harness::samples::{self, agent, mcp_server, model_api_for};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The size of the load.
#[derive(Debug, Clone, Args)]
pub(crate) struct Load {
    /// Agents, all on one ModelAPI
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub(crate) agents: usize,
    #[arg(
        long,
        help = "ModelAPIs, including the one that all Agents share",
        value_name = "NUMBER",
        default_value_t = 300
    )]
    pub(crate) modelapis: usize,
    #[arg(long, help = "MCPServers", value_name = "NUMBER", default_value_t = 300)]
    pub(crate) mcpservers: usize,
    #[arg(
        long,
        help = "MemoryStores with a volume, all on the ModelAPI of the Agents",
        value_name = "NUMBER",
        default_value_t = 0
    )]
    pub(crate) memorystores: usize,
    /// Seed for the texts in the objects
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// The name of the ModelAPI that all Agents use.
pub(crate) const SHARED: &str = "shared";
/// The model that the Agents use.
const MODEL: &str = "gpt-4o";
/// The number of clients that create objects at the same time.
const HANDS: usize = 8;
const KINDS: [&str; 4] = ["ModelAPI", "MCPServer", "MemoryStore", "Agent"];

impl Load {
    /// Returns whether this load has the size for which the upper bounds of figures apply.
    pub(crate) fn is_full(&self) -> bool {
        (self.modelapis, self.mcpservers, self.memorystores, self.agents) == (300, 300, 0, 1000)
    }

    /// Returns the number of objects.
    pub(crate) fn count(&self) -> usize {
        self.agents + self.modelapis + self.mcpservers + self.memorystores
    }

    /// Returns the objects. Each object comes before the objects that refer to it.
    fn objects(&self) -> Vec<Value> {
        let mut rng = Rng::with_seed(self.seed);
        let mut objects = vec![model_api_for(SHARED, &[MODEL])];
        objects.extend((1..self.modelapis).map(|number| {
            let models = [MODEL, "gpt-4o-mini", "o3"];
            model_api_for(&format!("model-{number}"), &models[..rng.usize(1..=models.len())])
        }));
        objects.extend((0..self.mcpservers).map(|number| {
            let mut server = mcp_server(&format!("tools-{number}"));
            let name = word(&mut rng);
            server["spec"]["params"] = json!(format!("def {name}(text: str) -> str:\n    return text\n"));
            server
        }));
        objects.extend((0..self.memorystores).map(|number| memory_store(&format!("store-{number}"))));
        objects.extend((0..self.agents).map(|number| {
            let words: Vec<String> = (0..rng.usize(5..40)).map(|_| word(&mut rng)).collect();
            let config = json!({"description": format!("Agent {number}"), "instructions": words.join(" ")});
            agent(&format!("agent-{number}"), SHARED, &json!({"waitForDependencies": false, "config": config}))
        }));
        objects
    }

    /// Creates the objects in a namespace. `MemoryStores` wait until their ModelAPI is ready. The control plane runs no
    /// pods. So for a load with `MemoryStores`, the bench itself reports the ModelAPI's pod as ready.
    pub(crate) async fn put(&self, client: &Client, namespace: &str) -> Result<()> {
        let objects = Arc::new(self.objects());
        let serves = async {
            if self.memorystores > 0 { serve(client, namespace, &format!("modelapi-{SHARED}")).await } else { Ok(()) }
        };
        tokio::try_join!(create(client, namespace, objects), serves)?;
        Ok(())
    }
}

/// Reports the pod of a Deployment as ready, as soon as the Deployment exists.
async fn serve(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let deployments = api(client, "Deployment", namespace);
    while deployments.get_opt(name).await?.is_none() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let status = json!({"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
        "availableReplicas": 1}});
    deployments.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

/// Creates objects with several clients at the same time.
async fn create(client: &Client, namespace: &str, objects: Arc<Vec<Value>>) -> Result<()> {
    let mut hands = JoinSet::new();
    for hand in 0..HANDS {
        let (client, namespace, objects) = (client.clone(), namespace.to_owned(), Arc::clone(&objects));
        hands.spawn(async move {
            for object in objects.iter().skip(hand).step_by(HANDS) {
                let api = api(&client, object["kind"].as_str().unwrap_or_default(), &namespace);
                let object: DynamicObject = serde_json::from_value(object.clone())?;
                api.create(&PostParams::default(), &object).await.context("an object of the load is refused")?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(hand) = hands.join_next().await {
        hand??;
    }
    Ok(())
}

fn word(rng: &mut Rng) -> String {
    (0..rng.usize(3..9)).map(|_| rng.lowercase()).collect()
}

/// Returns a MemoryStore with models that the shared ModelAPI offers.
fn memory_store(name: &str) -> Value {
    let mut store = samples::memory_store(name, SHARED);
    for of in ["summarization", "embedding"] {
        store["spec"]["models"][of]["model"] = json!(MODEL);
    }
    store
}

/// Checks that every object has a Deployment and a status.
pub(crate) async fn check(client: &Client, namespace: &str, load: &Load) -> Result<()> {
    let deployments = api(client, "Deployment", namespace).list(&ListParams::default()).await?.items.len();
    anyhow::ensure!(deployments == load.count(), "there are {deployments} Deployments for {} objects", load.count());
    for kind in KINDS {
        let objects = api(client, kind, namespace).list(&ListParams::default()).await?.items;
        let untold = objects.iter().filter(|object| !object.data["status"]["phase"].is_string()).count();
        anyhow::ensure!(untold == 0, "{untold} of {} {kind}s have no phase in their status", objects.len());
    }
    Ok(())
}

/// Changes the spec of an object like a user.
pub(crate) async fn change(client: &Client, namespace: &str, kind: &str, name: &str, spec: &Value) -> Result<()> {
    let patch = json!({"spec": spec});
    api(client, kind, namespace)
        .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .with_context(|| format!("{kind} {name}"))?;
    Ok(())
}

/// Returns a different list of models for the shared ModelAPI. The list still contains the Agents' model.
pub(crate) fn other_models() -> Value {
    json!({"proxyConfig": {"models": [MODEL, "gpt-4o-mini"]}})
}

/// Returns a different mode for the shared ModelAPI. In this mode, the ModelAPI still offers the Agents' model.
pub(crate) fn other_mode() -> Value {
    json!({"mode": "Hosted", "hostedConfig": {"model": MODEL}, "proxyConfig": null})
}

/// Deletes the objects while the operator runs.
pub(crate) async fn take_away(client: &Client, namespace: &str) -> Result<()> {
    for kind in KINDS.into_iter().rev() {
        let api = api(client, kind, namespace);
        api.delete_collection(&kube::api::DeleteParams::default(), &ListParams::default()).await?;
        while !api.list(&ListParams::default().limit(1)).await?.items.is_empty() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    Ok(())
}

/// Returns the API for objects of a kind in a namespace.
pub(crate) fn api(client: &Client, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let of = match kind {
        "Deployment" => GroupVersionKind::gvk("apps", "v1", kind),
        "Namespace" => GroupVersionKind::gvk("", "v1", kind),
        _ => GroupVersionKind::gvk("kaos.tools", "v1alpha1", kind),
    };
    let mut resource = ApiResource::from_gvk(&of);
    if kind == "ModelAPI" {
        "modelapis".clone_into(&mut resource.plural);
    }
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}
