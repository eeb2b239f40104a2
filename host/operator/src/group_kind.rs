//! A kind of an API group, without a version. Command-line flags name kinds in this form.

use std::{fmt, str::FromStr};

use kaos_policy::{
    contract::ResourceType,
    names::{is_kind, is_subdomain},
};

/// A kind of an API group, without a version: `ConfigMap`, `Deployment.apps`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKind {
    group: String,
    kind: String,
}

/// The error for a text that is not the name of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write KIND.GROUP, like Deployment.apps, or only KIND for a kind of the core group, like ConfigMap")]
pub struct NotAKind;

impl From<&ResourceType> for GroupKind {
    fn from(of: &ResourceType) -> Self {
        Self { group: of.group().to_owned(), kind: of.kind.clone() }
    }
}

impl FromStr for GroupKind {
    type Err = NotAKind;

    fn from_str(text: &str) -> Result<Self, NotAKind> {
        let (kind, group) = match text.split_once('.') {
            Some((kind, group)) => (kind, Some(group)),
            None => (text, None),
        };
        if !is_kind(kind) || group.is_some_and(|group| !is_subdomain(group)) {
            return Err(NotAKind);
        }
        Ok(Self { group: group.unwrap_or_default().to_owned(), kind: kind.to_owned() })
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_with_their_group_and_without_a_version() {
        for text in ["ConfigMap", "Deployment.apps", "HTTPRoute.gateway.networking.k8s.io"] {
            assert_eq!(text.parse::<GroupKind>().unwrap().to_string(), text);
        }
        for version in ["apps/v1", "apps/v1beta1"] {
            assert_eq!(GroupKind::from(&ResourceType::new(version, "Deployment")).to_string(), "Deployment.apps");
        }
        for text in
            ["", "deployments.apps", "Deployment.", "apps/v1", "apps/v1 Deployment", "Deployment.apps/v1", " Pod"]
        {
            assert_eq!(text.parse::<GroupKind>(), Err(NotAKind), "{text}");
        }
    }
}
