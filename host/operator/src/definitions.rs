//! The definitions that the binary brings, read.

use serde_json::Value;

use crate::input::parse;

/// All of them, in the order to install them. Each is read when it comes to it: kept, they would take an operator memory
/// for as long as it runs.
pub(crate) fn embedded() -> impl Iterator<Item = Value> {
    let read = |text: &&str| parse(&"the embedded CRDs".into(), text, "").0;
    kaos_crds::manifests::ALL.iter().flat_map(read).map(|document| document.object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_can_be_read() {
        assert_eq!(embedded().count(), kaos_crds::manifests::ALL.len());
    }
}
