//! The definitions that the binary brings, read.

use std::sync::LazyLock;

use serde_json::Value;

use crate::input::parse;

/// All of them, in the order to install them.
pub(crate) static EMBEDDED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let read = |text: &&str| parse(&"the embedded CRDs".into(), text, "").0;
    let documents = kaos_crds::manifests::ALL.iter().flat_map(read);
    documents.map(|document| document.object).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_can_be_read() {
        assert_eq!(EMBEDDED.len(), kaos_crds::manifests::ALL.len());
    }
}
