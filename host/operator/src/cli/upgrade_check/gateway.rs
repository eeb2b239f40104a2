//! Finds the Gateway that the values name, and its address.

use super::values::Values;
use crate::input::Document;

/// The type of the Gateway.
pub(super) const GATEWAY: (&str, &str) = ("gateway.networking.k8s.io/v1", "Gateway");

/// Returns the namespace and the name of the Gateway that the values name.
pub(super) fn place(values: &Values, home: &str) -> (String, String) {
    let (name, namespace) = (values.text("gatewayAPI.gatewayName"), values.text("gatewayAPI.gatewayNamespace"));
    (if namespace.is_empty() { home.to_owned() } else { namespace }, name)
}

/// Returns the Gateway that the values name.
pub(super) fn find<'a>(documents: &'a [Document], values: &Values, home: &str) -> Option<&'a Document> {
    let (namespace, name) = place(values, home);
    documents.iter().find(|document| {
        let identity = &document.identity;
        (identity.group.as_str(), identity.kind.as_str()) == ("gateway.networking.k8s.io", GATEWAY.1)
            && (identity.namespace.as_deref(), &identity.name) == (Some(&*namespace), &name)
    })
}

/// Returns the first address of the Gateway, as the chart does. Empty if there is no Gateway, or if it has no address.
pub(super) fn address(documents: &[Document], values: &Values, home: &str) -> String {
    let gateway = find(documents, values, home);
    let address = gateway.and_then(|gateway| gateway.object["status"]["addresses"][0]["value"].as_str());
    address.unwrap_or_default().to_owned()
}
