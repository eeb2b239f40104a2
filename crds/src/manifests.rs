//! The generated CustomResourceDefinitions as YAML documents, in the order in which a user must install them.

/// Every CustomResourceDefinition.
pub const ALL: [&str; 7] = [
    include_str!("../generated/agents.yaml"),
    include_str!("../generated/modelapis.yaml"),
    include_str!("../generated/mcpservers.yaml"),
    include_str!("../generated/memorystores.yaml"),
    include_str!("../generated/accessgrants.yaml"),
    include_str!("../generated/authorizationpolicies.yaml"),
    include_str!("../generated/policyrevisions.yaml"),
];

/// The kinds that [`ALL`] defines, in the same order.
pub const KINDS: [&str; ALL.len()] =
    ["Agent", "ModelAPI", "MCPServer", "MemoryStore", "AccessGrant", "AuthorizationPolicy", RECORD];

/// The kind of the operator's own records, for which no policy answers.
pub const RECORD: &str = "PolicyRevision";

/// Returns the kinds for which policies answer.
pub fn claimed() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().filter(|kind| *kind != RECORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_has_its_kind() {
        for (definition, kind) in ALL.iter().zip(KINDS) {
            assert!(definition.contains(&format!("    kind: {kind}\n")), "{kind}: {definition:.400}");
        }
    }
}
