//! The digest of a policy's answers. A compiler may produce different bytes from the same source. Then only the digest
//! of the answers shows that a package is another build of a known package.

use serde_json::json;

use crate::{contract::Descriptor, digest::Digest, manifest::PolicyFile};

/// Returns the digest of a policy's description, its `policy.yaml` and its answers for its samples. Leaves out the
/// field `sha256` of `policy.yaml`, because this field contains the digest of the bytes. `answers` contains the digest
/// of the answer for each sample.
pub(super) fn digest(descriptor: &Descriptor, file: &PolicyFile, answers: &[Digest]) -> Digest {
    let file = PolicyFile { sha256: None, ..file.clone() };
    Digest::of_json(&json!([descriptor, file, answers]))
}
