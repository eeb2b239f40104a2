//! The models that a ModelAPI offers, read from its raw spec.

use alloc::{borrow::ToOwned, string::String, vec, vec::Vec};
use serde_json::Value;

/// Returns the models that the spec of a ModelAPI offers, as patterns. Returns `None` if the spec is invalid; the
/// ModelAPI's own policy reports the error.
pub fn offered(spec: &Value) -> Option<Vec<String>> {
    // Treat an empty text as unset, as the ModelAPI's policy does.
    let text = |block: &str, field: &str| {
        let model = spec.get(block)?.get(field)?.as_str().filter(|model| !model.is_empty())?;
        Some(vec![model.to_owned()])
    };
    match spec.get("mode")?.as_str()? {
        "Hosted" => text("hostedConfig", "model").or_else(|| text("serverConfig", "model")),
        "Proxy" => {
            let proxy = spec.get("proxyConfig").filter(|proxy| proxy.is_object())?;
            match proxy.get("models").filter(|models| !models.is_null()) {
                Some(models) => models.as_array()?.iter().map(|model| model.as_str().map(ToOwned::to_owned)).collect(),
                None => text("proxyConfig", "model").or_else(|| Some(vec!["*".to_owned()])),
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
    fn older_forms_of_a_model_api_offer_the_same_models() {
        let api = |spec| offered(&spec);
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
