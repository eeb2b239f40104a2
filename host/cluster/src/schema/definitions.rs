//! The OpenAPI definitions of the built-in kinds, recorded from a real API server by
//! `tests/suites/manifests/recordings`.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};

use super::node::{Node, Reader};

/// All definitions by name.
static DEFINITIONS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../schemas/definitions.json")).unwrap_or_default());

/// The name of the definition of `ObjectMeta`.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The schema tree of `ObjectMeta`, for custom resources.
pub(crate) static METADATA: LazyLock<Arc<Node>> = LazyLock::new(|| Arc::new(read(OBJECT_META)));

/// The names of the definitions, by group, version and kind.
static BY_KIND: LazyLock<BTreeMap<(String, String, String), String>> =
    LazyLock::new(|| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        DEFINITIONS
            .iter()
            .flat_map(|(name, schema)| {
                schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten().map(move |kind| {
                    ((text(&kind["group"]), text(&kind["version"]), text(&kind["kind"])), name.clone())
                })
            })
            .collect()
    });

/// Returns all definitions, for `/openapi/v3`.
#[cfg(feature = "kubectl")]
pub(crate) fn all() -> &'static Map<String, Value> {
    &DEFINITIONS
}

/// Returns the name of a kind's definition, or `None` if the schemas do not contain the kind.
pub(crate) fn name_of(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    BY_KIND.get(&(group.to_owned(), version.to_owned(), kind.to_owned())).map(String::as_str)
}

/// Reads a definition into a schema tree.
pub(crate) fn read(name: &str) -> Node {
    DEFINITIONS.get(name).map(|schema| Reader::of_definitions(&DEFINITIONS).read(schema)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Items, Shape, Strategy};

    #[test]
    fn containers_of_a_deployment_are_keyed_by_name() {
        let node = read(name_of("apps", "v1", "Deployment").unwrap());
        let path = ["spec", "template", "spec", "containers"];
        let containers = path.iter().fold(Arc::new(node), |node, field| node.field(field).unwrap().clone());
        let Shape::List(list) = &containers.shape else { panic!("not a list") };
        assert_eq!(list.items, Items::Keyed(vec!["name".into()]));
        assert_eq!(list.strategic, Strategy::MergeBy("name".into()));
    }

    #[test]
    fn a_schema_that_contains_itself_can_be_read() {
        assert!(name_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition").map(read).is_some());
    }
}
