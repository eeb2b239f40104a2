//! What of a status the kind's schema declares. The API server refuses an apply with undeclared fields.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kaos_policy::contract::ResourceType;
use kube::api::ApiResource;
use serde_json::Value;

use super::{api::Calls, context::Context};
use crate::{schema, watch::Served};

/// The schema of the status of each kind.
#[derive(Debug, Default)]
pub(crate) struct Projections {
    known: Mutex<BTreeMap<ResourceType, Arc<Value>>>,
}

impl Context {
    /// Drops what the kind does not declare. The schema comes from the cluster; where the operator may not read it, from
    /// the CRDs of the binary; a kind that neither knows keeps everything.
    pub(crate) async fn project(&self, of: &ResourceType, served: &Served, status: &mut Value) {
        let known = self.projections.lock().get(of).cloned();
        let schema = if let Some(schema) = known {
            schema
        } else {
            let schema = Arc::new(self.status_schema(of, &served.resource).await);
            self.projections.lock().insert(of.clone(), Arc::clone(&schema));
            schema
        };
        if schema.is_object() {
            schema::project(&schema, status);
        }
    }

    async fn status_schema(&self, of: &ResourceType, resource: &ApiResource) -> Value {
        let definitions = ApiResource {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            plural: "customresourcedefinitions".to_owned(),
        };
        let name = format!("{}.{}", resource.plural, resource.group);
        let calls = Calls::cluster(&self.client, &definitions);
        let live = match calls.get(&name).await {
            Ok(definition) => definition,
            Err(error) => {
                tracing::debug!(%error, "the schema of the binary is used");
                None
            }
        };
        live.as_ref()
            .and_then(|crd| schema::status_of(crd, of))
            .or_else(|| schema::embedded_status_of(of))
            .unwrap_or(Value::Null)
    }
}

impl Projections {
    /// Reads the schema again the next time: the server did not take a status, or the type came anew.
    pub(crate) fn forget(&self, of: &ResourceType) {
        self.lock().remove(of);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ResourceType, Arc<Value>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
