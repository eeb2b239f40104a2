//! The identity of a workload. Names, labels and addresses follow from the kind and the object's name.
//!
//! This module has no code for a particular kind. Each policy declares its own [`Kind`] as a constant.

use crate::settings::Raw;
use alloc::{string::String, vec::Vec};
use kaos_policy_sdk::names::{LABEL_MAX, dns1123_subdomain, is_dns1035_label};
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::{Violations, quote};
use serde_json::{Map, Value};

/// API version of [`ROUTE_KIND`].
pub const ROUTE_API: &str = "gateway.networking.k8s.io/v1";
/// The kind of routes. A policy that uses [`Exposure`](crate::Exposure) lists this kind in the `wishes` of its claims.
pub const ROUTE_KIND: &str = "HTTPRoute";

/// The fixed names of a kind. They are not settings, because selectors, addresses and dashboards identify the kind's
/// objects by these names.
#[derive(Debug)]
pub struct Kind {
    /// The value of the label `app`, and the key of the label that contains the object's name.
    pub app: &'static str,
    /// Prefix of the names of the Deployment and the Service: `<prefix>-<name>`.
    pub prefix: &'static str,
    /// Name of the main container.
    pub container: &'static str,
    /// Prefix of the HTTPRoute's name. The HTTPRoute is called `<route>-<name>` and matches
    /// `/<namespace>/<route>/<name>`.
    pub route: &'static str,
}

/// One object of a kind, with its namespace and the cluster's domain.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'a> {
    /// Kind of the object.
    pub kind: &'static Kind,
    /// `metadata.name`.
    pub name: &'a str,
    /// `metadata.namespace`.
    pub namespace: &'a str,
    /// The DNS domain of the cluster's Services.
    pub domain: &'a str,
}

impl Workload<'_> {
    /// Returns the name of the Deployment and of the Service.
    pub fn child_name(&self) -> String {
        format!("{}-{}", self.kind.prefix, self.name)
    }

    /// Returns the name of the HTTPRoute.
    pub fn route_name(&self) -> String {
        format!("{}-{}", self.kind.route, self.name)
    }

    /// Returns the labels that select the pods. Every child has these labels, too.
    pub fn selector(&self) -> Map<String, Value> {
        let mut labels = Map::new();
        labels.insert("app".into(), self.kind.app.into());
        labels.insert(self.kind.app.into(), self.name.into());
        labels
    }

    /// Returns the labels of [`Workload::selector`] in the format of `status.selector`.
    pub fn selector_text(&self) -> String {
        let pairs: Vec<String> = self
            .selector()
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        pairs.join(",")
    }

    /// Returns the base URL of the Service.
    pub fn endpoint(&self, port: u16) -> String {
        format!("http://{}.{}.svc.{}:{}", self.child_name(), self.namespace, self.domain, i64::from(port))
    }

    /// Builds the `metadata` of the child `name` with the namespace, the kind's labels, and the labels and annotations
    /// from the settings. The kind's labels win.
    pub fn metadata(&self, name: &str, extra: &Extra<'_>) -> Value {
        let mut metadata = extra.over(self.selector());
        metadata.insert("name".into(), name.into());
        metadata.insert("namespace".into(), self.namespace.into());
        Value::Object(metadata)
    }

    /// Returns why the names of the children would be invalid. Kubernetes has the strictest rules for the names of
    /// Services.
    pub fn check_name(&self, has_service: bool) -> Violations {
        let mut wrong = Violations::new();
        let prefix = if has_service { self.kind.prefix.len() + 1 } else { 0 };
        let longest = LABEL_MAX - prefix;
        let message = if self.name.len() > longest {
            Some(format!(
                "the name has {length} characters, but the limit is {longest}: the Service is named `{prefix}-` plus \
                 this name, and names of Services have at most {LABEL_MAX} characters; choose a shorter name",
                length = self.name.len(),
                prefix = self.kind.prefix
            ))
        } else if has_service {
            self.wrong_for_a_service(longest)
        } else {
            dns1123_subdomain(self.name)
        };
        if let Some(message) = message {
            wrong.add("metadata.name", message);
        }
        wrong
    }

    fn wrong_for_a_service(&self, longest: usize) -> Option<String> {
        if self.name.is_empty() || self.name.starts_with('-') || !is_dns1035_label(&self.child_name()) {
            return Some(format!(
                "`{name}` cannot be part of a Service name: use at most {longest} lower-case letters, digits and `-` \
                 (no dots), with a letter or digit at the beginning and at the end",
                name = quote::shown(self.name, 253)
            ));
        }
        None
    }
}

