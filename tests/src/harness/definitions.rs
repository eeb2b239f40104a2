//! The CustomResourceDefinitions of the kinds that tests use.

use std::sync::OnceLock;

use anyhow::Result;
use serde_json::{Value, json};

use super::World;
use super::read::condition;
use super::samples;

/// The API group of CustomResourceDefinitions.
const DEFINING: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

/// Returns the CustomResourceDefinitions of all KAOS kinds and of the test kinds.
pub fn definitions() -> Result<Vec<Value>> {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let texts = kaos_crds::manifests::ALL.iter().copied().chain([crate::gadget::DEFINITION]);
    let read = texts.map(|text| Ok(serde_saphyr::from_str(text)?)).collect::<Result<Vec<_>>>()?;
    Ok(READ.get_or_init(|| read).clone())
}

/// Returns a CustomResourceDefinition of `HTTPRoutes`, with only those parts of the original that the tests need.
pub fn routes() -> Value {
    let mut routes = samples::definition("gateway.networking.k8s.io", "httproutes", "HTTPRoute");
    let approved = "https://github.com/kubernetes-sigs/gateway-api/pull/2466";
    routes["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": approved});
    routes
}

/// Returns a CustomResourceDefinition of SecurityPolicies, with only those parts of the original that the tests need.
pub fn gateway_policies() -> Value {
    let mut policies = samples::definition("gateway.envoyproxy.io", "securitypolicies", "SecurityPolicy");
    policies["spec"]["versions"][0]["name"] = json!("v1alpha1");
    policies
}

/// Returns a CustomResourceDefinition of NetworkPolicies for the embedded cluster. A real cluster serves
/// NetworkPolicies without a definition.
pub fn network_policies() -> Value {
    let mut policies = samples::definition("networking.k8s.io", "networkpolicies", "NetworkPolicy");
    policies["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for tests"});
    policies
}

impl World {
    /// Installs the CustomResourceDefinitions, and waits until the API server serves their types.
    pub async fn install_definitions(&self, gateway: bool) -> Result<()> {
        let mut all = definitions()?;
        if gateway {
            all.push(routes());
        }
        for definition in &all {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            match self.try_embedded() {
                // Write each CustomResourceDefinition directly into the embedded cluster, because every test installs
                // all of them, and requests would take longer.
                Some(cluster) if cluster.object(DEFINING, DEFINITIONS, "", name).is_none() => {
                    let mut definition = definition.clone();
                    // Set the generation like the API server. Without a generation, the operator would reread the
                    // CustomResourceDefinition after every change.
                    definition["metadata"]["generation"] = json!(1);
                    drop(cluster.plant(DEFINING, DEFINITIONS, definition));
                }
                _ => drop(self.try_apply(definition).await?),
            }
            self.until("the definition is served", &format!("CustomResourceDefinition/{name}"), |crd| {
                condition(crd, "Established")["status"] == "True"
            })
            .await;
        }
        Ok(())
    }
}
