//! Reads `spec.container` of an object that possibly uses deprecated fields.

use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use kaos_policy_sdk::Object;
use serde_json::{Map, Value};

/// Returns `spec.container`. If `spec.container` has no resources, adds the resources at the path `older`. Pass a path
/// only if the resources at this path apply to the main container.
pub fn container<'a>(object: &'a Object, older: Option<&[&str]>) -> Option<Cow<'a, Value>> {
    let own = object.at(&["spec", "container"]).filter(|own| !own.is_null());
    let Some(resources) = older.and_then(|older| object.at(older)).filter(|value| !value.is_null()) else {
        return own.map(Cow::Borrowed);
    };
    let mut container = own.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(members) = container.as_object_mut() {
        let newer = members.get("resources").is_some_and(|value| !value.is_null());
        if !newer {
            members.insert("resources".to_owned(), resources.clone());
        }
    }
    Some(Cow::Owned(container))
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
            container(&object, Some(&["spec", "resources"])).map(std::borrow::Cow::into_owned)
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