/// Labels and annotations from the settings. Every child and every pod gets these labels and annotations.
#[derive(Debug, Clone, Copy)]
pub struct Extra<'a> {
    /// Labels. Selectors do not contain these labels.
    pub labels: &'a Raw,
    /// Annotations.
    pub annotations: &'a Raw,
}

impl Extra<'_> {
    /// Declares the origins of these labels and annotations. `above` is the path above `metadata`, with a final dot.
    pub(crate) fn declare(&self, child: &mut Child, above: &str) {
        for (field, setting, members) in [
            ("labels", "settings.extraLabels", self.labels),
            ("annotations", "settings.extraAnnotations", self.annotations),
        ] {
            if !members.is_empty() {
                child.declare(format!("{above}metadata.{field}"), setting);
            }
        }
    }

    /// Builds a child from a manifest that already has these labels and annotations, and declares their origins.
    pub fn child(&self, manifest: Value) -> Child {
        let mut child = Child::new(manifest);
        self.declare(&mut child, "");
        child
    }

    /// Builds a `metadata` with these labels and annotations. The parameter `labels` wins over labels of the settings.
    pub(crate) fn over(&self, labels: Map<String, Value>) -> Map<String, Value> {
        let mut all = self.labels.clone();
        all.extend(labels);
        let mut metadata = Map::new();
        metadata.insert("labels".into(), Value::Object(all));
        if !self.annotations.is_empty() {
            metadata.insert("annotations".into(), Value::Object(self.annotations.clone()));
        }
        metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kaos_policy_sdk::types::Refusal;
    use serde_json::json;

    static KIND: Kind = Kind { app: "agent", prefix: "agent", container: "agent", route: "agent" };

    fn named(name: &str) -> Workload<'_> {
        Workload { kind: &KIND, name, namespace: "ns", domain: "cluster.local" }
    }

    #[test]
    fn the_longest_name_passes_and_a_longer_one_is_refused_with_the_maximum() {
        assert!(named(&"a".repeat(57)).check_name(true).is_empty());
        let Err(Refusal::Invalid(refused)) = named(&"a".repeat(58)).check_name(true).into_result() else {
            panic!("must be refused")
        };
        assert_eq!(refused[0].path, "metadata.name");
        assert!(refused[0].message.contains("limit is 57"), "{}", refused[0].message);
    }

    #[test]
    fn names_that_no_service_can_have_are_refused() {
        for name in ["my.agent", "My_Agent", "", "a-", "-a", "ä", "a b"] {
            assert!(!named(name).check_name(true).is_empty(), "{name}");
        }
    }

    #[test]
    fn without_a_service_a_name_must_fit_a_deployment_and_a_label() {
        assert!(named("my.agent").check_name(false).is_empty());
        assert!(named(&"a".repeat(63)).check_name(false).is_empty());
        for name in [&"a".repeat(64), "", "My_Agent", "a-"] {
            assert!(!named(name).check_name(false).is_empty(), "{name}");
        }
    }

    #[test]
    fn names_and_addresses_follow_from_the_kind() {
        let w = named("x");
        assert_eq!(w.endpoint(8000), "http://agent-x.ns.svc.cluster.local:8000");
        assert_eq!(w.selector_text(), "agent=x,app=agent");
    }

    #[test]
    fn the_labels_of_the_kind_win_over_extra_ones() {
        let labels = json!({"app": "mine", "team": "t"});
        let extra = Extra { labels: labels.as_object().unwrap(), annotations: &Raw::new() };
        let metadata = named("x").metadata("agent-x", &extra);
        assert_eq!(
            metadata,
            json!({"name": "agent-x", "namespace": "ns", "labels": {"app": "agent", "agent": "x", "team": "t"}})
        );
    }
}
