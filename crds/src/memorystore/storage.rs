//! The storage of a MemoryStore.

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{KeySelector, defaults};

/// Where memories are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(kube::KubeSchema))]
#[cfg_attr(feature = "schema", x_kube(validation = crate::schema::rules::external_storage()))]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Whether memories are kept in a volume of the store's own, or in a database elsewhere.
    #[serde(rename = "type")]
    pub type_: StorageType,
    /// The volume, for type local.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<Local>,
    /// The database, for type external.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
}

/// Whether memories are kept in a volume of the store's own, or in a database elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StorageType {
    /// In a PersistentVolumeClaim. One pod runs.
    Local,
    /// In a database.
    External,
}

/// A volume of the store's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Local {
    /// What the volume is organised by.
    #[serde(default)]
    pub provider: LocalProvider,
    /// The PersistentVolumeClaim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume: Option<PersistentVolume>,
    /// The collection in it. Not set: the service's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
}

/// What the volume is organised by.
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
    /// How much it holds, for example 5Gi. It grows where its StorageClass allows that, and never shrinks.
    #[serde(default = "defaults::store_size", deserialize_with = "defaults::store_size_or")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::schema::QUANTITY)))]
    pub size: String,
}

/// A database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// What database it is.
    #[serde(default)]
    pub provider: ExternalProvider,
    /// The key of a Secret in the same namespace that holds the connection string.
    pub connection_secret_ref: KeySelector,
    /// How many dimensions the embedding model's vectors have.
    #[serde(
        default = "defaults::number::<{ defaults::EMBEDDING_DIMS }>",
        deserialize_with = "defaults::number_or::<_, { defaults::EMBEDDING_DIMS }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub embedding_dims: i32,
    /// The collection in it. Not set: the service's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
}

/// What database it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ExternalProvider {
    /// PostgreSQL with pgvector.
    #[default]
    Pgvector,
}
