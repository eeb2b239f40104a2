//! The definitions of the kinds that tests use.

use std::sync::OnceLock;

use anyhow::Result;
use serde_json::{Value, json};

use super::World;
use super::read::condition;
use super::samples;

/// The API group of CustomResourceDefinitions.
const DEFINING: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

/// Returns the definitions of all KAOS kinds and of the test kinds.
pub fn definitions() -> Result<Vec<Value>> {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let texts = kaos_crds::manifests::ALL.iter().copied().chain([crate::gadget::DEFINITION]);
    let read = texts.map(|text| Ok(serde_saphyr::from_str(text)?)).collect::<Result<Vec<_>>>()?;
    Ok(READ.get_or_init(|| read).clone())
}

/// Returns a definition of `HTTPRoutes`, with only the parts of the Gateway API's definition that the tests need.
pub fn routes() -> Value {
    let mut routes = samples::definition("gateway.networking.k8s.io", "httproutes", "HTTPRoute");
    let approved = "https://github.com/kubernetes-sigs/gateway-api/pull/2466";
    routes["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": approved});
    routes
}

/// Returns a definition of SecurityPolicies, with only the parts of Envoy Gateway's definition that the tests need.
pub fn gateway_policies() -> Value {
    let mut policies = samples::definition("gateway.envoyproxy.io", "securitypolicies", "SecurityPolicy");
    policies["spec"]["versions"][0]["name"] = json!("v1alpha1");
    policies
}

/// Returns a definition of NetworkPolicies for the embedded cluster. In a real cluster, this type is built in.
pub fn network_policies() -> Value {
    let mut policies = samples::definition("networking.k8s.io", "networkpolicies", "NetworkPolicy");
    policies["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for tests"});
    policies
}

impl World {
    /// Installs the definitions, and waits until the API server serves them.
    pub async fn install_definitions(&self, gateway: bool) -> Result<()> {
        let mut all = definitions()?;
        if gateway {
            all.push(routes());
        }
        for definition in &all {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            match self.try_embedded() {
                // Write large definitions directly into the cluster, because every test installs them and a request
                // takes longer.
                Some(cluster) if cluster.object(DEFINING, DEFINITIONS, "", name).is_none() => {
                    let mut definition = definition.clone();
                    // Set the generation like the API server. If a definition has no generation, the operator rereads
                    // this definition after every change.
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
