//! Drops the fields of a status that the kind's schema does not declare. The API server refuses an apply with
//! undeclared fields.
//!
//! The schema comes from the first available source:
//! - the CRD in the cluster
//! - the API server's `OpenAPI` document, if the operator has no right to read CRDs (every client can read this
//!   document)
//! - the CRD that is embedded in the binary
//!
//! The operator reads the schema again when the CRD has changed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kaos_policy::contract::ResourceType;
use kube::{Client, api::ApiResource};
use serde_json::Value;

use crate::reconcile::{api::Calls, error::Class};
use crate::{
    locking::lock,
    schema,
    watch::{Served, Watch},
};

/// The status schema of each kind, with the version of the CRD from which the schema comes.
#[derive(Debug, Default)]
pub(crate) struct DeclaredFields {
    known: Mutex<BTreeMap<ResourceType, (u64, Arc<Value>)>>,
}

impl DeclaredFields {
    /// Drops the fields of a status that the kind's schema does not declare. Keeps all fields if the schema is unknown.
    pub(crate) async fn project(
        &self,
        client: &Client,
        watch: &Watch,
        of: &ResourceType,
        served: &Served,
        status: &mut Value,
    ) {
        let definition = watch.definition(of);
        let known = lock(&self.known).get(of).filter(|(read, _)| *read == definition).cloned();
        let schema = if let Some((_, schema)) = known {
            schema
        } else {
            let live = status_schema(client, watch, of, &served.resource).await;
            let passing = matches!(live, Err(Class::Transient(_)));
            let schema = live.ok().flatten().or_else(|| schema::embedded_status_of(of)).unwrap_or(Value::Null);
            let schema = Arc::new(schema);
            if !passing {
                lock(&self.known).insert(of.clone(), (definition, Arc::clone(&schema)));
            }
            schema
        };
        if schema.is_object() {
            schema::project(&schema, status);
        }
    }

    /// Forgets the status schema of a kind, because the server refused a status. The next pass then reads the schema
    /// again.
    pub(crate) fn forget(&self, of: &ResourceType) {
        lock(&self.known).remove(of);
    }
}

/// Returns the status schema that the server declares for the kind, or `None` if the server declares no schema.
async fn status_schema(
    client: &Client,
    watch: &Watch,
    of: &ResourceType,
    resource: &ApiResource,
) -> Result<Option<Value>, Class> {
    if watch.sees_definitions() {
        let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
        let name = format!("{}.{}", resource.plural, resource.group);
        match Calls::cluster(client, &definitions).get(&name).await {
            Ok(definition) => return Ok(definition.and_then(|crd| schema::status_of(&crd, of))),
            Err(error) if error.class != Class::Forbidden => return Err(error.class),
            Err(error) => tracing::debug!(%error, "reading the schema from the OpenAPI document instead"),
        }
    }
    let path = format!("/openapi/v3/apis/{}", of.api_version);
    let document = Calls::cluster(client, resource).document(&path).await.map_err(|error| error.class)?;
    Ok(document.and_then(|document| schema::documented_status_of(&document, of)))
}
