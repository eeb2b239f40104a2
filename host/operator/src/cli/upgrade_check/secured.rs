//! Finds protection of the earlier release that the upgrade would weaken, and features that this operator lacks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    gateway,
    recorded::Recorded,
    reference_grants::{is_of_object, services},
    report::{Sort, UpgradeFinding},
    table::{Case, EXTERNAL, Environment, Row, SERVED, SERVICE, cases_of, is_on, text},
    values::{DATA, Values},
};
use crate::{config_maps::OPERATOR_CONFIG, input::Document};

/// The changes of protection that the table does not contain, by the names with which the user accepts them.
pub(super) const LISTENER: &str = "gatewayAPI.createGateway";
pub(super) const TOKENS: &str = "security.agentAuth.gatewayJwtOptional";
pub(super) const OBJECTS: [&str; 2] = ["NetworkPolicy", "SecurityPolicy"];

/// Types of children that KAOS's operator creates, with the effect of the upgrade on each type. The second field is
/// true if the children refer to the decision point of the release.
const CHILDREN: [(&str, bool, &str); 5] = [
    (
        "SecurityPolicy",
        true,
        "these SecurityPolicies stay, but the upgrade removes the decision point that they ask: they deny every \
         request through the gateway",
    ),
    (
        "SecurityPolicy",
        false,
        "these SecurityPolicies stay, and ask the same decision point as before, but no operator updates them, or creates \
         them for new objects",
    ),
    (
        "NetworkPolicy",
        false,
        "these NetworkPolicies stay, and allow only calls from the gateway and the operator: if the network enforces \
         them, they block direct calls of Agents to ModelAPIs, MCPServers and other Agents",
    ),
    ("EnvoyExtensionPolicy", false, "these EnvoyExtensionPolicies stay, but no operator updates them"),
    ("Backend", false, "these Backends stay, but no operator updates them"),
];

/// Returns the findings from the values and from the cluster.
pub(super) fn findings(
    documents: &[Document],
    values: &Values,
    recorded: &Recorded,
    home: &str,
) -> Vec<UpgradeFinding> {
    let earlier = earlier(documents, home);
    let was = earlier_cases(&earlier);
    let is_protected = values.cases().contains(&Case::Protected);
    // If the earlier release of this chart protected no objects, it already stopped updating the children that KAOS's
    // operator created. So this upgrade changes nothing about these children.
    let is_left = recorded.is_installed && !recorded.is_of_go && !was.contains(&Case::Protected);
    let mut found = unserved(values, &earlier, recorded, home);
    found.extend(weaker(values, &earlier, &was, home));
    if was.contains(&Case::Protected) && !is_protected {
        found.extend(posture(was.contains(&Case::Decided), is_on(text(&earlier, "SECURITY_NETWORK_POLICY_DISABLED"))));
    }
    found.extend(replaced(values, &earlier, home));
    found.extend(listeners(documents, values, home));
    found.extend(left(documents, values, is_protected, is_left, home));
    found.extend(unneeded(values, &earlier, &was, recorded, home));
    if !earlier.is_empty() && was.contains(&Case::Secured) {
        let message = "the chart compares its values with the earlier release only if Helm can read the cluster: a chart \
                       that is rendered without a cluster, for example by Argo CD, neither compares nor stops";
        let remedy = "if you render the chart without a cluster, run this check before each change of security";
        found.push(UpgradeFinding::new(Sort::Note, "security", message, remedy));
    }
    found
}

/// Returns how the user accepts a change of protection. If the user does not accept it, the chart refuses the upgrade.
fn unless(values: &Values, change: &str) -> String {
    if values.accepts(change) {
        return "; security.acceptUnserved accepts this change".to_owned();
    }
    format!("; the chart refuses the upgrade unless security.acceptUnserved lists {change}")
}

/// Returns a note about each change in the table that the user accepts, but that the upgrade does not make.
fn unneeded(
    values: &Values,
    earlier: &Environment,
    was: &BTreeSet<Case>,
    recorded: &Recorded,
    home: &str,
) -> Vec<UpgradeFinding> {
    let loses = |row: &Row| {
        let mut places = places(row, values, earlier, home).into_iter();
        places.any(|(_, text)| row.unserved.contains(&text) && !recorded.has_lost(&row.value, &text))
    };
    let now = values.environment(home);
    let weakens = |row: &Row| is_weaker(row, values.rows(), earlier, &now, was, home);
    let happens: BTreeSet<&str> =
        values.rows().iter().filter(|row| weakens(row) || loses(row)).map(|row| &*row.value).collect();
    let is_of_table = |name: &&str| ![LISTENER, TOKENS].contains(name) && !OBJECTS.contains(name);
    let stale = values.accepted().filter(is_of_table).filter(|name| !happens.contains(name));
    let finding = |name: &str| {
        let message = format!("lists {name}, but the upgrade does not change this protection");
        UpgradeFinding::new(
            Sort::Note,
            "security.acceptUnserved",
            message,
            "remove the name, so that a later change stops",
        )
    };
    stale.map(finding).collect()
}

