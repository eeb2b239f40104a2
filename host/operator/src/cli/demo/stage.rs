//! The environment of the demo: an embedded cluster on loopback, with the CRDs and the sample.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow};
use kaos_cluster::{Cluster, PodFate, Server};
use kaos_policy::{
    contract::HOME,
    near::nearest,
    stamp::{MANAGED_BY, MANAGER},
};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{Discovery, Scope, pinned_kind},
};
use serde_json::{Value, json};

use super::{changes::Children, row::Row};
use crate::input::Document;

/// Time until a simulated pod becomes ready: long enough for a user to see the pod start.
const POD_STARTS: Duration = Duration::from_millis(1500);

/// The number of changes that the cluster keeps for watches of one type. The limit is low because each change of a
/// policy's ConfigMap contains the whole component.
const CHANGES: usize = 128;
/// The number of requests that the journal of the cluster keeps.
const REQUESTS: usize = 1_000;
/// The number of Events that the cluster keeps. Without this limit, an hour of edits would leave many more Events.
const EVENTS: usize = 1_000;

/// A kind that the table leaves out: the step that installs a policy already reports the policy's revision.
const REVISION: &str = "PolicyRevision";

/// Field manager that applies the sample.
const MANAGER_OF_THE_SAMPLE: &str = "kaos-demo";

/// A running cluster, with a kubeconfig for users.
pub(super) struct DemoCluster {
    pub(super) cluster: Cluster,
    pub(super) client: Client,
    server: Server,
    folder: Folder,
    /// The API group and the plural of each type that the table shows, by kind.
    shown: BTreeMap<String, (String, String)>,
    namespaces: Vec<String>,
}

/// A temporary folder of this process. Deletes the folder on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Ignores an error: the kubeconfig in the folder is for a cluster that no longer exists.
        let _gone = fs::remove_dir_all(&self.0);
    }
}

impl DemoCluster {
    /// Starts a cluster, and writes a kubeconfig for this cluster.
    pub(super) async fn start(port: u16) -> anyhow::Result<Self> {
        let there_is = format!("{}; use a real cluster for other kinds", super::served::served());
        let cluster = Cluster::builder().history(CHANGES, REQUESTS).events(EVENTS).instead(there_is).start();
        cluster.set_pods(PodFate::ReadyAfter(POD_STARTS));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let server = cluster.listen(address).await.with_context(|| {
            format!("cannot listen on {address}: name another port with --port, or 0 for a free port")
        })?;
        let folder = Folder::new()?;
        write_private(&folder.kubeconfig(), &server.kubeconfig("admin")).context("cannot write a kubeconfig")?;
        let client = Client::new(cluster.service(), "default");
        let stage = Self { cluster, client, server, folder, shown: BTreeMap::new(), namespaces: Vec::new() };
        stage.found(HOME).await?;
        Ok(stage)
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.kubeconfig()
    }

