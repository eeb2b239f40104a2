//! Decodes only the name, the UID, the version and the hashes of the labels of an object, for watches that need no
//! more. The decoder skips the rest of the text, so that annotations and managed fields take no memory.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::known_labels::{KnownLabels, Marks};

/// The decoded facts of an object.
#[derive(Debug)]
pub(super) struct BareObject {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) labels: KnownLabels,
}

/// The name of a metadata field that is missing in an object.
pub(super) type Lacking = &'static str;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Bare<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
}

/// Decodes an object's namespace, name and version. With `with_labels`, also decodes the hashes of the labels.
pub(super) fn read(sent: &RawValue, with_labels: bool) -> serde_json::Result<Result<BareObject, Lacking>> {
    let Bare { metadata } = serde_json::from_str(sent.get())?;
    let labels = match metadata.labels {
        Some(labels) if with_labels => serde_json::from_str::<Option<Marks>>(labels.get())?,
        _ => None,
    };
    let labels = labels.map_or_else(|| KnownLabels::Marks(Box::default()), |Marks(labels)| labels);
    Ok(complete(metadata, labels))
}

fn complete(metadata: Metadata<'_>, labels: KnownLabels) -> Result<BareObject, Lacking> {
    let text = |text: Option<String>, field| text.filter(|text| !text.is_empty()).ok_or(field);
    let (name, uid) = (text(metadata.name, "name")?, text(metadata.uid, "uid")?);
    let version = metadata.resource_version.and_then(|version| version.parse().ok()).ok_or("resourceVersion")?;
    Ok(BareObject { namespace: metadata.namespace.unwrap_or_default(), name, uid, version, labels })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(object: &serde_json::Value) -> BareObject {
        let text = object.to_string();
        super::read(serde_json::from_str(&text).unwrap(), true).unwrap().unwrap()
    }

    #[test]
    fn annotations_and_managed_fields_are_skipped() {
        let object = json!({"metadata": {"name": "a", "namespace": "t", "uid": "u", "resourceVersion": "7",
            "labels": {"x": "y"}, "annotations": {"long": "x".repeat(200_000)}, "managedFields": [{"manager": "x"}]}});
        let bare = read(&object);
        assert_eq!((&*bare.namespace, &*bare.name, &*bare.uid, bare.version), ("t", "a", "u", 7));
        assert_eq!(bare.labels, KnownLabels::Marks([crate::watch::known_labels::mark("x", "y")].into()));
    }

    #[test]
    fn an_object_without_identity_is_an_error_that_names_the_field() {
        let whole = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "labels": null}});
        assert_eq!(read(&whole).name, "a");
        for field in ["name", "uid", "resourceVersion"] {
            let mut object = whole.clone();
            object["metadata"][field] = json!("");
            let text = object.to_string();
            let read = super::read(serde_json::from_str(&text).unwrap(), false).unwrap();
            assert_eq!(read.unwrap_err(), field);
        }
    }
}
