//! Rules of Deployments and `ReplicaSet`s.

use serde_json::{Value, json};

use super::{names, pod};
use crate::{status::Cause, storage::LabelSelector};

/// Fills in the defaults of a Deployment.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    for (field, value) in [("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)] {
        if spec[field].is_null() {
            spec[field] = json!(value);
        }
    }
    if spec["strategy"]["type"].is_null() {
        spec["strategy"]["type"] = json!("RollingUpdate");
    }
    if spec["strategy"]["type"] == "RollingUpdate" {
        for field in ["maxSurge", "maxUnavailable"] {
            if spec["strategy"]["rollingUpdate"][field].is_null() {
                spec["strategy"]["rollingUpdate"][field] = json!("25%");
            }
        }
    }
    fill_template(spec);
}

/// Fills in the defaults of a `ReplicaSet`.
pub(super) fn fill_replica_set(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if spec["replicas"].is_null() {
        spec["replicas"] = json!(1);
    }
    fill_template(spec);
}

pub(super) fn fill_template(spec: &mut Value) {
    if spec["template"]["spec"].is_object() {
        pod::fill_spec(&mut spec["template"]["spec"]);
    }
}

/// Validates a Deployment or `ReplicaSet`.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &new["spec"];
    let mut causes = check_pods(new, "deployment");
    if spec["strategy"]["type"] == "RollingUpdate" {
        causes.extend(rolling(&spec["strategy"]["rollingUpdate"]));
    }
    if old.is_some_and(|old| old["spec"]["selector"] != spec["selector"]) {
        causes.push(Cause::invalid("spec.selector", &go_selector(&spec["selector"]), "field is immutable"));
    }
    causes
}

/// Validates the pod template, the number of replicas and the selector.
pub(super) fn check_pods(new: &Value, kind: &str) -> Vec<Cause> {
    let spec = &new["spec"];
    let mut causes = Vec::new();
    let replicas = spec["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        causes.push(Cause::invalid("spec.replicas", &replicas.to_string(), "must be greater than or equal to 0"));
    }
    let selector = LabelSelector::of_object(&spec["selector"]);
    let labels = &spec["template"]["metadata"]["labels"];
    if spec["selector"].is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else if selector.is_empty() {
        let message = format!("empty selector is invalid for {kind}");
        causes.push(Cause::invalid("spec.selector", &spec["selector"].to_string(), &message));
    }
    if selector.is_empty() || !selector.matches_labels(labels) {
        let message = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &go_map(labels), message));
    }
    causes.extend(names::labels(labels, "spec.template.metadata.labels"));
    let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
    let claims: Vec<&str> = claims.filter_map(|claim| claim["metadata"]["name"].as_str()).collect();
    causes.extend(pod::check_with_claims(&spec["template"]["spec"], "spec.template.spec", &claims));
    let policy = &spec["template"]["spec"]["restartPolicy"];
    if policy.is_string() && policy != "Always" {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", policy, &[json!("Always")]));
    }
    causes
}

/// Validates the bounds of a rollout. The bounds must allow progress.
fn rolling(steps: &Value) -> Vec<Cause> {
    const PERCENT_TEXT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    const PATH: &str = "spec.strategy.rollingUpdate";
    let mut causes = Vec::new();
    for field in ["maxUnavailable", "maxSurge"] {
        let (value, path) = (&steps[field], format!("{PATH}.{field}"));
        let shown = value.to_string();
        if value.is_string() && percent(value).is_none() {
            causes.push(Cause::invalid(&path, &shown, PERCENT_TEXT));
        }
        if value.as_i64().is_some_and(|value| value < 0) {
            causes.push(Cause::invalid(&path, &shown, "must be greater than or equal to 0"));
        }
    }
    let amount = |field: &str| percent(&steps[field]).or_else(|| steps[field].as_i64()).unwrap_or_default();
    let path = format!("{PATH}.maxUnavailable");
    let shown = steps["maxUnavailable"].to_string();
    if amount("maxUnavailable") == 0 && amount("maxSurge") == 0 {
        causes.push(Cause::invalid(&path, &shown, "may not be 0 when `maxSurge` is 0"));
    }
    if percent(&steps["maxUnavailable"]).is_some_and(|percent| percent > 100) {
        causes.push(Cause::invalid(&path, &shown, "must not be greater than 100%"));
    }
    causes
}

/// Returns the number in a percentage, or `None` if the value is not a percentage.
fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    // Check the digits, because the parser would accept a sign.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn go_map(labels: &Value) -> String {
    labels.to_string()
}

fn go_selector(selector: &Value) -> String {
    json!({"matchLabels": selector["matchLabels"]}).to_string()
}

/// Converts a JSON value to a number of pods. Returns 0 for a value that is not a number.
pub(crate) fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Converts a number or a percentage to a number of pods. `up` decides whether a percentage is rounded up or down.
pub(crate) fn share(value: &Value, of: i64, up: bool) -> i64 {
    match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            let hundredths = percent.saturating_mul(of);
            if up { hundredths.saturating_add(99) / 100 } else { hundredths / 100 }
        }
        other => count(other),
    }
}

/// Returns Go's error for the first number that overflows its type, or `None` if no number overflows its type.
pub(super) fn overflow(object: &Value) -> Option<String> {
    const NUMBERS: [&str; 6] = [
        "/spec/replicas",
        "/spec/minReadySeconds",
        "/spec/progressDeadlineSeconds",
        "/spec/revisionHistoryLimit",
        "/spec/strategy/rollingUpdate/maxSurge",
        "/spec/strategy/rollingUpdate/maxUnavailable",
    ];
    let (pointer, number) = NUMBERS.iter().find_map(|pointer| {
        let number = object.pointer(pointer)?.as_number()?;
        let fits = number.is_f64() || number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
        (!fits).then_some((pointer, number))
    })?;
    let path = pointer.trim_start_matches('/').replace('/', ".");
    Some(format!("json: cannot unmarshal number {number} into Go struct field DeploymentSpec.{path} of type int32"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(surge: &Value, unavailable: &Value) -> Vec<String> {
        let steps = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        rolling(&steps).into_iter().map(|cause| cause.message).collect()
    }

    #[test]
    fn a_rollout_without_surge_and_unavailability_is_refused() {
        for (surge, unavailable) in [(json!("25%"), json!("25%")), (json!(1), json!(0)), (json!("0%"), json!("100%"))] {
            assert!(wrong(&surge, &unavailable).is_empty());
        }
        assert_eq!(wrong(&json!("0%"), &json!(0)), ["Invalid value: 0: may not be 0 when `maxSurge` is 0"]);
        assert_eq!(wrong(&json!(-1), &json!(1)), ["Invalid value: -1: must be greater than or equal to 0"]);
        assert_eq!(wrong(&json!(1), &json!("101%")), ["Invalid value: \"101%\": must not be greater than 100%"]);
        assert_eq!(wrong(&json!("many"), &json!(1)).len(), 1);
    }

    #[test]
    fn numbers_outside_of_gos_range_are_refused() {
        let spec = |replicas: Value| json!({"spec": {"replicas": replicas}});
        assert_eq!(overflow(&spec(json!(i32::MAX))), None);
        let found = overflow(&spec(json!(u64::MAX))).unwrap();
        assert!(found.contains("18446744073709551615 into Go struct field DeploymentSpec.spec.replicas"), "{found}");
    }

    #[test]
    fn a_share_of_any_percentage_is_computed() {
        assert_eq!(share(&json!("25%"), 3, true), 1);
        assert!(share(&json!("9223372036854775807%"), i64::MAX, true) > 0);
    }
}
