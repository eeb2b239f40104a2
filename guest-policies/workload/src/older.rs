//! Reads `spec.container` of an object that possibly uses deprecated fields.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use kaos_policy_sdk::Object;
use serde_json::{Map, Value};

/// The fields of the main container that the object sets.
#[derive(Debug)]
pub struct OwnContainer<'a> {
    /// `spec.container`, possibly with resources from a deprecated field.
    pub value: Cow<'a, Value>,
    /// The path of the deprecated field, if the resources come from this field.
    pub older: Option<String>,
}

/// Returns `spec.container`. If `spec.container` has no resources, adds the resources at the path `older`. Pass a path
/// only if the resources at this path apply to the main container.
pub fn container<'a>(object: &'a Object, older: Option<&[&str]>) -> Option<OwnContainer<'a>> {
    let own = object.at(&["spec", "container"]).filter(|own| !own.is_null());
    let found = older.and_then(|path| Some((path, object.at(path)?))).filter(|(_, value)| !value.is_null());
    let Some((path, resources)) = found else {
        return own.map(|own| OwnContainer { value: Cow::Borrowed(own), older: None });
    };
    let mut container = own.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let mut older = None;
    if let Some(members) = container.as_object_mut() {
        let newer = members.get("resources").is_some_and(|value| !value.is_null());
        if !newer {
            members.insert("resources".to_owned(), resources.clone());
            older = Some(path.join("."));
        }
    }
    Some(OwnContainer { value: Cow::Owned(container), older })
}

#[cfg(test)]
mod tests {
    use super::container;
    use kaos_policy_sdk::Object;
    use serde_json::{Value, json};

    #[test]
    fn older_resources_apply_if_the_container_has_none() {
        let of = |spec: Value| {
            let object = Object::new(json!({"spec": spec}));
            container(&object, Some(&["spec", "resources"])).map(|own| own.value.into_owned())
        };
        assert_eq!(of(json!({"container": null, "resources": null})), None);
        assert_eq!(of(json!({"container": {"image": "i"}})), Some(json!({"image": "i"})));
        assert_eq!(of(json!({"resources": {"a": 1}})), Some(json!({"resources": {"a": 1}})));
        let both = json!({"container": {"resources": {"b": 2}}, "resources": {"a": 1}});
        assert_eq!(of(both), Some(json!({"resources": {"b": 2}})));
        let null = json!({"container": {"resources": null}, "resources": {"a": 1}});
        assert_eq!(of(null), Some(json!({"resources": {"a": 1}})));
    }
}
