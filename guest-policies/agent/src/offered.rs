//! Which models a `ModelAPI` offers.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_policy_sdk::Object;

/// The models that `api` offers, as patterns; none where the ModelAPI itself is not in order, which is its
/// own policy's to tell.
pub(crate) fn offered(api: &Object) -> Option<Vec<String>> {
    // An empty text is none, as for the ModelAPI itself.
    let text =
        |path: [&str; 3]| api.str_at(&path).filter(|model| !model.is_empty()).map(|model| vec![model.to_owned()]);
    match api.str_at(&["spec", "mode"])? {
        "Hosted" => text(["spec", "hostedConfig", "model"]).or_else(|| text(["spec", "serverConfig", "model"])),
        "Proxy" => {
            let proxy = api.at(&["spec", "proxyConfig"]).filter(|proxy| proxy.is_object())?;
            match proxy.get("models").filter(|models| !models.is_null()) {
                Some(models) => models.as_array()?.iter().map(|model| model.as_str().map(ToOwned::to_owned)).collect(),
                None => text(["spec", "proxyConfig", "model"]).or_else(|| Some(vec!["*".to_owned()])),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn older_forms_of_a_model_api_offer_what_they_mean() {
        let api = |spec| offered(&Object::new(json!({"spec": spec})));
        assert_eq!(api(json!({"mode": "Proxy", "proxyConfig": {"model": "m"}})).unwrap(), ["m"]);
        assert_eq!(api(json!({"mode": "Proxy", "proxyConfig": {}})).unwrap(), ["*"]);
        assert_eq!(api(json!({"mode": "Hosted", "serverConfig": {"model": "m"}})).unwrap(), ["m"]);
        assert_eq!(api(json!({"mode": "Hosted", "hostedConfig": {"model": "n"}})).unwrap(), ["n"]);
        assert_eq!(api(json!({"mode": "Proxy", "proxyConfig": {"model": ""}})).unwrap(), ["*"]);
        let emptied = json!({"mode": "Hosted", "hostedConfig": {"model": ""}, "serverConfig": {"model": "m"}});
        assert_eq!(api(emptied).unwrap(), ["m"]);
        assert!(api(json!({"mode": "Proxy"})).is_none());
        assert!(api(json!({"mode": 3})).is_none());
    }
}
