//! The columns of each kind.

use jiff::Timestamp;
use jsonpath_rust::JsonPath as _;
use serde_json::{Value, json};

use super::{age::age, head::Head, workloads};
use crate::{
    catalogue::{Column, Family, Resource},
    storage::LabelSelector,
};

const NAME: &str = "Name must be unique within a namespace.";
const AGE: &str = "How long ago the object was created.";

/// The columns of a built-in kind, except the object's name. Each column has a name, a type and a priority.
fn builtin(resource: &Resource) -> &'static [(&'static str, &'static str, i64)] {
    match resource.family {
        Family::Namespace => &[("Status", "string", 0), ("Age", "string", 0)],
        Family::ConfigMap => &[("Data", "string", 0), ("Age", "string", 0)],
        Family::Secret => &[("Type", "string", 0), ("Data", "string", 0), ("Age", "string", 0)],
        Family::Service => &[
            ("Type", "string", 0),
            ("Cluster-IP", "string", 0),
            ("External-IP", "string", 0),
            ("Port(s)", "string", 0),
            ("Age", "string", 0),
            ("Selector", "string", 1),
        ],
        Family::Event | Family::NewEvent => &[
            ("Type", "string", 0),
            ("Reason", "string", 0),
            ("Object", "string", 0),
            ("Subobject", "string", 1),
            ("Source", "string", 1),
            ("Message", "string", 0),
            ("First Seen", "string", 1),
            ("Count", "string", 1),
            ("Name", "string", 1),
        ],
        Family::Pod => &[
            ("Ready", "string", 0),
            ("Status", "string", 0),
            ("Restarts", "string", 0),
            ("Age", "string", 0),
            ("IP", "string", 1),
            ("Node", "string", 1),
            ("Nominated Node", "string", 1),
            ("Readiness Gates", "string", 1),
        ],
        Family::Deployment => &[
            ("Ready", "string", 0),
            ("Up-to-date", "string", 0),
            ("Available", "string", 0),
            ("Age", "string", 0),
            ("Containers", "string", 1),
            ("Images", "string", 1),
            ("Selector", "string", 1),
        ],
        Family::ReplicaSet => &[
            ("Desired", "integer", 0),
            ("Current", "integer", 0),
            ("Ready", "integer", 0),
            ("Age", "string", 0),
            ("Containers", "string", 1),
            ("Images", "string", 1),
            ("Selector", "string", 1),
        ],
        Family::StatefulSet => {
            &[("Ready", "string", 0), ("Age", "string", 0), ("Containers", "string", 1), ("Images", "string", 1)]
        }
        Family::Job => &[
            ("Status", "string", 0),
            ("Completions", "string", 0),
            ("Duration", "string", 0),
            ("Age", "string", 0),
            ("Containers", "string", 1),
            ("Images", "string", 1),
            ("Selector", "string", 1),
        ],
        Family::Budget => &[
            ("Min Available", "string", 0),
            ("Max Unavailable", "string", 0),
            ("Allowed Disruptions", "integer", 0),
            ("Age", "string", 0),
        ],
        Family::Lease => &[("Holder", "string", 0), ("Age", "string", 0)],
        Family::EndpointSlice => {
            &[("AddressType", "string", 0), ("Ports", "string", 0), ("Endpoints", "string", 0), ("Age", "string", 0)]
        }
        Family::Rbac if resource.kind.ends_with("Binding") => &[
            ("Role", "string", 0),
            ("Age", "string", 0),
            ("Users", "string", 1),
            ("Groups", "string", 1),
            ("ServiceAccounts", "string", 1),
        ],
        Family::Rbac | Family::Definition => &[("Created At", "date", 0)],
        Family::Node => {
            &[("Status", "string", 0), ("Roles", "string", 0), ("Age", "string", 0), ("Version", "string", 0)]
        }
        _ => &[("Age", "string", 0)],
    }
}

/// Returns the column definitions of a kind.
pub(super) fn heads(resource: &Resource) -> Vec<Head> {
    let head = |name: &str, type_: &str, format: &str, description: &str, priority| Head {
        name: name.into(),
        type_: type_.into(),
        format: format.into(),
        description: description.into(),
        priority,
    };
    let first = match resource.family {
        Family::Event | Family::NewEvent => head("Last Seen", "string", "", "When the event was last seen.", 0),
        _ => head("Name", "string", "name", NAME, 0),
    };
    let rest: Vec<Head> = match &resource.custom {
        Some(custom) => custom
            .columns
            .iter()
            .map(|column| head(&column.name, &column.type_, &column.format, &column.description, column.priority))
            .collect(),
        None => builtin(resource)
            .iter()
            .map(|(name, type_, priority)| {
                let format = if *name == "Name" { "name" } else { "" };
                head(name, type_, format, if *name == "Age" { AGE } else { "" }, *priority)
            })
            .collect(),
    };
    std::iter::once(first).chain(rest).collect()
}

