//! Reads the CRDs that are embedded in the binary.

use serde_json::Value;

use crate::input::parse;

/// Returns all CRDs in the order in which to install them. Parses each CRD only when the iterator reaches it, so that
/// parsed CRDs do not stay in memory while the operator runs.
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
