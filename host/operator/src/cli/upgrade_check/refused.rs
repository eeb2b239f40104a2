//! Finds the values that the chart refuses. The chart then stops before it changes anything.

use anyhow::Context as _;
use kaos_policy::objections::objections;
use serde_json::Value;

use super::{
    gateway, operator_image,
    recorded::Recorded,
    registries::REGISTRIES,
    report::{Sort, UpgradeFinding},
    table::{Case, is_on, text},
    takeover,
    values::{ACCEPTED, DATA, Values},
};
use crate::{
    config_maps::{FITTED_CONFIG, OPERATOR_CONFIG, SETTLED_CONFIG},
    presets::{self, COMPATIBILITY, Preset},
    schema,
};

/// The schema against which Helm validates values.
const SCHEMA: &str = include_str!("../../../../../deploy/helm/kaos-operator/values.schema.json");

/// The name of the chart.
const CHART: &str = "kaos-operator";
/// The chart value that contains the variables of the operator's pods.
const OF_PODS: &str = "controllerManager.manager.env";
/// The chart values that contain the flags of the operator.
const FLAGS: [&str; 2] = ["controllerManager.manager.args", "controllerManager.manager.extraArgs"];

/// Returns a finding for each value that the chart refuses.
pub(super) fn findings(values: &Values, recorded: &Recorded, home: &str) -> anyhow::Result<Vec<UpgradeFinding>> {
    let mut found = of_schema(values.root())?;
    found.extend(variables(values, home));
    found.extend(flags(values));
    found.extend(together(values, recorded));
    found.extend(takeover::refused(values));
    found.extend(incomplete(values, home));
    found.extend(projection(values, home));
    Ok(found)
}

