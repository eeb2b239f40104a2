//! Pod templates: their hash, and equality without it.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The label that tells the pods of two templates apart.
pub(super) const HASH: &str = "pod-template-hash";

/// A hash of a template, in characters that names may have.
pub(super) fn hash(template: &Value) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(bare(template).to_string().as_bytes());
    digest.iter().take(10).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

/// Whether two templates make the same pods.
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
