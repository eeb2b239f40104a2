//! Stores the bytes of admitted packages in immutable ConfigMaps that the revision owns. A serving policy must not
//! depend on a ConfigMap that users can edit or delete.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kaos_crds::API_VERSION;
use kube::{Api, Client, api::PostParams};

use super::{StepError, records::Revision};
use crate::package::{self, Package};

/// The label of the ConfigMaps that contain the bytes of a revision. The value of the label is the shortened digest of
/// the package.
pub(super) const LABEL: &str = "kaos.tools/policy-revision";

/// The error if another ConfigMap has a name for the stored bytes. The value is this name.
///
/// The other ConfigMap does not belong to the revision.
#[derive(Debug)]
pub(super) struct Taken(pub(super) String);

/// Stores the bytes of packages.
pub(super) struct Store {
    api: Api<ConfigMap>,
    namespace: String,
}

impl Store {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }

    /// Writes the package of a revision into ConfigMaps. Later, the operator loads the revision from these ConfigMaps.
    /// Does not write ConfigMaps that are already stored.
    pub(super) async fn keep(&self, revision: &Revision, package: &Package) -> Result<Result<(), Taken>, StepError> {
        let name = revision.metadata.name.as_deref().unwrap_or_default();
        let what = || format!("store the bytes of PolicyRevision {name}");
        let packed = package::pack(name, &self.namespace, &package.file, package.component.as_ref())
            .map_err(|error| StepError::new(what(), &error))?;
        let owner = OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: "PolicyRevision".to_owned(),
            name: name.to_owned(),
            uid: revision.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        let mark: String = revision.spec.package_digest.trim_start_matches("sha256:").chars().take(16).collect();
        for config_map in packed.config_maps() {
            let mut kept = config_map.clone();
            kept.immutable = Some(true);
            kept.metadata.labels = Some(BTreeMap::from([(LABEL.to_owned(), mark.clone())]));
            kept.metadata.owner_references = Some(vec![owner.clone()]);
            match self.api.create(&PostParams::default(), &kept).await {
                Ok(_) => {}
                Err(kube::Error::Api(answer)) if answer.code == 409 => {
                    if !self.is_kept(&kept).await? {
                        return Ok(Err(Taken(kept.metadata.name.unwrap_or_default())));
                    }
                }
                Err(error) => return Err(StepError::new(what(), &error)),
            }
        }
        Ok(Ok(()))
    }

    /// Returns whether the bytes of a revision are stored in ConfigMaps that exist until this revision is deleted.
    pub(super) async fn keeps(&self, revision: &Revision) -> Result<bool, StepError> {
        let Some(index) = self.index_of(revision).await? else { return Ok(false) };
        Ok(stays_with(&index, revision.metadata.uid.as_deref()) && self.unpack(revision, &index).await?.is_some())
    }

    /// Returns whether the wanted ConfigMap already exists with the same content and for the same revision. Returns
    /// false for a ConfigMap of an earlier, deleted revision with the same name: the garbage collector will delete this
    /// ConfigMap.
    async fn is_kept(&self, wanted: &ConfigMap) -> Result<bool, StepError> {
        let there = self.get(wanted.metadata.name.as_deref().unwrap_or_default()).await?;
        Ok(there.is_some_and(|there| {
            stays_with(&there, owner(wanted)) && there.data == wanted.data && there.binary_data == wanted.binary_data
        }))
    }

    /// Returns the stored package of a revision if it still exists and is unchanged.
    pub(super) async fn load(&self, revision: &Revision) -> Result<Option<Package>, StepError> {
        match self.index_of(revision).await? {
            Some(index) => self.unpack(revision, &index).await,
            None => Ok(None),
        }
    }

    async fn unpack(&self, revision: &Revision, index: &ConfigMap) -> Result<Option<Package>, StepError> {
        let package = package::unpack_reading(index, |name| async move { self.get(&name).await }).await?.ok();
        // Compare the digest with the PolicyRevision, so that users who can write ConfigMaps in this namespace cannot
        // change which code runs.
        Ok(package.filter(|package| package.digest().to_string() == revision.spec.package_digest))
    }

    async fn index_of(&self, revision: &Revision) -> Result<Option<ConfigMap>, StepError> {
        self.get(revision.metadata.name.as_deref().unwrap_or_default()).await
    }

    async fn get(&self, name: &str) -> Result<Option<ConfigMap>, StepError> {
        self.api.get_opt(name).await.map_err(|error| StepError::new(format!("read ConfigMap {name}"), &error))
    }
}

/// Returns whether a ConfigMap exists until the revision with this UID is deleted. A ConfigMap without an owner also
/// stays: a user deleted its revision with `--cascade=orphan`.
fn stays_with(config_map: &ConfigMap, uid: Option<&str>) -> bool {
    owner(config_map).is_none() || owner(config_map) == uid
}

/// Returns the UID of a ConfigMap's first owner, or `None` if the ConfigMap has no owner.
fn owner(config_map: &ConfigMap) -> Option<&str> {
    config_map.metadata.owner_references.iter().flatten().map(|owner| owner.uid.as_str()).next()
}