fn stops(about: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> UpgradeFinding {
    UpgradeFinding::new(Sort::Stops, about, message, remedy)
}

/// Returns the schema of the values.
pub(super) fn schema() -> anyhow::Result<Value> {
    serde_json::from_str(SCHEMA).context("the schema of the chart in this program")
}

/// Returns the findings about unknown values and about values of a wrong type or form.
fn of_schema(root: &Value) -> anyhow::Result<Vec<UpgradeFinding>> {
    let validator = jsonschema::validator_for(&schema()?).context("the schema of the chart in this program")?;
    let errors: Vec<_> = validator.iter_errors(root).collect();
    let finding = |objection: &_| {
        let schema::Finding { path, message } = schema::finding(objection, "the chart's schema");
        let about = if path.is_empty() { "the values".to_owned() } else { path };
        stops(about, message, "correct or remove the value")
    };
    Ok(errors.iter().flat_map(objections).map(|objection| finding(&objection)).collect())
}

/// Returns the findings about variables in `extraConfig` and in the operator's pods.
fn variables(values: &Values, home: &str) -> Vec<UpgradeFinding> {
    let (own, environment) = (values.variables(home), values.environment(home));
    let of_pods: Vec<&Value> = values.at(OF_PODS).as_array().into_iter().flatten().collect();
    let mut found = Vec::new();
    for row in values.rows() {
        let at_pods = format!("{OF_PODS}: {}", row.variable);
        let in_config = format!("extraConfig.{}", row.variable);
        let of_pods = || of_pods.iter().filter(|entry| entry["name"] == *row.variable);
        let entry = values.extra(&row.variable);
        if !row.instead.is_empty() {
            let message = "is not allowed, because the chart sets this variable";
            let remedy = format!("remove it: {}", row.instead);
            found.extend(entry.iter().map(|_| stops(&in_config, message, &remedy)));
            found.extend(of_pods().map(|_| stops(&at_pods, message, &remedy)));
            continue;
        }
        let set = text(&own, &row.variable);
        if let Some(entry) = entry.filter(|entry| row.is_contradicted(set, entry)) {
            let message = format!(
                "is {entry:?}, but the value {} sets this variable to {set:?}: an entry of extraConfig must not undo \
                 protection",
                row.value
            );
            found.push(stops(in_config, message, "remove the entry, and set the value"));
        }
        // A variable of the pods wins over the ConfigMap.
        let set = text(&environment, &row.variable);
        for entry in of_pods().filter(|_| row.protects()) {
            let value = entry["value"].as_str().unwrap_or_default();
            let message = if !entry["valueFrom"].is_null() {
                format!("has valueFrom, so nobody can compare it with the value {}", row.value)
            } else if row.is_contradicted(set, value) {
                format!("is {value:?}, but the value {} sets this variable to {set:?}", row.value)
            } else {
                continue;
            };
            let message = format!("{message}: a variable of the pods must not undo protection");
            found.push(stops(&at_pods, message, "remove the variable, and set the value"));
        }
    }
    found
}

/// Returns the findings about flags of the operator that win over the values of `security`.
fn flags(values: &Values) -> Vec<UpgradeFinding> {
    let mut found = Vec::new();
    for path in FLAGS {
        let flags = values.at(path).as_array().into_iter().flatten().filter_map(Value::as_str);
        for flag in flags.filter_map(|flag| flag.split('=').next()) {
            let Some(row) = values.rows().iter().find(|row| !row.flag.is_empty() && row.flag == flag) else { continue };
            let value = if row.value.is_empty() { "security" } else { &row.value };
            let message = "is not allowed, because a flag must not undo protection";
            found.push(stops(format!("{path}: {flag}"), message, format!("remove it, and set {value} instead")));
        }
    }
    found
}

/// Returns the findings about values that do not fit together. The table of variables cannot express the rules for such
/// values. `tests/chart` checks that the chart refuses the same values.
fn together(values: &Values, recorded: &Recorded) -> Vec<UpgradeFinding> {
    let mut found = Vec::new();
    let named = values.text("compatibility");
    if !Preset::is_embedded(&named) {
        let names = presets::ALL.map(|(name, _)| name).join(" or ");
        found.push(stops(
            "compatibility",
            format!("is {named}, but the chart has no such preset"),
            format!("use {names}"),
        ));
    }
    if values.is_of_go() {
        found.push(operator_image::refused());
    }
    if values.is_on(ACCEPTED) {
        let message = "is true, but it must be a list of the changes that you accept";
        found.push(stops(ACCEPTED, message, "set it to a list of the names in the findings, or to []"));
    }
    if values.is_on("crds.install") && !values.is_on("crds.keep") && recorded.is_of_go {
        found.push(stops(
            "crds.keep",
            "is false, so a rollback to KAOS's chart would delete the definitions with all objects",
            "set it to true until you will not return to KAOS's operator",
        ));
    }
    if values.at("controllerManager.replicas").as_u64().is_some_and(|replicas| replicas > 1) && !elects(values) {
        found.push(stops(
            "controllerManager.replicas",
            "is above 1 without --leader-elect, so two operators would undo each other's work",
            "add --leader-elect to controllerManager.manager.args",
        ));
    }
    let projection = values.projection();
    let taken = [OPERATOR_CONFIG, FITTED_CONFIG, COMPATIBILITY, REGISTRIES[0], REGISTRIES[1], DATA, &projection];
    let policies = values.at("policies").as_object().into_iter().flatten().filter(|(_, policy)| !policy.is_null());
    let is_taken = |name: &str| taken.contains(&name) || name.starts_with(SETTLED_CONFIG) || is_dashboard(values, name);
    for (name, _) in policies.filter(|(name, _)| is_taken(name)) {
        let message = "another ConfigMap of the operator has this name";
        found.push(stops(format!("policies.{name}"), message, "choose another name for the policy"));
    }
    found
}

/// Returns whether a ConfigMap with the dashboard can have this name. The name may contain the name of the release,
/// which the check does not know.
fn is_dashboard(values: &Values, name: &str) -> bool {
    let (full, part) = (values.text("fullnameOverride"), values.text("nameOverride"));
    let part = if part.is_empty() { CHART } else { &part };
    name.strip_suffix("-dashboard").is_some_and(|of| if full.is_empty() { of.contains(part) } else { of == full })
}

/// Returns whether the operator uses the Lease. The last flag wins.
fn elects(values: &Values) -> bool {
    let flags =
        FLAGS.into_iter().flat_map(|path| values.at(path).as_array().into_iter().flatten().filter_map(Value::as_str));
    let of = |flag: &str| flag.strip_prefix("--leader-elect").map(|rest| ["", "=true"].contains(&rest));
    let named = flags.filter(|flag| *flag == "--leader-elect" || flag.starts_with("--leader-elect="));
    named.filter_map(of).next_back().unwrap_or(false)
}

/// Returns a finding for each value that is missing although other values need it.
fn incomplete(values: &Values, home: &str) -> Vec<UpgradeFinding> {
    let (cases, environment) = (values.cases(), values.environment(home));
    let mut found = Vec::new();
    for row in values.rows().iter().filter(|row| !row.needed.is_empty()) {
        let of_value = values.text(&row.value);
        let set = if row.variable.is_empty() { &of_value } else { text(&environment, &row.variable) };
        let is_switch = values.at(&row.value).is_boolean();
        let is_needed = row.needed.iter().all(|need| values.holds(need, &cases));
        if !is_needed || if is_switch { is_on(set) } else { !set.is_empty() } {
            continue;
        }
        if row.variable == "SECURITY_GATEWAY_HOST" {
            let (namespace, name) = gateway::place(values, home);
            let message = format!(
                "is empty, and the check found no Gateway {namespace}/{name} with an address, which the chart would take"
            );
            let remedy = "set it to the host in the addresses of the pods that run now, so that no pod is replaced";
            found.push(UpgradeFinding::new(Sort::Open, &row.value, message, remedy));
            continue;
        }
        let message = format!("is {}, but {}", if is_switch { "false" } else { "empty" }, row.because);
        found.push(stops(&row.value, message, &row.set));
    }
    found
}

/// Returns the findings about the namespace of the ConfigMap that the operator writes for a decision point.
fn projection(values: &Values, home: &str) -> Vec<UpgradeFinding> {
    const NAMESPACE: &str = "security.agentAuth.projection.policyConfigMap.namespace";
    let mut found = Vec::new();
    if !values.cases().contains(&Case::Projected) {
        return found;
    }
    let namespace = values.text(NAMESPACE);
    if !namespace.is_empty() && namespace != home {
        let message = format!(
            "is {namespace}, but the operator writes ConfigMap {} in its own namespace {home}",
            values.projection()
        );
        found.push(stops(NAMESPACE, message, "leave it empty"));
    }
    if !values.works_in(home) {
        found.push(stops(
            "watchNamespaces",
            format!("lacks {home}, the namespace of the AuthorizationPolicy"),
            "add it",
        ));
    }
    found
}
