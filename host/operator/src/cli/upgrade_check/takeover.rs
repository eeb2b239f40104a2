//! Finds the time of the upgrade from KAOS's operator as the chart does. Proxies of older ModelAPIs keep their pods,
//! because they do not get the permission to run without a master key.

use jiff::Timestamp;
use kaos_crds::API_VERSION;
use serde_json::Value;

use super::{
    go_image,
    keyless::{PERMISSION, is_keyless, is_permitted, server},
    report::{Sort, UpgradeFinding},
    rolls::workloads,
    table::TAKEOVER_TIME,
    values::Values,
};
use crate::{
    config_maps::OPERATOR_CONFIG,
    input::Document,
    presets::{COMPATIBILITY, Preset},
};

/// The value of the chart with the time.
const VALUE: &str = "takeoverTime";

/// A ModelAPI with the Deployment of its proxy.
struct Proxy<'a> {
    model: &'a Document,
    created: &'a str,
    /// The container with the proxy. `None` if there is no Deployment.
    server: Option<&'a Value>,
}

/// Returns the time that the chart records at the upgrade. Empty if no ModelAPI is older than this operator. If the chart
/// would record the time of the upgrade itself, returns the earliest time with the same effect.
pub(super) fn time(documents: &[Document], values: &Values, home: &str) -> String {
    let given = given(values);
    if !given.is_empty() {
        return given;
    }
    let (earlier, preset) = (config(documents, home, OPERATOR_CONFIG), config(documents, home, COMPATIBILITY));
    let works_of_go = documents.iter().any(|document| runs_go(document, home));
    let is_of_go = works_of_go || (earlier.is_some() && preset.is_none());
    if preset.is_some() && !is_of_go {
        let recorded = earlier.and_then(|earlier| earlier["data"][TAKEOVER_TIME].as_str());
        return recorded.unwrap_or_default().to_owned();
    }
    let proxies = proxies(documents, values);
    let permitted = proxies.iter().filter(|proxy| !is_of_go && proxy.is_permitted_by_operator());
    if let Some(oldest) = permitted.map(|proxy| proxy.created).min() {
        return oldest.to_owned();
    }
    let newest = proxies.iter().filter_map(|proxy| proxy.created.parse::<Timestamp>().ok()).max();
    let later = newest.and_then(|newest| Timestamp::from_second(newest.as_second().saturating_add(1)).ok());
    later.map(|later| later.to_string()).unwrap_or_default()
}

/// Returns a note if the upgrade keeps the pods of proxies only because the chart finds the time in the cluster.
pub(super) fn finding(documents: &[Document], values: &Values, preset: &Preset, home: &str) -> Option<UpgradeFinding> {
    let time = values.takeover.as_str();
    let settings = &preset.sections["modelapi"]["proxyConfig"];
    let usual = settings["withoutMasterKeySince"].as_str().unwrap_or_default();
    if !given(values).is_empty() || settings["withoutMasterKey"] != true {
        return None;
    }
    let proxies = proxies(documents, values);
    let is_kept = |proxy: &&Proxy<'_>| (usual..time).contains(&proxy.created) && proxy.server.is_some_and(is_keyless);
    let kept: Vec<&Proxy<'_>> = proxies.iter().filter(is_kept).collect();
    let first = kept.first()?;
    let message = format!(
        "is empty: `helm upgrade` finds the time in the cluster, but a chart that is rendered without a cluster, for \
         example by Argo CD, replaces the pods of {} ModelAPIs, such as {}",
        kept.len(),
        first.model.identity
    );
    let recorded =
        config(documents, home, OPERATOR_CONFIG).is_some_and(|config| config["data"][TAKEOVER_TIME] == *time);
    let when = if recorded { "" } else { ", or to the later time of the upgrade" };
    let remedy = format!("if you render the chart without a cluster, set {VALUE} to {time:?}{when}");
    Some(UpgradeFinding::new(Sort::Note, VALUE, message, remedy))
}

/// Returns the time in the values. Empty if the chart has to find it.
fn given(values: &Values) -> String {
    values.extra(TAKEOVER_TIME).unwrap_or_else(|| values.text(VALUE))
}

/// Returns whether an object is the Deployment of KAOS's operator in this namespace.
fn runs_go(document: &Document, home: &str) -> bool {
    let is_it = document.identity.kind == workloads().kind && document.identity.namespace.as_deref() == Some(home);
    let containers = document.object["spec"]["template"]["spec"]["containers"].as_array();
    let mut images = containers.into_iter().flatten().filter_map(|container| container["image"].as_str());
    is_it && images.any(go_image::is_image)
}

fn config<'a>(documents: &'a [Document], home: &str, name: &str) -> Option<&'a Value> {
    let is_it = |document: &&Document| {
        let identity = &document.identity;
        identity.kind == "ConfigMap" && identity.name == name && identity.namespace.as_deref() == Some(home)
    };
    documents.iter().find(is_it).map(|document| &document.object)
}

/// Returns the ModelAPIs of the mode Proxy in the namespaces of the operator. Omits objects without a time, which come
/// from files, and objects without a phase, which have no pods yet.
fn proxies<'a>(documents: &'a [Document], values: &Values) -> Vec<Proxy<'a>> {
    let is_of = |document: &Document, api: &str, kind: &str| {
        document.object["apiVersion"] == api && document.identity.kind == kind
    };
    let of = workloads();
    let proxy = |model: &'a Document| {
        let namespace = model.identity.namespace.as_deref().unwrap_or_default();
        let is_proxy = is_of(model, API_VERSION, "ModelAPI") && model.object["spec"]["mode"] != "Hosted";
        if !is_proxy || model.object["status"]["phase"].is_null() || !values.works_in(namespace) {
            return None;
        }
        let child = format!("modelapi-{}", model.identity.name);
        let is_its = |document: &&Document| {
            is_of(document, &of.api_version, &of.kind)
                && document.identity.name == child
                && document.identity.namespace == model.identity.namespace
        };
        let server = documents.iter().find(is_its).and_then(|deployment| server(&deployment.object));
        Some(Proxy { model, created: model.object["metadata"]["creationTimestamp"].as_str()?, server })
    };
    documents.iter().filter_map(proxy).collect()
}

impl Proxy<'_> {
    /// Returns whether this operator, and not the user, gave the proxy the permission. Only this operator writes
    /// conditions.
    fn is_permitted_by_operator(&self) -> bool {
        let has_conditions =
            self.model.object["status"]["conditions"].as_array().is_some_and(|conditions| !conditions.is_empty());
        let is_of_user = self.model.object["spec"].to_string().contains(PERMISSION);
        has_conditions && !is_of_user && self.server.is_some_and(is_permitted)
    }
}
