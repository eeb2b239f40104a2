//! Exposes a workload through a Service, and through a route on the Gateway.

use crate::kind::{Extra, ROUTE_API, ROUTE_KIND, Workload};
use crate::security::{self, Protection, TARGET_HEADER};
use crate::settings::{Gateway, ServiceType};
use alloc::{string::String, vec::Vec};
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{Note, Refusal, Subject};
use kaos_policy_sdk::{SubjectExt, duration, note, object, quote, refusal};
use serde_json::Value;

/// The path of the object's field with the timeout.
const TIMEOUT_PATH: &str = "spec.gatewayRoute.timeout";

/// The data for a Service and a route.
#[derive(Debug)]
pub struct Exposure<'a> {
    /// The path of the settings for the ports and the type of the Service, as in
    /// [`PodDefaults`](crate::PodDefaults::path).
    pub path: &'a str,
    /// Port of the Service, and of the endpoint.
    pub service_port: u16,
    /// Port of the container.
    pub container_port: u16,
    /// Name of the port, also in the Service.
    pub port_name: &'a str,
    /// The type of the Service.
    pub service_type: ServiceType,
    /// The Gateway.
    pub gateway: &'a Gateway,
    /// `spec.gatewayRoute.timeout`.
    pub timeout: Option<&'a str>,
    /// The protection.
    pub protection: Protection<'a>,
    /// Additional labels and annotations.
    pub extra: Extra<'a>,
}

