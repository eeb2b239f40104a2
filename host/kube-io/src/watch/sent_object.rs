//! Decodes an object from the server. Leaves the managed fields as text, because most callers do not need them.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

/// An object from the server, and the text of its managed fields.
#[derive(Debug)]
pub(super) struct SentObject<'a> {
    /// The object without managed fields.
    pub(super) object: Value,
    pub(super) managed: Option<&'a RawValue>,
}

/// The metadata of an object.
struct SentMetadata<'a> {
    fields: Map<String, Value>,
    managed: Option<&'a RawValue>,
}

struct ObjectVisitor;

struct MetadataVisitor;

impl<'de> Deserialize<'de> for SentObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

impl<'de> Deserialize<'de> for SentMetadata<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataVisitor)
    }
}

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = SentObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SentObject<'de>, A::Error> {
        let (mut object, mut managed) = (Map::new(), None);
        while let Some(field) = map.next_key::<String>()? {
            let value = if field == "metadata" {
                let metadata: SentMetadata<'_> = map.next_value()?;
                managed = metadata.managed;
                Value::Object(metadata.fields)
            } else {
                map.next_value()?
            };
            object.insert(field, value);
        }
        Ok(SentObject { object: Value::Object(object), managed })
    }
}

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = SentMetadata<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SentMetadata<'de>, A::Error> {
        let (mut fields, mut managed) = (Map::new(), None);
        while let Some(field) = map.next_key::<String>()? {
            if field == "managedFields" {
                managed = Some(map.next_value()?);
            } else {
                fields.insert(field, map.next_value()?);
            }
        }
        Ok(SentMetadata { fields, managed })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_apart_and_all_else_is_as_sent() {
        let text = r#"{"kind": "W", "metadata": {"name": "a", "managedFields": [{"manager": "x"}]},
            "spec": {"metadata": {"managedFields": 1}, "n": 1.5, "m": -9007199254740993}}"#;
        let SentObject { object, managed } = serde_json::from_str(text).unwrap();
        let spec = json!({"metadata": {"managedFields": 1}, "n": 1.5, "m": -9_007_199_254_740_993_i64});
        assert_eq!(object, json!({"kind": "W", "metadata": {"name": "a"}, "spec": spec}));
        assert_eq!(managed.unwrap().get(), r#"[{"manager": "x"}]"#);
    }

    #[test]
    fn deep_managed_fields_do_not_hide_an_object() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let text = format!(r#"{{"metadata": {{"name": "a", "managedFields": {deep}}}, "spec": {{}}}}"#);
        assert_eq!(serde_json::from_str::<SentObject<'_>>(&text).unwrap().object["metadata"], json!({"name": "a"}));
        let text = format!(r#"{{"metadata": {{"name": "a"}}, "spec": {deep}}}"#);
        assert!(serde_json::from_str::<SentObject<'_>>(&text).is_err());
    }

    #[test]
    fn an_object_without_metadata_has_no_managed_fields() {
        assert!(serde_json::from_str::<SentObject<'_>>("{}").unwrap().managed.is_none());
        for odd in ["1", "[]", "null", r#"{"metadata": []}"#, r#"{"metadata": null}"#] {
            assert!(serde_json::from_str::<SentObject<'_>>(odd).is_err(), "{odd}");
        }
    }
}
