//! The identity of an object: group, kind, namespace and name.

use std::fmt;

use kaos_policy::{
    contract::{Reference, Scopes},
    names::is_label,
};
use serde_json::Value;

/// The identity of an object. The API version is not part of the identity, because a version is only a view of the same
/// object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The API group. Empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace. `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl Identity {
    /// Reads the identity of an object. Sets the default namespace if the object needs a namespace and has none. An
    /// error contains the path of a field, and the problem.
    pub fn of(object: &mut Value, default_namespace: &str, scopes: &Scopes) -> Result<Self, (&'static str, String)> {
        let text = |path: &'static str, value: &Value| match value {
            // Refuse line breaks, because names appear in comments and messages of one line.
            Value::String(text) if text.contains(|c: char| c.is_control() || c.is_whitespace()) => {
                Err((path, "must not contain blanks or control characters".to_owned()))
            }
            Value::String(text) if !text.is_empty() => Ok(text.clone()),
            Value::Null => Err((path, "missing: every object needs this field".to_owned())),
            _ => Err((path, "must be a text that is not empty".to_owned())),
        };
        if !object.is_object() {
            return Err(("", "not an object: it must start with apiVersion, kind and metadata".to_owned()));
        }
        let api_version = text("apiVersion", &object["apiVersion"])?;
        let kind = text("kind", &object["kind"])?;
        let metadata = &object["metadata"];
        if metadata["name"].is_null() && metadata["generateName"].is_string() {
            return Err((
                "metadata.name",
                "missing: set a name, because an object with generateName gets its name only \
                                          in a cluster"
                    .into(),
            ));
        }
        let name = text("metadata.name", &metadata["name"])?;
        let group = group(&api_version).to_owned();
        let namespace = if scopes.is_cluster_scoped(&api_version, &kind) {
            None
        } else if metadata["namespace"].is_null() || metadata["namespace"] == "" {
            object["metadata"]["namespace"] = default_namespace.into();
            Some(default_namespace.to_owned())
        } else {
            let namespace = text("metadata.namespace", &metadata["namespace"])?;
            if !is_label(&namespace) {
                let remedy = "use at most 63 lower-case letters, digits and inner hyphens";
                return Err(("metadata.namespace", format!("not the name of a namespace: {remedy}")));
            }
            Some(namespace)
        };
        Ok(Self { group, kind, namespace, name })
    }
}

impl From<&Reference> for Identity {
    fn from(reference: &Reference) -> Self {
        let Reference { api_version, kind, namespace, name } = reference;
        let (group, namespace) = (group(api_version).to_owned(), namespace.clone());
        Self { group, kind: kind.clone(), namespace, name: name.clone() }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

pub(super) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_without_a_namespace_gets_the_default_one() {
        let mut object = json!({"apiVersion": "example.org/v1", "kind": "Kite", "metadata": {"name": "red"}});
        let identity = Identity::of(&mut object, "sky", &Scopes::default()).unwrap();
        assert_eq!(identity.to_string(), "Kite sky/red");
        assert_eq!(object["metadata"]["namespace"], "sky");
    }

    #[test]
    fn a_cluster_scoped_object_stays_without_a_namespace() {
        let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sky"}});
        assert_eq!(Identity::of(&mut object, "default", &Scopes::default()).unwrap().to_string(), "Namespace sky");
        assert!(object["metadata"]["namespace"].is_null());
    }

    #[test]
    fn a_missing_field_is_named_by_its_path() {
        for (object, path) in [
            (json!([]), ""),
            (json!({"kind": "Kite"}), "apiVersion"),
            (json!({"apiVersion": "v1"}), "kind"),
            (json!({"apiVersion": "v1", "kind": "Kite"}), "metadata.name"),
            (json!({"apiVersion": "v1", "kind": "Kite", "metadata": {"generateName": "a-"}}), "metadata.name"),
            (json!({"apiVersion": "v1", "kind": "Kite", "metadata": {"name": 3}}), "metadata.name"),
            (json!({"apiVersion": "v1", "kind": "Kite", "metadata": {"name": "a\nb: c"}}), "metadata.name"),
            (
                json!({"apiVersion": "v1", "kind": "Kite", "metadata": {"name": "a", "namespace": 3}}),
                "metadata.namespace",
            ),
            (
                json!({"apiVersion": "v1", "kind": "Kite", "metadata": {"name": "a", "namespace": "Sky.."}}),
                "metadata.namespace",
            ),
            (json!({"apiVersion": "v1", "kind": "Kite", "metadata": "a"}), "metadata.name"),
        ] {
            assert_eq!(
                Identity::of(&mut object.clone(), "default", &Scopes::default()).unwrap_err().0,
                path,
                "{object}"
            );
        }
    }
}
