//! `--unserved` and `--forbidden`: types that the simulated cluster does not serve, and types that the operator may not
//! read there.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::{contract::ResourceType, lookup::Sighting, near::nearest, policy::Stack};

/// Types that the user listed, each by its kind, with or without group and version.
pub(super) struct HiddenTypes {
    unserved: Vec<String>,
    forbidden: Vec<String>,
}

/// The error for a name that matches no type that a policy reads or optionally uses.
#[derive(Debug, thiserror::Error)]
#[error("{flag} {named}: no policy reads this type or optionally uses it: {remedy}")]
pub(super) struct HiddenTypeError {
    flag: &'static str,
    named: String,
    remedy: String,
}

impl HiddenTypes {
    /// Creates the value from the names. Fails if a name matches no type that a policy reads or optionally uses.
    pub(super) fn new(
        unserved: Vec<String>,
        forbidden: Vec<String>,
        stacks: &BTreeMap<ResourceType, Stack>,
    ) -> Result<Self, HiddenTypeError> {
        let policies = stacks.values().flat_map(|stack| std::iter::once(stack.base()).chain(stack.overlays()));
        let claims = policies.flat_map(|policy| &policy.descriptor().claims);
        let missed: BTreeSet<&ResourceType> =
            claims.flat_map(|claim| claim.reads.iter().chain(&claim.wishes)).collect();
        let of_unserved = unserved.iter().map(|named| ("--unserved", named));
        for (flag, named) in of_unserved.chain(forbidden.iter().map(|named| ("--forbidden", named))) {
            if !missed.iter().any(|of| means(named, of)) {
                let full: Vec<String> = missed.iter().map(|of| written(of)).collect();
                let kinds = missed.iter().map(|of| of.kind.as_str());
                let remedy = match nearest(named, kinds) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("name one of {}", full.join(", ")),
                };
                return Err(HiddenTypeError { flag, named: named.clone(), remedy });
            }
        }
        Ok(Self { unserved, forbidden })
    }

    /// Returns whether the simulated cluster lacks this type.
    pub(super) fn is_unserved(&self, of: &ResourceType) -> bool {
        self.unserved.iter().any(|named| means(named, of))
    }

    /// Returns the answer to each need of this type. Returns `None` if the operator may read the objects.
    pub(super) fn answer(&self, of: &ResourceType) -> Option<Sighting> {
        if self.is_unserved(of) {
            return Some(Sighting::Unserved);
        }
        let is_forbidden = self.forbidden.iter().any(|named| means(named, of));
        is_forbidden.then(|| Sighting::Forbidden(format!("the operator may not read {}: --forbidden", of.kind)))
    }
}

fn means(named: &str, of: &ResourceType) -> bool {
    named == of.kind || named == written(of)
}

fn written(of: &ResourceType) -> String {
    format!("{}/{}", of.api_version, of.kind)
}