impl Exposure<'_> {
    /// Builds the Service.
    pub fn service(&self, workload: &Workload<'_>) -> Child {
        let port = object! {
            "name": self.port_name,
            "port": self.service_port,
            "targetPort": self.container_port,
            "protocol": "TCP",
        };
        let spec = object! {
            "type": self.service_type.as_str(),
            "selector": workload.selector(),
            "ports": vec![port],
        };
        let metadata = workload.metadata(&workload.child_name(), &self.extra);
        let service = object! { "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec };
        self.extra
            .child(service)
            .origin("spec.type", format!("{}.serviceType", self.path))
            .origin("spec.ports[0].port", format!("{}.servicePort", self.path))
            .origin("spec.ports[0].targetPort", format!("{}.containerPort", self.path))
    }

    /// Builds the HTTPRoute, and the objects that protect the workload. Refuses the workload if the operator cannot
    /// create one of the protecting objects.
    pub fn entrance(
        &self,
        workload: &Workload<'_>,
        subject: &Subject,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<Child>, Refusal> {
        let route = self.route(workload, subject, notes)?;
        let protection = self.protection.manifests(workload, subject, &self.extra, route.is_some())?;
        let mut children: Vec<Child> = protection.into_iter().map(|manifest| self.extra.child(manifest)).collect();
        children.extend(route.map(|route| {
            self.extra
                .child(route)
                .origin("spec.parentRefs[0]", "settings.gateway")
                .origin("spec.rules[0].timeouts.request", self.said_timeout().1)
        }));
        Ok(children)
    }

    /// Builds the HTTPRoute if routes are enabled. Adds a note instead if the settings name no Gateway, or if the
    /// cluster does not serve the kind `HTTPRoute`.
    fn route(
        &self,
        workload: &Workload<'_>,
        subject: &Subject,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Value>, Refusal> {
        self.check_timeout()?;
        if !self.gateway.enabled {
            return Ok(None);
        }
        if self.gateway.name.is_empty() {
            notes.push(note::warning(
                "GatewayUnnamed",
                "routes are enabled and no Gateway is named, so there is no HTTPRoute: set GATEWAY_NAME for the operator",
            ));
            return Ok(None);
        }
        if !subject.serves(ROUTE_API, ROUTE_KIND) {
            notes.push(note::warning(
                "GatewayUnserved",
                "routes are enabled and this cluster does not serve HTTPRoute of gateway.networking.k8s.io/v1, so \
                 there is no HTTPRoute: install the Gateway API, or set GATEWAY_API_ENABLED to false for the operator",
            ));
            return Ok(None);
        }
        let timeout = self.request_timeout(notes)?;
        let mut parent =
            object! { "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": self.gateway.name.as_str() };
        if !self.gateway.namespace.is_empty() {
            parent["namespace"] = self.gateway.namespace.as_str().into();
        }
        let prefix = format!("/{}/{}/{}", workload.namespace, workload.kind.route, workload.name);
        let path = object! { "path": object! { "type": "PathPrefix", "value": prefix } };
        let rewrite = object! { "path": object! { "type": "ReplacePrefixMatch", "replacePrefixMatch": "/" } };
        let backend = object! { "kind": "Service", "name": workload.child_name(), "port": self.service_port };
        let mut filters = Vec::new();
        if self.protection.settings.target_header {
            let header = object! { "name": TARGET_HEADER, "value": security::resource(workload) };
            let set = object! { "set": vec![header] };
            filters.push(object! { "type": "RequestHeaderModifier", "requestHeaderModifier": set });
        }
        filters.push(object! { "type": "URLRewrite", "urlRewrite": rewrite });
        let mut rule = object! {
            "matches": vec![path],
            "filters": filters,
            "backendRefs": vec![backend],
        };
        if let Some(timeout) = timeout {
            rule["timeouts"] = object! { "request": timeout };
        }
        Ok(Some(object! {
            "apiVersion": ROUTE_API,
            "kind": ROUTE_KIND,
            "metadata": workload.metadata(&workload.route_name(), &self.extra),
            "spec": object! { "parentRefs": vec![parent], "rules": vec![rule] },
        }))
    }

    /// Refuses a malformed timeout, as the CRD does, even if the object has no route.
    pub fn check_timeout(&self) -> Result<(), Refusal> {
        let (text, path) = self.said_timeout();
        match duration::for_gateway(text) {
            Err(duration::Error::NotGo | duration::Error::NotGateway) => Err(refusal::invalid(
                path,
                format!(
                    "`{text}` is not a timeout: write up to four numbers with a unit h, m, s or ms, for example 1h30m",
                    text = shown(text)
                ),
            )),
            // A timeout that is too long is a mistake only if the object has a route.
            Ok(_) | Err(duration::Error::TooLong) => Ok(()),
        }
    }

    /// Returns the timeout of the object, or else the timeout of the settings. Also returns the path of this field or
    /// setting.
    fn said_timeout(&self) -> (&str, &'static str) {
        let own = self.timeout.filter(|text| !text.is_empty());
        own.map_or((self.gateway.timeout.as_str(), "settings.gateway.timeout"), |text| (text, TIMEOUT_PATH))
    }

    /// Returns the timeout of a route in the Gateway API's format. Returns `None` for `0s`.
    fn request_timeout(&self, notes: &mut Vec<Note>) -> Result<Option<String>, Refusal> {
        let (text, path) = self.said_timeout();
        if text == "0s" {
            return Ok(None);
        }
        match duration::for_gateway(text) {
            Ok(spelled) => {
                if spelled != text {
                    let message = format!(
                        "`{text}` is written `{spelled}` in the HTTPRoute: the Gateway API allows at most five digits \
                         in a number"
                    );
                    notes.push(note::at(path, note::info("TimeoutRespelled", message)));
                }
                Ok(Some(spelled.into_owned()))
            }
            // Only a timeout that is too long leads here: `check_timeout` has already refused malformed timeouts.
            Err(_) => Err(refusal::invalid(
                path,
                format!(
                    "`{text}` is longer than the Gateway API allows (99999h): write a shorter timeout, or 0s for none",
                    text = shown(text)
                ),
            )),
        }
    }
}

/// Returns the beginning of a text, for a message.
fn shown(text: &str) -> String {
    quote::shown(text, 40)
}
