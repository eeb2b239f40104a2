//! `--unserved`: types that the simulated cluster does not serve.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::{contract::ResourceType, near::nearest, policy::Stack};

/// Types that the user listed, each by its kind, with or without group and version.
pub(super) struct UnservedTypes(Vec<String>);

/// The error for a name that matches no type that a policy reads or optionally uses.
#[derive(Debug, thiserror::Error)]
#[error("--unserved {named}: no policy reads this type or optionally uses it: {remedy}")]
pub(super) struct UnservedError {
    named: String,
    remedy: String,
}

impl UnservedTypes {
    /// Creates the value from the names. Fails if a name matches no type that a policy reads or optionally uses.
    pub(super) fn new(named: Vec<String>, stacks: &BTreeMap<ResourceType, Stack>) -> Result<Self, UnservedError> {
        let policies = stacks.values().flat_map(|stack| std::iter::once(stack.base()).chain(stack.overlays()));
        let claims = policies.flat_map(|policy| &policy.descriptor().claims);
        let missed: BTreeSet<&ResourceType> =
            claims.flat_map(|claim| claim.reads.iter().chain(&claim.wishes)).collect();
        for named in &named {
            if !missed.iter().any(|of| means(named, of)) {
                let full: Vec<String> = missed.iter().map(|of| written(of)).collect();
                let kinds = missed.iter().map(|of| of.kind.as_str());
                let remedy = match nearest(named, kinds) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("name one of {}", full.join(", ")),
                };
                return Err(UnservedError { named: named.clone(), remedy });
            }
        }
        Ok(Self(named))
    }

    /// Returns whether the simulated cluster lacks this type.
    pub(super) fn contains(&self, of: &ResourceType) -> bool {
        self.0.iter().any(|named| means(named, of))
    }
}

fn means(named: &str, of: &ResourceType) -> bool {
    named == of.kind || named == written(of)
}

fn written(of: &ResourceType) -> String {
    format!("{}/{}", of.api_version, of.kind)
}