/// Returns the cells of an object.
pub(super) fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object["metadata"]["name"].clone();
    if let Some(custom) = &resource.custom {
        return std::iter::once(name).chain(custom.columns.iter().map(|column| cell(column, object, now))).collect();
    }
    let created = || age(&object["metadata"]["creationTimestamp"], now);
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| json!(value.as_i64().unwrap_or_default());
    let size = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    let mut cells = vec![name];
    match resource.family {
        Family::Namespace => cells.extend([status["phase"].clone(), created()]),
        Family::ConfigMap => cells.extend([json!(size("data") + size("binaryData")), created()]),
        Family::Secret => cells.extend([object["type"].clone(), json!(size("data")), created()]),
        Family::Service => {
            let selector = LabelSelector::of_object(&json!({"matchLabels": spec["selector"]})).text();
            cells.extend([
                spec["type"].clone(),
                or_none(spec["clusterIP"].as_str()),
                external(spec, status),
                json!(ports(&spec["ports"])),
                created(),
                or_none(Some(selector.as_str())),
            ]);
        }
        Family::Event | Family::NewEvent => return event(object, now),
        Family::Pod => cells.extend(pod(object, created())),
        Family::Deployment => cells.extend([
            json!(format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"]))),
            number(&status["updatedReplicas"]),
            number(&status["availableReplicas"]),
            created(),
        ]),
        Family::ReplicaSet => cells.extend([
            number(&spec["replicas"]),
            number(&status["replicas"]),
            number(&status["readyReplicas"]),
            created(),
        ]),
        Family::StatefulSet => cells
            .extend([json!(format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"]))), created()]),
        Family::Job => cells.extend(workloads::job(object, created(), now)),
        Family::Budget => cells.extend(workloads::budget(object, created())),
        Family::Lease => cells.extend([json!(spec["holderIdentity"].as_str().unwrap_or_default()), created()]),
        Family::EndpointSlice => cells.extend([
            object["addressType"].clone(),
            or_unset(object["ports"].as_array().map(|ports| joined(ports, |port| port["port"].to_string()))),
            or_unset(
                object["endpoints"]
                    .as_array()
                    .map(|all| joined(all, |one| one["addresses"][0].as_str().unwrap_or("").into())),
            ),
            created(),
        ]),
        Family::Rbac if resource.kind.ends_with("Binding") => {
            let of = |kind: &str| {
                let subjects = object["subjects"].as_array().map_or(&[][..], Vec::as_slice);
                let chosen: Vec<String> = subjects
                    .iter()
                    .filter(|subject| subject["kind"] == kind)
                    .map(|subject| match subject["namespace"].as_str() {
                        Some(namespace) => format!("{namespace}/{}", text(&subject["name"])),
                        None => text(&subject["name"]),
                    })
                    .collect();
                json!(chosen.join(", "))
            };
            let role = format!("{}/{}", text(&object["roleRef"]["kind"]), text(&object["roleRef"]["name"]));
            cells.extend([json!(role), created(), of("User"), of("Group"), of("ServiceAccount")]);
        }
        Family::Rbac | Family::Definition => cells.push(object["metadata"]["creationTimestamp"].clone()),
        Family::Node => {
            cells.extend([json!("Ready"), json!("<none>"), created(), status["nodeInfo"]["kubeletVersion"].clone()]);
        }
        _ => cells.push(created()),
    }
    if matches!(resource.family, Family::Deployment | Family::ReplicaSet | Family::StatefulSet | Family::Job) {
        let containers = spec["template"]["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
        cells.push(json!(joined(containers, |container| text(&container["name"]))));
        cells.push(json!(joined(containers, |container| text(&container["image"]))));
        if resource.family != Family::StatefulSet {
            cells.push(json!(LabelSelector::of_object(&spec["selector"]).text()));
        }
    }
    cells
}

fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let found = query(&column.path, object);
    let Some(first) = found.first() else { return Value::Null };
    match column.type_.as_str() {
        "date" => age(first, now),
        "string" if found.len() > 1 => {
            json!(
                found
                    .iter()
                    .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                    .collect::<Vec<_>>()
                    .join(",")
            )
        }
        "string" => match first {
            Value::String(_) | Value::Null => (*first).clone(),
            other => json!(other.to_string()),
        },
        _ => (*first).clone(),
    }
}

/// Evaluates a printer column. Returns no values if the column's path is invalid.
fn query<'a>(text: &str, object: &'a Value) -> Vec<&'a Value> {
    path(text).and_then(|path| object.query(&path).ok()).unwrap_or_default()
}

/// Converts Kubernetes' `JSONPath` to RFC 9535: adds the root, and replaces escaped dots.
fn path(text: &str) -> Option<String> {
    let mut out = String::from("$");
    let mut rest = text.trim_start_matches('$');
    while let Some(at) = rest.find("\\.") {
        let start = rest[..at].rfind('.')?;
        let end = (at..rest.len())
            .find(|&end| matches!(rest.as_bytes()[end], b'.' | b'[') && rest.as_bytes()[end - 1] != b'\\')
            .unwrap_or(rest.len());
        out.push_str(&rest[..start]);
        out.push_str("['");
        out.push_str(&rest[start + 1..end].replace("\\.", "."));
        out.push_str("']");
        rest = &rest[end..];
    }
    out.push_str(rest);
    Some(out)
}

fn pod(object: &Value, created: Value) -> [Value; 8] {
    let (spec, status) = (&object["spec"], &object["status"]);
    let containers = status["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    let total = spec["containers"].as_array().map_or(0, Vec::len);
    let ready = containers.iter().filter(|container| container["ready"] == true).count();
    let restarts: i64 = containers.iter().filter_map(|container| container["restartCount"].as_i64()).sum();
    let waiting = containers.iter().find_map(|container| container["state"]["waiting"]["reason"].as_str());
    let state = if object["metadata"]["deletionTimestamp"].is_string() {
        "Terminating"
    } else {
        let ended = containers.iter().find_map(|container| container["state"]["terminated"]["reason"].as_str());
        waiting.or(ended).or(status["phase"].as_str()).unwrap_or("Unknown")
    };
    [
        json!(format!("{ready}/{total}")),
        json!(state),
        json!(restarts.to_string()),
        created,
        or_none(status["podIP"].as_str()),
        or_none(spec["nodeName"].as_str()),
        json!("<none>"),
        json!("<none>"),
    ]
}

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |a: &str, b: &str| if object[a].is_null() { object[b].clone() } else { object[a].clone() };
    let about = either("involvedObject", "regarding");
    let source = either("source", "deprecatedSource");
    let reporter = either("reportingComponent", "reportingController");
    let first = [either("firstTimestamp", "deprecatedFirstTimestamp"), object["eventTime"].clone()];
    let last = [
        object["series"]["lastObservedTime"].clone(),
        either("lastTimestamp", "deprecatedLastTimestamp"),
        first[0].clone(),
        first[1].clone(),
    ];
    let seen =
        |times: &[Value]| times.iter().find(|time| time.is_string()).map_or(json!("<unknown>"), |time| age(time, now));
    let count = [&object["series"]["count"], &object["count"], &object["deprecatedCount"]];
    vec![
        seen(&last),
        object["type"].clone(),
        object["reason"].clone(),
        json!(format!("{}/{}", text(&about["kind"]).to_lowercase(), text(&about["name"]))),
        json!(text(&about["fieldPath"])),
        json!(source["component"].as_str().filter(|text| !text.is_empty()).or(reporter.as_str()).unwrap_or_default()),
        json!(text(&either("message", "note")).trim()),
        seen(&first),
        json!(count.iter().find_map(|count| count.as_i64()).unwrap_or(1)),
        object["metadata"]["name"].clone(),
    ]
}

fn external(spec: &Value, status: &Value) -> Value {
    match spec["type"].as_str() {
        Some("ExternalName") => spec["externalName"].clone(),
        Some("LoadBalancer") => {
            let ingress = status["loadBalancer"]["ingress"].as_array().map_or(&[][..], Vec::as_slice);
            if ingress.is_empty() { json!("<pending>") } else { json!(joined(ingress, |one| text(&one["ip"]))) }
        }
        _ => json!("<none>"),
    }
}

fn ports(ports: &Value) -> String {
    let all = ports.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return "<none>".into();
    }
    joined(all, |port| match port["nodePort"].as_i64() {
        Some(node) => format!("{}:{node}/{}", port["port"], text(&port["protocol"])),
        None => format!("{}/{}", port["port"], text(&port["protocol"])),
    })
}

fn joined(items: &[Value], show: impl Fn(&Value) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(",")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn or_none(text: Option<&str>) -> Value {
    json!(text.filter(|text| !text.is_empty()).unwrap_or("<none>"))
}

fn or_unset(text: Option<String>) -> Value {
    json!(text.filter(|text| !text.is_empty()).unwrap_or_else(|| "<unset>".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printer_columns_understand_filters_and_escaped_dots() {
        let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "metadata": {"annotations": {"a.b/c": "x"}}});
        let find = |text: &str| query(text, &object).first().map(|found| (*found).clone());
        assert_eq!(find(".status.conditions[?(@.type=='Ready')].status"), Some(json!("True")));
        assert_eq!(find(r#".status.conditions[?(@.type=="Ready")].status"#), Some(json!("True")));
        assert_eq!(find(r".metadata.annotations.a\.b/c"), Some(json!("x")));
        assert_eq!(find(".status.phase"), None);
    }
}
