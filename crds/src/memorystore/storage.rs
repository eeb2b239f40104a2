//! The storage of a MemoryStore.

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{KeySelector, defaults};

/// The storage of the memories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(kube::KubeSchema))]
#[cfg_attr(feature = "schema", x_kube(validation = crate::schema::rules::external_storage()))]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The type of the storage: a volume of the store, or an external database.
    #[serde(rename = "type")]
    pub type_: StorageType,
    /// The volume, for type local.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<Local>,
    /// The database, for type external.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
}

/// The type of the storage: a volume of the store, or an external database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StorageType {
    /// A PersistentVolumeClaim, with one pod.
    Local,
    /// An external database.
    External,
}

/// A volume of the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Local {
    /// The database in the volume.
    #[serde(default)]
    pub provider: LocalProvider,
    /// The PersistentVolumeClaim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume: Option<PersistentVolume>,
    /// The collection in the database. Not set: the service's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
}

/// The database in the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LocalProvider {
    /// Chroma.
    #[default]
    Chroma,
}

/// The PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolume {
    /// The size, for example 5Gi. The volume can grow if the StorageClass allows this, but never shrinks.
    #[serde(default = "defaults::store_size", deserialize_with = "defaults::store_size_or")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::schema::kubernetes::QUANTITY)))]
    pub size: String,
}

/// An external database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// The engine of the database.
    #[serde(default)]
    pub provider: ExternalProvider,
    /// The key of a Secret in the same namespace that holds the connection string.
    pub connection_secret_ref: KeySelector,
    /// The number of dimensions of the embedding model's vectors.
    #[serde(
        default = "defaults::number::<{ defaults::EMBEDDING_DIMS }>",
        deserialize_with = "defaults::number_or::<_, { defaults::EMBEDDING_DIMS }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub embedding_dims: i32,
    /// The collection in the database. Not set: the service's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
}

/// The engine of the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ExternalProvider {
    /// PostgreSQL with pgvector.
    #[default]
    Pgvector,
}
