//! The facts of a Secret that other code can see: its keys, and a digest of its content. No code outside of this file
//! sees the values.

use hmac::{Hmac, KeyInit as _, Mac as _};
use kaos_objects::{
    SecretFacts,
    digest::{Digest, canonical},
};
use serde_json::Value;
use sha2::Sha256;

/// Returns the facts of a Secret. The values of the Secret stay in this function.
pub(super) fn secret_facts(secret: &Value, key: &[u8]) -> SecretFacts {
    let data = &secret["data"];
    let keys = data.as_object().into_iter().flat_map(|data| data.keys().cloned());
    let mut keys: Vec<String> = keys.collect();
    keys.sort_unstable();
    // This call returns no error, because an HMAC accepts keys of any length.
    let mac = Hmac::<Sha256>::new_from_slice(key).map(|mac| mac.chain_update(canonical(data)).finalize());
    let digest = mac.map_or_else(|_| String::new(), |mac| Digest::of(&mac.into_bytes()).hex());
    SecretFacts { present: true, keys, digest }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_are_sorted_names_and_a_digest_that_depends_on_values_and_key() {
        let one = json!({"data": {"b": "MQ==", "a": ""}, "type": "Opaque"});
        let facts = secret_facts(&one, b"key");
        assert_eq!(facts.keys, ["a", "b"]);
        assert_eq!(facts.digest.len(), 64);
        assert_eq!(facts, secret_facts(&json!({"data": {"a": "", "b": "MQ=="}}), b"key"));
        assert_ne!(facts.digest, secret_facts(&one, b"another").digest);
        assert_ne!(facts.digest, secret_facts(&json!({"data": {"a": "", "b": "Mg=="}}), b"key").digest);
        assert!(!format!("{facts:?}").contains("MQ=="));
    }
}
