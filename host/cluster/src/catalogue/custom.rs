//! Builds the types that a `CustomResourceDefinition` describes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Column, Custom, Family, Resource, Scale};
use crate::schema::{Fields, Node, Scalar, Shape, definitions, node::Reader, rules::Rules};

const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Returns one type for each served version of a `CustomResourceDefinition`.
pub(super) fn resources(definition: &Value, since: u64) -> Vec<Resource> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let stored = versions.iter().find(|version| version["storage"] == true);
    let storage_version = stored.map(|version| text(&version["name"])).unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] == true);
    served.map(|version| resource(spec, version, &storage_version, since)).collect()
}

fn resource(spec: &Value, version: &Value, storage_version: &str, since: u64) -> Resource {
    let names = &spec["names"];
    let schema = version["schema"]["openAPIV3Schema"].clone();
    let name = text(&version["name"]);
    let scale = &version["subresources"]["scale"];
    Resource {
        group: text(&spec["group"]),
        kind: text(&names["kind"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: VERBS,
        status: version["subresources"]["status"].is_object(),
        scale: scale.is_object().then(|| Scale {
            replicas: text(&scale["specReplicasPath"]),
            status_replicas: text(&scale["statusReplicasPath"]),
            selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
        }),
        node: root(&schema),
        family: Family::Custom,
        custom: Some(Custom {
            rules: Rules::compile(&schema),
            schema,
            columns: columns(version),
            selectable: version["selectableFields"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
                .collect(),
            storage_version: storage_version.to_owned(),
            since,
        }),
        version: name,
    }
}

/// Reads a schema, and adds the fields that every object has: `apiVersion`, `kind` and `metadata`.
fn root(schema: &Value) -> Node {
    let mut node = Reader::structural().read(schema);
    let any = matches!(node.shape, Shape::Any);
    if any {
        node.shape = Shape::Map(Fields {
            other: Some(Arc::new(Node { keeps_unknown: true, ..Node::default() })),
            ..Fields::default()
        });
    }
    if let Shape::Map(fields) = &mut node.shape {
        let string = Arc::new(Node { shape: Shape::Scalar(Scalar::String), ..Node::default() });
        fields.known.insert("apiVersion".into(), Arc::clone(&string));
        fields.known.insert("kind".into(), string);
        fields.known.insert("metadata".into(), Arc::clone(&definitions::METADATA));
    }
    node
}

fn columns(version: &Value) -> Vec<Column> {
    let age = json!([{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "CreationTimestamp is a timestamp representing the server time when this object was created."}]);
    let given = version["additionalPrinterColumns"].as_array().filter(|columns| !columns.is_empty());
    let columns = given.or_else(|| age.as_array());
    columns
        .into_iter()
        .flatten()
        .map(|column| Column {
            name: text(&column["name"]),
            type_: text(&column["type"]),
            format: text(&column["format"]),
            description: text(&column["description"]),
            priority: column["priority"].as_i64().unwrap_or_default(),
            path: text(&column["jsonPath"]),
        })
        .collect()
}

/// Returns the rank of a version. The order is `v2`, `v1`, `v2beta1`, `v1alpha1`, then all others.
pub(super) fn priority(version: &str) -> (u8, u64, u64) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let major = rest[..digits].parse().ok()?;
        let (stage, minor) = match &rest[digits..] {
            "" => (3, 0),
            rest if rest.starts_with("beta") => (2, rest[4..].parse().unwrap_or_default()),
            rest if rest.starts_with("alpha") => (1, rest[5..].parse().unwrap_or_default()),
            _ => return None,
        };
        Some((stage, major, minor))
    };
    parse().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn stable_versions_come_before_others() {
        let mut versions = ["foo", "v1", "v1alpha2", "v2", "v1beta1", "v1alpha1"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v2", "v1", "v1beta1", "v1alpha2", "v1alpha1", "foo"]);
    }
}
