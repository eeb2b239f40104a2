//! Computes the hash of a pod template, and compares pod templates. Both ignore the label that contains the hash.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The label that distinguishes the pods of two templates.
pub(super) const HASH: &str = "pod-template-hash";

/// Returns a hash of a template. The hash contains only characters that are valid in names.
pub(super) fn hash(template: &Value) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(bare(template).to_string().as_bytes());
    digest.iter().take(10).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

/// Returns whether pods from the two templates would be equal.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    bare(a) == bare(b)
}

fn bare(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    template
}
