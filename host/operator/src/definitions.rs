//! Reads the CustomResourceDefinitions in the binary.

use serde_json::Value;

use crate::input::parse;

/// Returns all definitions in the order in which to install them. Parses each one only when the iterator reaches it:
/// keeping them parsed would cost memory for the lifetime of the operator.
pub(crate) fn embedded() -> impl Iterator<Item = Value> {
    let read = |text: &&str| parse(&"the embedded CRDs".into(), text, "").0;
    kaos_crds::manifests::ALL.iter().flat_map(read).map(|document| document.object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_embedded_crds_can_be_read() {
        assert_eq!(embedded().count(), kaos_crds::manifests::ALL.len());
    }
}
