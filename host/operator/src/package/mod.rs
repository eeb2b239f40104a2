//! The format of a package in ConfigMaps.
//!
//! The index of a package is a ConfigMap with the label [`LABEL`] and a `policy.yaml`. The component is in the same
//! ConfigMap, optionally gzipped. If the component is too large for one ConfigMap, it is split into chunks, each in a
//! separate ConfigMap. Instead of a component, the ConfigMap can have a script, and then needs no `policy.yaml`. A
//! package can also have no code: it then only changes the settings of the policy that it names. The functions in this
//! module do no I/O. The catalogue and the command line read and write the ConfigMaps, and [`kaos_policy::gate`] checks
//! the code.

mod error;
mod read;
mod unpacking;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::{
    digest::Digest,
    engine::SCRIPT,
    gate::{Bounds, CodeForm, SizeClass, unpacked},
    manifest::PolicyFile,
};
use serde_json::json;

pub use error::{PackageError, Problem};
pub use read::{chunk_names, is_chunk, is_index, policy_file};
pub use unpacking::{unpack, unpack_reading};
pub use write::{Packed, pack};

/// The label of all ConfigMaps of a package.
pub const LABEL: &str = "kaos.tools/policy";
/// The value of the label on a chunk. Any other value marks an index.
pub const CHUNK: &str = "chunk";
/// The value of the label on an index, if this program writes the index.
pub const INDEX: &str = "package";
/// The annotation that a chunk has with the name of its index.
pub const INDEX_ANNOTATION: &str = "kaos.tools/policy-index";

/// The key of the policy file.
pub const FILE: &str = "policy.yaml";
/// The key of a component.
pub const COMPONENT: &str = "policy.wasm";
/// The key of a gzipped component.
pub const GZIPPED: &str = "policy.wasm.gz";
/// The key of the list of chunks.
pub const CHUNKS: &str = "policy.chunks";
/// The key of the bytes of a chunk.
pub const PART: &str = "part";

/// A package: a policy, or settings for a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// The name of the package's index.
    pub name: String,
    /// The namespace of the package's ConfigMaps.
    pub namespace: String,
    /// The `policy.yaml` of the package.
    pub file: PolicyFile,
    /// The component or the script. `None` in a package of settings.
    pub component: Option<PolicyCode>,
}

/// The code of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyCode {
    /// The form of the bytes.
    pub form: CodeForm,
    /// The component, possibly gzipped, or the script.
    pub bytes: Cow<'static, [u8]>,
}

impl PolicyCode {
    /// Creates the code of a policy from a component.
    pub fn component(bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { form: CodeForm::Component, bytes: bytes.into() }
    }

    /// Returns the digest of the unpacked code. If a component cannot be unpacked within the gate's bounds, returns the
    /// digest of its packed bytes.
    pub fn digest(&self) -> Digest {
        let Self { form, bytes } = self;
        match form {
            CodeForm::Script => Digest::of(bytes),
            CodeForm::Component => {
                unpacked(bytes, &readable()).map_or_else(|_| Digest::of(bytes), |bytes| Digest::of(&bytes))
            }
        }
    }
}

impl Package {
    /// Returns the digest of the package. The digest depends only on the policy file and the code, not on chunks,
    /// compression or formatting.
    pub fn digest(&self) -> Digest {
        let component = self.component_digest();
        let mut file = self.file.clone();
        // Leave out a correct `sha256`, because the component's digest below has the same information. Keep a wrong
        // `sha256`, so that it changes the digest of the package.
        let packed = self.component.as_ref().map(|code| Digest::of(&code.bytes));
        file.sha256 = file.sha256.filter(|pin| Some(*pin) != component && Some(*pin) != packed);
        match &self.component {
            // Name the form of the code, so that a script and a component with equal bytes get different digests.
            Some(PolicyCode { form: CodeForm::Script, .. }) => {
                Digest::of_json(&json!({"file": file, "script": component}))
            }
            _ => Digest::of_json(&json!({"file": file, "component": component})),
        }
    }

    /// Returns whether the package has no code, and has settings for this policy.
    pub fn is_settings_for(&self, policy: &str) -> bool {
        self.component.is_none() && self.file.name.as_deref() == Some(policy)
    }

    /// Returns the digest of the unpacked component or of the script.
    pub fn component_digest(&self) -> Option<Digest> {
        self.component.as_ref().map(PolicyCode::digest)
    }
}

/// Returns the bounds for reading a component: those of the largest size class. The flag `--large-policies` does not
/// change these bounds, so it does not change the digest of a package.
fn readable() -> Bounds {
    SizeClass::Large.bounds()
}

/// Returns the namespace and the name of a ConfigMap, for error messages.
fn shown(config_map: &ConfigMap) -> String {
    let metadata = &config_map.metadata;
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default());
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}
