//! How a policy lies in ConfigMaps.
//!
//! An index carries the label [`LABEL`] and says in `policy.yaml` what is meant. The component stands beside it, gzipped
//! or not, or in pieces in ConfigMaps of their own where one is too small; without a component, the package changes the
//! settings of the policy that it names. Everything here is a pure function of ConfigMaps: who reads and writes them is
//! left to the catalogue and the command line, what a component is worth to [`kaos_policy::gate`].

mod error;
mod read;
mod unpacking;
mod write;

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::{
    digest::Digest,
    gate::{Bounds, unpacked},
    manifest::PolicyFile,
};
use serde_json::json;

pub use error::{PackageError, Problem};
pub use read::{chunk_names, is_chunk, is_index, policy_file};
pub use unpacking::{unpack, unpack_reading};
pub use write::{Packed, pack};

/// The label of every ConfigMap of a package.
pub const LABEL: &str = "kaos.tools/policy";
/// The label's value on a chunk; any other marks an index.
pub const CHUNK: &str = "chunk";
/// The label's value that we write on an index.
pub const INDEX: &str = "package";
/// The annotation of a chunk that names its index.
pub const INDEX_ANNOTATION: &str = "kaos.tools/policy-index";

/// The key of the policy file.
pub const FILE: &str = "policy.yaml";
/// The key of a component.
pub const COMPONENT: &str = "policy.wasm";
/// The key of a gzipped component.
pub const GZIPPED: &str = "policy.wasm.gz";
/// The key of the list of chunks.
pub const CHUNKS: &str = "policy.chunks";
/// The key of what a chunk holds.
pub const PART: &str = "part";

/// A policy, or settings for one, as somebody shipped it.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// The name of its index.
    pub name: String,
    /// The namespace that it lies in.
    pub namespace: String,
    /// What its `policy.yaml` says.
    pub file: PolicyFile,
    /// The component, gzipped or not; none in a package of settings alone.
    pub component: Option<Vec<u8>>,
}

impl Package {
    /// The same for the same policy file and the same component, however they are cut, packed and written down. What
    /// cannot be unpacked within the gate's bounds counts as it is.
    pub fn digest(&self) -> Digest {
        let component = self.component_digest();
        let mut file = self.file.clone();
        // A pin that holds adds nothing to the digest beside it; one that does not is another package.
        let packed = self.component.as_deref().map(Digest::of);
        file.sha256 = file.sha256.filter(|pin| Some(*pin) != component && Some(*pin) != packed);
        Digest::of_json(&json!({"file": file, "component": component}))
    }

    /// The digest of the component as it runs.
    pub fn component_digest(&self) -> Option<Digest> {
        let bytes = self.component.as_deref()?;
        Some(unpacked(bytes, &Bounds::default()).map_or_else(|_| Digest::of(bytes), |bytes| Digest::of(&bytes)))
    }
}

/// How errors name a ConfigMap.
fn shown(config_map: &ConfigMap) -> String {
    let metadata = &config_map.metadata;
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default());
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}
