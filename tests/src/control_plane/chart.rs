//! Installs the chart without Helm. Installs CustomResourceDefinitions, rights and configuration, but not the operator
//! itself.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use serde_json::{Value, json};

use super::Pod;
use crate::case;

/// The kinds that this module does not install: their objects run processes, or make the API server call a process.
const LEFT_OUT: [&str; 3] = ["Deployment", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
const PATIENCE: Duration = Duration::from_mins(2);
const BEAT: Duration = Duration::from_millis(100);

/// Returns the path of the rendered chart with default values.
pub fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/install.yaml")
}

/// The operator's service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    namespace: String,
    name: String,
}

/// Applies all manifests except those of the kinds in `LEFT_OUT`. Waits until the API server serves the new kinds, and
/// its admission accepts objects of these kinds as owners. Returns the first service account in the manifests.
pub async fn install(client: &Client, manifests: &Path) -> Result<Account> {
    let objects = case::documents(manifests)?;
    let installed: Vec<&Value> =
        objects.iter().filter(|object| LEFT_OUT.iter().all(|kind| object["kind"] != *kind)).collect();
    for object in &installed {
        apply(client, object).await?;
    }
    let of = |kind: &'static str| installed.iter().copied().filter(move |object| object["kind"] == kind);
    let account = of("ServiceAccount").next().map(|object| Account {
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]),
    });
    let account = account.with_context(|| format!("{} has no ServiceAccount", manifests.display()))?;
    for definition in of("CustomResourceDefinition") {
        until_served(client, definition).await?;
        until_known_as_owner(client, definition, &account).await?;
    }
    Ok(account)
}

/// Reads from the first Deployment in the manifests how to start the Deployment's process.
pub fn pod(manifests: &Path) -> Result<Option<Pod>> {
    let objects = case::documents(manifests)?;
    let is = |object: &&Value, name: &str| object["kind"] == "ConfigMap" && object["metadata"]["name"] == name;
    let config = |name: &str| objects.iter().find(|object| is(object, name)).map(|map| map["data"].clone());
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    Ok(deployment.map(|deployment| Pod::of(deployment, |name| config(name).unwrap_or_default())))
}

/// Applies an object as the administrator.
pub async fn apply(client: &Client, object: &Value) -> Result<()> {
    let types: TypeMeta = serde_json::from_value(object.clone())?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = text(&object["metadata"]["name"]);
    let params = PatchParams::apply("installer").force();
    api.patch(&name, &params, &Patch::Apply(object)).await.with_context(|| format!("{} {name}", types.kind))?;
    Ok(())
}

async fn until_served(client: &Client, definition: &Value) -> Result<()> {
    let of = |field: &str| text(&definition["spec"][field]);
    let (group, plural) = (of("group"), text(&definition["spec"]["names"]["plural"]));
    let path = format!("/apis/{group}/{}/{plural}?limit=1", version(definition));
    until(&format!("{plural} are served"), async || ask(client, http::Request::get(&path), Vec::new()).await.is_ok())
        .await
}

/// Waits until the API server's admission accepts objects of a new kind as owners. Admission learns about a new
/// CustomResourceDefinition some seconds later than the rest of the API server. Until then, admission accepts owners of
/// the new kind only from an administrator.
async fn until_known_as_owner(client: &Client, definition: &Value, account: &Account) -> Result<()> {
    let names = &definition["spec"]["names"];
    let owner = json!({"apiVersion": format!("{}/{}", text(&definition["spec"]["group"]), version(definition)),
        "kind": names["kind"], "name": "prober", "uid": "0", "blockOwnerDeletion": true});
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "prober", "ownerReferences": [owner]}});
    let path = format!("/api/v1/namespaces/{}/configmaps?dryRun=All", account.namespace);
    until(&format!("{} are known as owners", names["plural"]), async || {
        let request = http::Request::post(&path).header("impersonate-user", account.user());
        let asked = ask(client, request.header("content-type", "application/json"), child.to_string().into()).await;
        // If the request succeeds, or fails without `RESTMapping` in the error, admission accepts owners of the kind.
        asked.map_or_else(|error| !format!("{error:#}").contains("RESTMapping"), |_| true)
    })
    .await
}

/// Returns the version in which the API server stores objects of the kind that `definition` defines.
fn version(definition: &Value) -> String {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["storage"] == true).map(|version| text(&version["name"])).collect()
}

async fn ask(client: &Client, request: http::request::Builder, body: Vec<u8>) -> Result<Value> {
    Ok(client.request(request.body(body)?).await?)
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        if Instant::now() > deadline {
            bail!("timed out waiting until {what}");
        }
        tokio::time::sleep(BEAT).await;
    }
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Account {
    /// Returns the service account with this namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns the service account's user name on the API server.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// Returns the operator's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Requests a new token for the API server, valid for a day.
    pub async fn token(&self, client: &Client) -> Result<String> {
        self.token_for(client, &[]).await
    }

    /// Requests a new token for these audiences, valid for a day. Without audiences, the token is for the API server.
    pub async fn token_for(&self, client: &Client, audiences: &[&str]) -> Result<String> {
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{}/token", self.namespace, self.name);
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": audiences, "expirationSeconds": 86400}});
        let request = http::Request::post(path).header("content-type", "application/json");
        let answer = ask(client, request, body.to_string().into()).await?;
        Ok(text(&answer["status"]["token"]))
    }
}