/// Returns the finding for a missing ConfigMap with the variables of the earlier release. Without these variables, the
/// check cannot compare the protection.
pub(super) fn without_earlier(home: &str, sort: Sort) -> UpgradeFinding {
    let message = "is missing, so the check cannot compare the protection of the earlier release with the values";
    let remedy = "name the namespace of the release with --operator-namespace, and with -f, also give this ConfigMap";
    UpgradeFinding::new(sort, format!("ConfigMap {home}/{OPERATOR_CONFIG}"), message, remedy)
}

/// Returns the ConfigMap with the variables of the earlier release.
pub(super) fn config<'a>(documents: &'a [Document], home: &str) -> Option<&'a Document> {
    documents.iter().find(|document| {
        let identity = &document.identity;
        identity.kind == "ConfigMap" && identity.name == OPERATOR_CONFIG && identity.namespace.as_deref() == Some(home)
    })
}

/// Returns the variables of the earlier release.
fn earlier(documents: &[Document], home: &str) -> Environment {
    let config = config(documents, home);
    let data = config.and_then(|config| config.object["data"].as_object()).into_iter().flatten();
    data.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}

/// Returns the cases of the table that applied in the earlier release.
fn earlier_cases(earlier: &Environment) -> BTreeSet<Case> {
    let named = text(earlier, "AUTHZ_POLICY_CONFIGMAP_NAME");
    let projection = if named.is_empty() && is_on(text(earlier, SERVED)) { DATA } else { named };
    cases_of(&|variable| text(earlier, variable).to_owned(), projection)
}

/// Returns what can turn on a feature that this operator lacks: the value, the entry of `extraConfig`, and the variable
/// in the ConfigMap of the earlier release. Each of the three comes with the text that it gives to the variable of the
/// feature.
fn places(row: &Row, values: &Values, earlier: &Environment, home: &str) -> [(String, String); 3] {
    let name = &row.variable;
    let own = values.text(&row.value);
    let mut implying = row.implied_by_values.iter().filter(|path| !values.text(path).is_empty());
    let of_value = match implying.next().filter(|_| own.is_empty()) {
        Some(path) => (format!("{}, because of {path},", row.value), row.implied.clone()),
        None => (row.value.clone(), own),
    };
    [
        of_value,
        (format!("extraConfig.{name}"), values.extra(name).unwrap_or_default()),
        (format!("{name} in ConfigMap {home}/{OPERATOR_CONFIG}"), row.before(earlier).to_owned()),
    ]
}

/// Returns the findings about features that this operator lacks.
fn unserved(values: &Values, earlier: &Environment, recorded: &Recorded, home: &str) -> Vec<UpgradeFinding> {
    let mut found = Vec::new();
    for row in values.rows().iter().filter(|row| !row.unserved.is_empty()) {
        let places = places(row, values, earlier, home);
        for (place, text) in places.into_iter().filter(|(_, text)| row.unserved.contains(text)) {
            let message = format!("is {text}, but {}", row.effect);
            if recorded.has_lost(&row.value, &text) {
                let message = format!("{message}; an earlier upgrade accepted this");
                found.push(UpgradeFinding::new(Sort::Note, place, message, &row.remedy));
                continue;
            }
            let remedy = format!("{}{}", row.remedy, unless(values, &row.value));
            found.push(UpgradeFinding::new(Sort::Breaks, place, message, remedy));
        }
    }
    found
}

/// Returns whether a variable protects less with the new values than in the earlier release. `was` contains the cases
/// that applied in the earlier release.
fn is_weaker(
    row: &Row,
    rows: &[Row],
    earlier: &Environment,
    now: &Environment,
    was: &BTreeSet<Case>,
    home: &str,
) -> bool {
    let (from, to) = (text(earlier, &row.variable), text(now, &row.variable));
    !earlier.is_empty() && row.weakens(from, to, was.contains(&row.case())) && !row.is_excused(rows, earlier, now, home)
}

/// Returns the findings about variables that protect less with the new values than in the earlier release.
fn weaker(values: &Values, earlier: &Environment, was: &BTreeSet<Case>, home: &str) -> Vec<UpgradeFinding> {
    let (now, rows) = (values.environment(home), values.rows());
    let weaker = rows.iter().filter(|row| is_weaker(row, rows, earlier, &now, was, home));
    let finding = |row: &Row| {
        let (from, to) = (text(earlier, &row.variable), text(&now, &row.variable));
        let about = format!(
            "{}: {} is {from:?} in ConfigMap {home}/{OPERATOR_CONFIG}, and the values make it {to:?}",
            row.value, row.variable
        );
        let remedy = format!("{}{}", row.remedy, unless(values, &row.value));
        UpgradeFinding::new(Sort::Breaks, about, &row.effect, remedy)
    };
    weaker.map(finding).collect()
}

