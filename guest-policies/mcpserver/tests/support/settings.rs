//! Checks which paths in the plan each setting changes.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

use kaos_policy_sdk::types::Plan;
use kaos_policy_sdk::{Policy, testing};
use kaos_workload::schema;
use serde_json::{Value, json};

/// One row: the setting, another value for the setting, and the paths that this value changes, as `Kind:/pointer`.
pub(crate) type Row = (String, Value, Vec<String>);

/// Builds a row. `paths` is one text with all paths. In a path, `@` stands for the main container.
pub(crate) fn row(setting: &str, value: Value, paths: &str) -> Row {
    let path = |path: &str| path.replace('@', "Deployment:/spec/template/spec/containers/0");
    (setting.to_owned(), value, paths.split_whitespace().map(path).collect())
}

/// Builds the rows about the settings of an HTTP or TCP probe.
pub(crate) fn probe(setting: &str, field: &str, handler: &str) -> Vec<Row> {
    let at = |leaf: &str| format!("@/{field}/{leaf}");
    let is_http = handler == "httpGet";
    let only_http = |leaf: &str| if is_http { at(leaf) } else { String::new() };
    let (other, port) = if is_http { ("tcpSocket", "httpGet/port") } else { ("httpGet", "tcpSocket/port") };
    let of = |leaf: &str, value: Value, paths: &str| row(&format!("{setting}.{leaf}"), value, paths);
    let mut rows = vec![
        of("handler", json!(other), &format!("{} {}", at("httpGet"), at("tcpSocket"))),
        of("path", json!("/changed"), &only_http("httpGet/path")),
        of("port", json!(4711), &at(port)),
        of("scheme", json!("HTTPS"), &only_http("httpGet/scheme")),
    ];
    let numbers = ["initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold"];
    rows.extend(numbers.map(|number| of(number, json!(97), &at(number))));
    rows
}

/// Returns `settings` with protection: a decision point, and issuers of tokens.
pub(crate) fn secured(settings: &Value) -> Value {
    let values = [
        ("authorizer", json!("pdp.auth.svc:9191")),
        ("agents", json!({"issuer": "https://cluster", "jwks": "{\"keys\":[]}", "audience": "kaos-gateway"})),
        ("users", json!({"issuer": "http://idp.auth.svc:80/realms/kaos", "audience": "kaos", "jwksUri": ""})),
    ];
    values
        .iter()
        .fold(settings.clone(), |all, (name, value)| schema::with(&all, &format!("security.{name}"), value.clone()))
}

/// Builds the rows about security, for objects that [`secured`] protects.
pub(crate) fn security() -> Vec<Row> {
    let (guard, network) = ("SecurityPolicy:/spec", "NetworkPolicy:/spec");
    let backend = format!("{guard}/extAuth/grpc/backendRefs/0");
    let agent = |field: &str| format!("{guard}/jwt/providers/0/{field}");
    let user = |field: &str| format!("{guard}/jwt/providers/1/{field}");
    let from = |index: u8| {
        format!("{network}/ingress/0/from/{index}/namespaceSelector/matchLabels/kubernetes.io/metadata.name")
    };
    let of = |leaf: &str, value: Value, paths: &str| row(&format!("security.{leaf}"), value, paths);
    vec![
        of("targetHeader", json!(true), "HTTPRoute:/spec/rules/0/filters"),
        // The setting `authorizer`, which `secured` sets, wins over `pdp`. So `pdp` changes nothing.
        of("pdp", json!(true), ""),
        of("authorizer", json!("a.b.svc:1"), &format!("{backend}/name {backend}/namespace {backend}/port")),
        of("jwtOptional", json!(false), &format!("{guard}/jwt/optional")),
        of("agents.issuer", json!("https://other"), &agent("issuer")),
        of("agents.jwks", json!("{\"keys\":[{}]}"), &agent("localJWKS/inline")),
        of("agents.audience", json!("other"), &agent("audiences/0")),
        of("users.issuer", json!("https://other"), &format!("{} {}", user("issuer"), user("remoteJWKS/uri"))),
        of("users.audience", json!("other"), &user("audiences/0")),
        of("users.jwksUri", json!("https://keys"), &user("remoteJWKS/uri")),
        // With `secured`, the object already has a NetworkPolicy, so `strict` changes nothing.
        of("strict", json!(true), ""),
        of("networkPolicy.disabled", json!(true), "NetworkPolicy:"),
        of("networkPolicy.egress", json!(true), &format!("{network}/egress {network}/policyTypes")),
        of("gatewayNamespace", json!("other"), &from(0)),
        of("operatorNamespace", json!("other"), &from(1)),
    ]
}

/// Checks that the value in each row changes exactly the paths that the row lists. Also checks that every setting has a
/// row.
pub(crate) fn assert_each_changes_its_places<P: Policy>(
    settings: &Value,
    rows: &[Row],
    plan: impl Fn(&str, &Value) -> Plan,
) {
    let schema: Value = serde_json::from_str(&P::describe().settings_schema).unwrap();
    let mut leaves: Vec<String> = schema::leaves(&schema).into_iter().map(|(path, _)| path).collect();
    let mut tested: Vec<String> = rows.iter().map(|(setting, ..)| setting.clone()).collect();
    leaves.sort();
    tested.sort();
    assert_eq!(tested, leaves, "each setting has one row");
    for (setting, value, paths) in rows {
        let settings = if setting.starts_with("security.") { secured(settings) } else { settings.clone() };
        let before = plan(setting, &settings);
        let after = plan(setting, &schema::with(&settings, setting, value.clone()));
        let mut changed = Vec::new();
        differences("", &by_kind(&before), &by_kind(&after), &mut changed);
        let mut paths = paths.clone();
        paths.sort();
        changed.sort();
        assert_eq!(changed, paths, "{setting}");
    }
}

fn by_kind(plan: &Plan) -> Value {
    testing::manifests(plan).iter().map(|manifest| (manifest.kind().to_owned(), manifest.value().clone())).collect()
}

fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let null = Value::Null;
                let below = if path.is_empty() { format!("{key}:") } else { format!("{path}/{key}") };
                differences(&below, a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}/{index}"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        _ => found.push(path.to_owned()),
    }
}
