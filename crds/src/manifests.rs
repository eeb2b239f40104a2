//! The generated CustomResourceDefinitions as YAML, one document each, in the order to install them.

/// Every definition.
pub const ALL: [&str; 4] = [
    include_str!("../generated/agents.yaml"),
    include_str!("../generated/modelapis.yaml"),
    include_str!("../generated/mcpservers.yaml"),
    include_str!("../generated/policyrevisions.yaml"),
];
