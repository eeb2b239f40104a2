//! The rights that the user lacks. A command names each missing right once, and shows the objects that it could read.

use kaos_policy::contract::ResourceType;
use serde::Serialize;

/// A right that the user lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error(
    "this user has no right to {verb} {resource}{place}: ask an administrator for the right; `kubectl auth can-i \
     {verb} {resource}{flag}` checks it",
    place = .namespace.as_ref().map_or_else(|| " in all namespaces".to_owned(), |name| format!(" in namespace {name}")),
    flag = .namespace.as_ref().map_or_else(|| " -A".to_owned(), |name| format!(" -n {name}")),
)]
pub(in crate::cli) struct MissingRight {
    /// The verb, as in a Role.
    pub(in crate::cli) verb: &'static str,
    /// The plural and the group of the type, such as `deployments.apps`.
    pub(in crate::cli) resource: String,
    /// The namespace; `None` for all namespaces.
    pub(in crate::cli) namespace: Option<String>,
}

/// Returns the name of a type in the form of kubectl, such as `deployments.apps`.
pub(in crate::cli) fn resource(plural: Option<&str>, of: &ResourceType) -> String {
    let plural = plural.map_or_else(|| of.kind.to_lowercase(), str::to_owned);
    match of.group() {
        "" => plural,
        group => format!("{plural}.{group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_names_verb_resource_namespace_and_remedy() {
        let deployments = resource(Some("deployments"), &ResourceType::new("apps/v1", "Deployment"));
        let missing = MissingRight { verb: "list", resource: deployments, namespace: Some("team".to_owned()) };
        assert_eq!(
            missing.to_string(),
            "this user has no right to list deployments.apps in namespace team: ask an administrator for the right; \
             `kubectl auth can-i list deployments.apps -n team` checks it"
        );
        let pods = resource(Some("pods"), &ResourceType::new("v1", "Pod"));
        let missing = MissingRight { verb: "list", resource: pods, namespace: None };
        assert!(missing.to_string().contains("list pods in all namespaces"), "{missing}");
        assert!(missing.to_string().contains("`kubectl auth can-i list pods -A`"), "{missing}");
    }
}
