//! Kinds that are served wherever an operator works: those of its own definitions, and Secrets, which it has a flag for.
//!
//! A policy that writes one of them in other capitals means none. Nothing would ever be of its kind, but who asks about an
//! `agent` could not be told which of the two is meant, and rights are named by plurals, which are the same for both.

use std::sync::LazyLock;

use kaos_crds::API_VERSION;
use kaos_policy::contract::ResourceType;

/// All of them.
pub(crate) static SERVED: LazyLock<Vec<ResourceType>> = LazyLock::new(|| {
    let own = ["Agent", "ModelAPI", "MCPServer", "PolicyRevision"].map(|kind| ResourceType::new(API_VERSION, kind));
    own.into_iter().chain([ResourceType::new("v1", "Secret")]).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_of_the_operators_own_is_among_them() {
        let own = |of: &&ResourceType| of.api_version == API_VERSION;
        assert_eq!(SERVED.iter().filter(own).count(), kaos_crds::manifests::ALL.len());
        for definition in kaos_crds::manifests::ALL {
            let defined = |of: &ResourceType| definition.contains(&format!("    kind: {}\n", of.kind));
            assert!(SERVED.iter().any(defined), "{definition:.400}");
        }
    }
}
