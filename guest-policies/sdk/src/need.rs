//! Builds needs: references to other objects that the policy must see, and the fields of these objects that the policy
//! reads.
//!
//! ```
//! use kaos_policy_sdk::NeedExt as _;
//! use kaos_policy_sdk::need::{key, named, reference};
//!
//! let registry = named("registry", reference("v1", "ConfigMap", "runtimes")).fields([key("data", "runtimes.yaml")]);
//! assert_eq!(registry.fields, ["data[\"runtimes.yaml\"]"]);
//! ```

use crate::json;
use crate::types::{Need, Reference, ResourceType, Selector, Target};
use alloc::{borrow::ToOwned, format, string::String, vec::Vec};
use serde_json::Value;

/// Returns the resource type with this API version and kind, for claims and selectors.
pub fn resource_type(api_version: &str, kind: &str) -> ResourceType {
    ResourceType { api_version: api_version.to_owned(), kind: kind.to_owned() }
}

/// Returns a reference to an object in the namespace of the object for which the policy answers.
pub fn reference(api_version: &str, kind: &str, name: &str) -> Reference {
    Reference { api_version: api_version.to_owned(), kind: kind.to_owned(), namespace: None, name: name.to_owned() }
}

/// Returns a reference to an object in another namespace. To read this object, the policy needs a grant.
pub fn reference_in(namespace: &str, api_version: &str, kind: &str, name: &str) -> Reference {
    Reference { namespace: Some(namespace.to_owned()), ..reference(api_version, kind, name) }
}

/// Returns a need for the object that `reference` names. The policy chooses the `id`.
pub fn named(id: impl Into<String>, reference: Reference) -> Need {
    Need { id: id.into(), target: Target::Named(reference), fields: Vec::new(), optional: false }
}

/// Returns a need for all objects of a type that have all of `labels`, in the namespace of the object for which the
/// policy answers.
pub fn labelled(id: impl Into<String>, of: ResourceType, labels: &[(&str, &str)]) -> Need {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let target = Target::Labelled(Selector { of, namespace: None, labels });
    Need { id: id.into(), target, fields: Vec::new(), optional: false }
}

/// Returns a need for all objects of a type in `namespace` that have all of `labels`. To read another namespace, the
/// policy needs a grant.
pub fn labelled_in(namespace: &str, id: impl Into<String>, of: ResourceType, labels: &[(&str, &str)]) -> Need {
    let mut need = labelled(id, of, labels);
    if let Target::Labelled(selector) = &mut need.target {
        selector.namespace = Some(namespace.to_owned());
    }
    need
}

/// Marks a need as optional: the policy can make its plan without the object, and no condition reports a missing
/// object.
pub fn optional(need: Need) -> Need {
    Need { optional: true, ..need }
}

/// Adds to a need the fields that the policy reads.
pub trait NeedExt {
    /// Limits the need to the fields at `paths` and the fields that identify an object. So a change of another field
    /// begins no pass. The contract (`wit/policy.wit`) describes the format of the paths. Further calls add paths.
    #[must_use]
    fn fields<P: Into<String>>(self, paths: impl IntoIterator<Item = P>) -> Self;
}

impl NeedExt for Need {
    fn fields<P: Into<String>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.fields.extend(paths.into_iter().map(Into::into));
        self
    }
}

/// Returns the path of the member `name` of a map: `data["runtimes.yaml"]`.
pub fn key(map: &str, name: &str) -> String {
    format!("{map}[{}]", quoted(name))
}

/// Returns a path that selects the value at `path` only if this value equals `text`: `spec.models[="gpt-4o"]`. If the
/// value is a list, the new path selects the items that equal `text`.
pub fn equal(path: &str, text: &str) -> String {
    format!("{path}[={}]", quoted(text))
}

/// Returns the path that selects the maps of a list by a member: `status.conditions[type="Ready"]`.
pub fn items(list: &str, member: &str, text: &str) -> String {
    format!("{list}[{member}={}]", quoted(text))
}

fn quoted(text: &str) -> String {
    json::text(&Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::{
        NeedExt as _, equal, items, key, labelled, labelled_in, named, optional, reference, reference_in, resource_type,
    };
    use crate::types::Target;

    #[test]
    fn a_reference_stays_in_the_namespace_of_the_object_unless_it_names_another() {
        assert_eq!(reference("v1", "ConfigMap", "c").namespace, None);
        let other = reference_in("kaos-system", "v1", "ConfigMap", "c");
        assert_eq!((other.namespace.as_deref(), other.name.as_str()), (Some("kaos-system"), "c"));
        let need = named("own", other.clone());
        assert_eq!((need.id.as_str(), need.target), ("own", Target::Named(other)));
    }

    #[test]
    fn a_selector_asks_for_all_of_its_labels() {
        let need = labelled("pods", resource_type("v1", "Pod"), &[("app", "a"), ("tier", "b")]);
        assert!(!need.optional && optional(need.clone()).optional);
        let Target::Labelled(selector) = need.target else { panic!("must be a selector") };
        assert_eq!((selector.of.kind.as_str(), selector.namespace), ("Pod", None));
        let Target::Labelled(other) = labelled_in("team", "pods", resource_type("v1", "Pod"), &[]).target else {
            panic!("must be a selector")
        };
        assert_eq!((other.namespace.as_deref(), other.labels.len()), (Some("team"), 0));
        assert_eq!(selector.labels, [("app".to_owned(), "a".to_owned()), ("tier".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn fields_are_paths_that_the_host_can_read() {
        let need = named("x", reference("v1", "ConfigMap", "c")).fields(["spec.mode"]).fields([
            key("data", "a.\"b\"\\"),
            equal("spec.models", "x/y"),
            items("status.conditions", "type", "Ready"),
        ]);
        let paths =
            ["spec.mode", r#"data["a.\"b\"\\"]"#, r#"spec.models[="x/y"]"#, r#"status.conditions[type="Ready"]"#];
        assert_eq!(need.fields, paths);
        assert!(kaos_fields::Fields::parse(&need.fields).is_ok());
    }
}