    /// Returns the namespaces of the applied objects.
    pub(super) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// Installs CRDs, and waits until the cluster serves the kinds of these CRDs. After this call, the table also shows
    /// the objects of the new kinds.
    pub(super) async fn define(&mut self, definitions: &[Value]) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for definition in definitions {
            let text = |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (kind, group, plural) = (text("/spec/names/kind"), text("/spec/group"), text("/spec/names/plural"));
            self.apply(definition).await?;
            names.push(format!("{plural}.{group}"));
            if kind != REVISION {
                self.shown.insert(kind, (group, plural));
            }
        }
        self.cluster.settled().await;
        Ok(names)
    }

    /// Creates the namespaces of objects, and then applies the objects.
    pub(super) async fn play(&mut self, documents: &[Document]) -> anyhow::Result<()> {
        for namespace in documents.iter().filter_map(|document| document.identity.namespace.as_ref()) {
            if !self.namespaces.contains(namespace) {
                self.namespaces.push(namespace.clone());
                self.found(namespace).await?;
            }
        }
        for Document { origin, object, .. } in documents {
            self.apply(object).await.with_context(|| origin.to_string())?;
        }
        Ok(())
    }

    async fn found(&self, namespace: &str) -> anyhow::Result<()> {
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await
    }

    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        let types = object.types.as_ref().ok_or_else(|| anyhow!("the object lacks apiVersion or kind"))?;
        let gvk = GroupVersionKind::try_from(types)?;
        let found = pinned_kind(&self.client, &gvk).await;
        let (resource, capabilities) = found.map_err(|error| self.not_found(&gvk, error))?;
        let api: Api<DynamicObject> = match (&capabilities.scope, &object.metadata.namespace) {
            (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            (Scope::Namespaced, None) => Api::default_namespaced_with(self.client.clone(), &resource),
            (Scope::Cluster, _) => Api::all_with(self.client.clone(), &resource),
        };
        let name = object.metadata.name.clone().unwrap_or_default();
        match api.patch(&name, &PatchParams::apply(MANAGER_OF_THE_SAMPLE).force(), &Patch::Apply(&object)).await {
            Ok(_) => Ok(()),
            // Adds no context, because the server's message explains the error.
            Err(kube::Error::Api(status)) => Err(anyhow!("{}", status.message)),
            Err(error) => Err(error.into()),
        }
    }

    /// Explains why a kind was not found. If the server has no such kind, suggests the kind that the user probably
    /// meant.
    fn not_found(&self, gvk: &GroupVersionKind, error: kube::Error) -> anyhow::Error {
        match error {
            kube::Error::Discovery(_) => {}
            // The server also answers 404 for a group that it does not serve, but without a Status.
            kube::Error::Api(status) if status.code == 404 => {}
            error => return error.into(),
        }
        let of_group = self.shown.iter().filter(|(_, (group, _))| *group == gvk.group).map(|(kind, _)| kind.as_str());
        let near = nearest(&gvk.kind, of_group).map_or_else(String::new, |near| format!(": did you mean {near}?"));
        anyhow!("the demo's cluster serves no kind {} of {}{near}", gvk.kind, gvk.api_version())
    }

    /// Returns a row for each object of the defined kinds.
    pub(super) fn rows(&self) -> Vec<Row> {
        let objects = self.shown.values().flat_map(|(group, plural)| self.cluster.objects(group, plural));
        objects.map(|object| Row::of(&object)).collect()
    }

    /// Returns the children that the operator applied.
    pub(super) async fn children(&self) -> anyhow::Result<Children> {
        let mut children = Children::new();
        let discovery = Discovery::new(self.client.clone()).run().await?;
        for (resource, capabilities) in discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources) {
            if capabilities.scope == Scope::Cluster {
                continue;
            }
            for object in self.cluster.objects(&resource.group, &resource.plural) {
                let metadata = &object["metadata"];
                if metadata["labels"][MANAGED_BY] == MANAGER && !metadata["ownerReferences"].is_null() {
                    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
                    let name = format!("{} {}/{}", resource.kind, text("namespace"), text("name"));
                    children.insert(name, Arc::clone(&object));
                }
            }
        }
        Ok(children)
    }
}

impl Folder {
    /// Creates the folder with access for this user only. Fails if the folder already exists, because it may belong to
    /// another user.
    fn new() -> anyhow::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let folder = std::env::temp_dir().join(format!("kaos-demo-{}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&folder);
        made.with_context(|| format!("cannot create the folder {} for a kubeconfig", folder.display()))?;
        Ok(Self(folder))
    }

    fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }
}

/// Writes a file that only this user can read, because the file contains credentials for the cluster.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_folder_is_new_and_only_the_user_may_read_it() {
        let folder = Folder::new().unwrap();
        assert_eq!(fs::metadata(&folder.0).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(Folder::new().is_err());
        write_private(&folder.kubeconfig(), "text").unwrap();
        assert!(write_private(&folder.kubeconfig(), "other").is_err());
        let path = folder.0.clone();
        drop(folder);
        assert!(!path.exists());
    }
}