/// Returns a note if the values name another decision point instead of the chart's.
fn replaced(values: &Values, earlier: &Environment, home: &str) -> Option<UpgradeFinding> {
    let now = values.environment(home);
    let is_replaced = is_on(text(earlier, SERVED)) && !is_on(text(&now, SERVED)) && !text(&now, EXTERNAL).is_empty();
    is_replaced.then(|| {
        UpgradeFinding::new(
            Sort::Note,
            "security.agentAuth.extAuthzUrl",
            format!(
                "replaces the decision point kaos-pdp, which the upgrade removes: SecurityPolicies ask {} only after \
                 the operator has started, and until then the gateway denies requests",
                text(&now, EXTERNAL)
            ),
            "configure the new decision point with the same rules before the upgrade",
        )
    })
}

/// Returns a finding for each encrypted listener that the upgrade removes. The Gateway of this chart has only an HTTP
/// listener. Without `createGateway`, Helm deletes a Gateway that the earlier release created.
fn listeners(documents: &[Document], values: &Values, home: &str) -> Vec<UpgradeFinding> {
    let Some(Document { identity, object, .. }) = gateway::find(documents, values, home) else { return Vec::new() };
    let annotation = |name: &str| object["metadata"]["annotations"][name].as_str();
    let goes =
        annotation("meta.helm.sh/release-name").is_some() && annotation("helm.sh/resource-policy") != Some("keep");
    if !goes && !values.is_on("gatewayAPI.createGateway") {
        return Vec::new();
    }
    let listeners = object["spec"]["listeners"].as_array().into_iter().flatten();
    let encrypted = listeners
        .filter(|listener| ["HTTPS", "TLS"].iter().any(|it| listener["protocol"] == *it) || !listener["tls"].is_null());
    let finding = |listener: &Value| {
        let of = |field: &str| listener[field].as_str().unwrap_or_default();
        let message = format!(
            "the upgrade removes the listener {} ({}), so its clients lose their encrypted connection",
            of("name"),
            of("protocol")
        );
        let remedy = format!(
            "create a Gateway of another name with this listener, set gatewayAPI.createGateway to false, and set \
             gatewayAPI.gatewayName to the new name{}",
            unless(values, LISTENER)
        );
        UpgradeFinding::new(Sort::Breaks, identity.to_string(), message, remedy)
    };
    encrypted.map(finding).collect()
}

/// Returns the findings about a secured cluster that do not depend on its objects.
fn posture(is_decided: bool, is_without_network_policies: bool) -> Vec<UpgradeFinding> {
    let mut found = Vec::new();
    if !is_without_network_policies {
        found.push(UpgradeFinding::new(
            Sort::Breaks,
            "NetworkPolicies of objects",
            "these NetworkPolicies stay, and allow only calls from the gateway and the operator: if the network \
             enforces them, they block direct calls of Agents to ModelAPIs, MCPServers and other Agents",
            "delete or replace them before the upgrade: kubectl get networkpolicies -A",
        ));
    }
    if is_decided {
        found.push(UpgradeFinding::new(
            Sort::Breaks,
            "objects that are created later",
            "these objects get no SecurityPolicy and no NetworkPolicy, so every client can call them",
            "protect routes and namespaces with your own SecurityPolicies and NetworkPolicies before the upgrade",
        ));
    }
    found
}

/// Returns a finding for each type of children that KAOS's operator created and that no operator will update. If the
/// new operator protects objects, it takes over the SecurityPolicies and NetworkPolicies. `is_left` tells whether an
/// earlier upgrade already stopped the updates of the children that KAOS's operator created.
fn left(documents: &[Document], values: &Values, is_protected: bool, is_left: bool, home: &str) -> Vec<UpgradeFinding> {
    let is_of_kaos = |object: &Value| {
        let is_ours = object["metadata"]["annotations"]["kaos.tools/applied-digest"].is_string();
        let labels = object["metadata"]["labels"].as_object();
        let is_labelled = labels.is_some_and(|labels| labels.keys().any(|label| label.starts_with("kaos.tools/")));
        !is_ours && (is_of_object(object) || is_labelled)
    };
    let mut by_kind: BTreeMap<(&str, bool), Vec<&Document>> = BTreeMap::new();
    for document in documents.iter().filter(|document| is_of_kaos(&document.object)) {
        let Document { identity, object, .. } = document;
        let namespace = identity.namespace.as_deref().unwrap_or_default();
        let asks_own =
            identity.kind == "SecurityPolicy" && services(&object["spec"], namespace).contains(&(SERVICE, home));
        by_kind.entry((&identity.kind, asks_own)).or_default().push(document);
    }
    let taken_over: &[&str] = if is_protected { &["SecurityPolicy", "NetworkPolicy"] } else { &[] };
    let finding = |(kind, asks_own, message): &(&'static str, bool, &str)| {
        let these = by_kind.get(&(*kind, *asks_own)).filter(|_| !taken_over.contains(kind))?;
        let about = format!("{kind}: {} of KAOS objects, such as {}", these.len(), these.first()?.identity);
        if is_left {
            return Some(UpgradeFinding::new(Sort::Note, about, "no operator updates them", "delete or replace them"));
        }
        let unless = if OBJECTS.contains(kind) { unless(values, kind) } else { String::new() };
        let remedy = format!("delete or replace them before the upgrade{unless}");
        Some(UpgradeFinding::new(Sort::Breaks, about, *message, remedy))
    };
    CHILDREN.iter().filter_map(finding).collect()
}
