//! Decodes a list one item at a time, so that the memory never contains the JSON tree of a whole page of large objects.

use std::fmt;

use kaos_objects::ResourceType;
use serde::{
    Deserialize, Deserializer as _,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::cached_object::{Arrived, Extract};

/// One page of a list.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) items: Vec<Arrived>,
    /// Errors for items that cannot be cached.
    pub(super) malformed: Vec<String>,
    pub(super) version: String,
    pub(super) next: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    r#continue: Option<String>,
}

/// Decodes a page of objects of a type.
pub(super) fn decode(text: &str, of: &ResourceType, extract: Extract) -> serde_json::Result<Page> {
    let mut page = Page::default();
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Pages { page: &mut page, of, extract })?;
    json.end()?;
    page.next = page.next.filter(|next| !next.is_empty());
    Ok(page)
}

struct Pages<'a> {
    page: &'a mut Page,
    of: &'a ResourceType,
    extract: Extract,
}

impl<'de> Visitor<'de> for Pages<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "metadata" => {
                    let meta: PageMeta = map.next_value()?;
                    self.page.version = meta.resource_version;
                    self.page.next = meta.r#continue;
                }
                "items" => map.next_value_seed(Items { page: &mut *self.page, of: self.of, extract: self.extract })?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Items<'a> {
    page: &'a mut Page,
    of: &'a ResourceType,
    extract: Extract,
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(text) = items.next_element::<&'de RawValue>()? {
            match Arrived::read(text, self.of, self.extract) {
                Ok(arrived) => self.page.items.push(arrived),
                Err(unusable) => {
                    self.page.malformed.push(unusable.what);
                    self.page.items.extend(unusable.left.map(|left| *left));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> serde_json::Result<Page> {
        decode(text, &ResourceType::new("x.io/v1", "Widget"), Extract::default())
    }

    #[test]
    fn a_page_has_its_items_its_version_and_the_next_page() {
        let page = page(
            r#"{"kind": "WidgetList", "items": [{"metadata": {"name": "a", "uid": "u", "resourceVersion": "3"}}],
            "metadata": {"resourceVersion": "7", "continue": "x", "remainingItemCount": 1}}"#,
        )
        .unwrap();
        assert_eq!(page.items[0].item.value()["kind"], "Widget");
        assert_eq!((page.version.as_str(), page.next.as_deref()), ("7", Some("x")));
    }

    #[test]
    fn a_malformed_object_is_told_and_the_others_are_there() {
        let page = page(
            r#"{"items": [{"metadata": {"name": "odd"}}, 3, {"metadata": {"name": "a", "uid": "u", "resourceVersion": "3"}}],
            "metadata": {"resourceVersion": "7", "continue": ""}}"#,
        )
        .unwrap();
        assert_eq!(page.items.len(), 1);
        assert_eq!(
            page.malformed,
            [
                "odd: the object has no usable metadata.uid",
                "?: invalid type: integer `3`, expected an object at line 1 column 1"
            ]
        );
        assert_eq!(page.next, None);
    }

    #[test]
    fn an_object_that_is_too_deep_is_told_and_the_others_are_there() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
        let page = page(&format!(
            r#"{{"items": [{{"metadata": {{"name": "deep", "uid": "d", "resourceVersion": "4"}}, "spec": {deep}}},
            {{"metadata": {{"name": "a", "uid": "u", "resourceVersion": "3"}}}}], "metadata": {{"resourceVersion": "7"}}}}"#
        ))
        .unwrap();
        assert_eq!(page.items.len(), 2);
        assert!(page.items[0].item.value()["spec"].as_str().unwrap().starts_with("the object cannot be read: "));
        assert!(page.malformed[0].starts_with("deep: ") && page.malformed.len() == 1, "{:?}", page.malformed);
    }

    #[test]
    fn an_empty_list_has_three_spellings_and_other_json_is_an_error() {
        for text in [r#"{"items": []}"#, r#"{"items": null}"#, "{}"] {
            assert!(page(text).unwrap().items.is_empty());
        }
        for text in ["", "[]", r#"{"items": 3}"#, r#"{"items": [{"#] {
            assert!(page(text).is_err(), "{text}");
        }
    }
}
