//! Reads PolicyRevisions for the commands: the state of each installed package.

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Time};
use kaos_crds::{PolicyRevisionStatus, PolicySource, RevisionState};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Preconditions},
};

use crate::{
    catalogue::{
        Age,
        installed::{self, is_default},
    },
    package::{Package, PackageError, is_index, unpack_reading},
};

pub(super) use crate::catalogue::installed::Revision;

/// Interval between two reads of a revision that a command waits for.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// The number of attempts to delete a record while other clients change it.
const FORGETS: usize = 5;

/// The revisions that an operator recorded, and the bytes that the operator stored.
pub(super) struct Revisions {
    client: Client,
    written: Api<Revision>,
    config_maps: Api<ConfigMap>,
    namespace: String,
}

impl Revisions {
    /// Reads the revisions of the operator in this namespace.
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self {
            written: Api::namespaced_with(client.clone(), namespace, &installed::revision_resource()),
            config_maps: Api::namespaced(client.clone(), namespace),
            client,
            namespace: namespace.to_owned(),
        }
    }

    /// Returns the operator's namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Lists all revisions, the oldest first.
    pub(super) async fn all(&self) -> anyhow::Result<Vec<Revision>> {
        let listed = self.written.list(&ListParams::default()).await;
        let place = || format!("PolicyRevisions of namespace {} cannot be listed", self.namespace);
        let mut all = listed.with_context(place)?.items;
        all.sort_by(|one, other| (created(one), name(one)).cmp(&(created(other), name(other))));
        Ok(all)
    }

    /// Returns the age of a revision's package. The operator decides conflicts by this age. If the user has no right to
    /// read the ConfigMap, treats the ConfigMap as deleted.
    pub(super) async fn age(&self, revision: &Revision) -> anyhow::Result<Age> {
        let PolicySource { namespace, config_map } = revision.spec.source.clone();
        let sources: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        let source = match sources.get_metadata_opt(&config_map).await {
            Ok(source) => source,
            Err(kube::Error::Api(answer)) if answer.code == 403 => None,
            Err(error) => return Err(error).with_context(|| format!("ConfigMap {namespace}/{config_map}")),
        };
        let created = source.and_then(|source| source.metadata.creation_timestamp).map(|time| time.0.to_string());
        Ok(installed::age_of(revision, created))
    }

    /// Returns whether the source of a revision still contains a package. Returns true if the user has no right to read
    /// the source.
    pub(super) async fn is_there(&self, source: &PolicySource) -> anyhow::Result<bool> {
        let PolicySource { namespace, config_map } = source;
        // A default policy has no ConfigMap: each operator contains it.
        if is_default(source) {
            return Ok(true);
        }
        let sources: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        match sources.get_metadata_opt(config_map).await {
            Ok(found) => Ok(found.is_some_and(|found| is_index(&found.metadata))),
            Err(kube::Error::Api(answer)) if answer.code == 403 => Ok(true),
            Err(error) => Err(error).with_context(|| format!("ConfigMap {namespace}/{config_map}")),
        }
    }

    /// Deletes a revision. After the deletion, Kubernetes also deletes the stored bytes. Returns whether the revision
    /// is gone. A revision stays if another client changed it after the command read it.
    pub(super) async fn remove(&self, revision: &Revision) -> anyhow::Result<bool> {
        let (uid, resource_version) = (revision.metadata.uid.clone(), revision.metadata.resource_version.clone());
        let preconditions = Some(Preconditions { uid, resource_version });
        let parameters = DeleteParams { preconditions, ..DeleteParams::background() };
        match self.written.delete(name(revision), &parameters).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(true),
            Err(kube::Error::Api(answer)) if answer.is_conflict() => Ok(false),
            Err(error) => Err(error).with_context(|| format!("PolicyRevision {}", name(revision))),
        }
    }

    /// Deletes a revision that no longer serves, even if other clients changed it after the command read it. If the
    /// revision stays, returns the reason.
    pub(super) async fn forget(&self, revision: &Revision) -> anyhow::Result<Result<(), &'static str>> {
        for _ in 0..FORGETS {
            let read = self.written.get_opt(name(revision)).await;
            let Some(now) = read.with_context(|| format!("PolicyRevision {}", name(revision)))? else {
                return Ok(Ok(()));
            };
            if now.metadata.uid != revision.metadata.uid {
                return Ok(Err("another PolicyRevision has this name now"));
            }
            if state(&now).is_let_in() {
                return Ok(Err("the revision serves again"));
            }
            if self.remove(&now).await? {
                return Ok(Ok(()));
            }
        }
        Ok(Err("the record changed during each attempt to delete it"))
    }

    /// Returns the package of a revision, from the bytes that the operator stored.
    pub(super) async fn kept(&self, revision: &Revision) -> anyhow::Result<Result<Package, Lost>> {
        let package = match read(&self.config_maps, name(revision)).await {
            Ok(Some(package)) => package,
            Ok(None) => return Ok(Err(Lost::Gone)),
            Err(error) => return error.downcast().map(|damage| Err(Lost::Damaged(damage))),
        };
        Ok(if is_of(&package, revision) { Ok(package) } else { Err(Lost::Changed) })
    }

    /// Reads the package of a revision as a starting operator does. If the stored bytes are lost, reads the source
    /// instead, provided that the source still contains this package.
    pub(super) async fn package(&self, revision: &Revision) -> anyhow::Result<Result<Package, Lost>> {
        let lost = match self.kept(revision).await? {
            Ok(package) => return Ok(Ok(package)),
            Err(lost) => lost,
        };
        let PolicySource { namespace, config_map } = &revision.spec.source;
        let sources: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let source = match read(&sources, config_map).await {
            Ok(source) => source,
            Err(error) if is_passing(&error) => return Err(error),
            // The source is unreadable, so report the loss of the stored bytes.
            Err(_) => None,
        };
        Ok(source.filter(|package| is_of(package, revision)).ok_or(lost))
    }
}

/// Why the stored bytes of a revision are unusable.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("the operator no longer stores the bytes of this revision")]
    Gone,
    #[error("the stored bytes of this revision were changed")]
    Changed,
    #[error("the stored bytes of this revision are damaged: {0}")]
    Damaged(PackageError),
}

/// Returns whether a retry after this error might succeed.
pub(super) fn is_passing(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<kube::Error>()
        .is_some_and(|error| !matches!(error, kube::Error::Api(answer) if answer.code == 403))
}

/// Returns whether a revision records this package.
fn is_of(package: &Package, revision: &Revision) -> bool {
    package.digest().to_string() == revision.spec.package_digest
}

/// Reads a package from its index and chunks. Returns `None` if the index does not exist.
pub(super) async fn read(config_maps: &Api<ConfigMap>, name: &str) -> anyhow::Result<Option<Package>> {
    let get =
        |name: String| async move { config_maps.get_opt(&name).await.with_context(|| format!("ConfigMap {name}")) };
    let Some(index) = get(name.to_owned()).await? else { return Ok(None) };
    Ok(Some(unpack_reading(&index, get).await??))
}

/// Formats a source as `namespace/name`.
pub(super) fn shown(source: &PolicySource) -> String {
    format!("{}/{}", source.namespace, source.config_map)
}

pub(super) fn name(revision: &Revision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn status(revision: &Revision) -> PolicyRevisionStatus {
    revision.status.clone().unwrap_or_default()
}

pub(super) fn state(revision: &Revision) -> RevisionState {
    revision.status.as_ref().map_or_else(RevisionState::default, |status| status.state)
}

fn created(revision: &Revision) -> Option<&Time> {
    revision.metadata.creation_timestamp.as_ref()
}
