//! The digest of a policy's answers. A compiler may make other bytes of the same source. So the digest of the bytes
//! does not show that a package is another build of a known package, but the digest of the answers does.

use serde_json::json;

use crate::{contract::Descriptor, digest::Digest, manifest::PolicyFile};

/// Returns the digest of a policy's description, its `policy.yaml` and its answers for its samples. Leaves out the
/// digest of the bytes in `policy.yaml`. `answers` are the digests of the answers.
pub(super) fn digest(descriptor: &Descriptor, file: &PolicyFile, answers: &[Digest]) -> Digest {
    let file = PolicyFile { sha256: None, ..file.clone() };
    Digest::of_json(&json!([descriptor, file, answers]))
}
