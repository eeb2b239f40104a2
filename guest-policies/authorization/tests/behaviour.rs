//! Tests the data of the decision point, and the reports on both kinds.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use kaos_authorization::Authorization;
use kaos_policy_sdk::Policy;
use kaos_policy_sdk::testing::{self, defaults};
use kaos_policy_sdk::types::{Outcome, Plan, Refusal, Report, Subject, Truth};
use serde_json::{Value, json};

const KEYS: &str =
    r#"{"keys":[{"kty":"RSA","kid":"k","n":"AQAB","e":"AQAB","d":"private"},{"kty":"oct","k":"shared"}]}"#;

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "team"}, "spec": spec})
}

fn labelled(kind: &str, name: &str, labels: &Value) -> Value {
    let mut object = object(kind, name, &json!({}));
    object["metadata"]["labels"] = labels.clone();
    object
}

fn grant(name: &str, subjects: &Value, resources: &Value) -> Value {
    object("AccessGrant", name, &json!({"subjects": subjects, "resources": resources}))
}

fn projection(more: &Value) -> Value {
    let mut spec = json!({"namespaces": ["team"]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object("AuthorizationPolicy", "kaos-authz", &spec)
}

fn set(changes: &[(&str, &str)]) -> Value {
    let mut settings = defaults(&Authorization::describe().settings_schema);
    settings["enabled"] = json!(true);
    settings["agents"]["issuer"] = json!("https://cluster");
    settings["agents"]["jwks"] = json!(KEYS);
    settings["users"] = json!({"issuer": "https://people", "audience": "kaos", "jwks": KEYS});
    for (path, value) in changes {
        *settings.pointer_mut(path).unwrap() = json!(value);
    }
    settings
}

fn subject(object: &Value, beside: &[Value], settings: &Value) -> Subject {
    testing::subject(object).settings(settings).beside::<Authorization>(beside).build()
}

fn plan(object: &Value, beside: &[Value], settings: &Value) -> Result<Plan, Refusal> {
    testing::plan::<Authorization>(&subject(object, beside, settings))
}

/// Returns the decision point's data for the objects in `beside`.
fn data(beside: &[Value], settings: &Value) -> Value {
    let plan = plan(&projection(&json!({})), beside, settings).unwrap();
    let config = testing::manifest(&plan, "ConfigMap");
    serde_json::from_str::<Value>(config.str_at(&["data", "data.json"]).unwrap()).unwrap()["kaos"].clone()
}

fn told(object: &Value, beside: &[Value], settings: &Value, outcome: Outcome) -> Report {
    Authorization::assess(&subject(object, beside, settings), &testing::observation(outcome).build())
}

/// Returns the objects of a namespace: two Agents, one of them autonomous, and every form of AccessGrant.
fn team() -> Vec<Value> {
    let person = |name: &str| json!({"kind": "User", "name": name});
    vec![
        object(
            "Agent",
            "plain",
            &json!({"modelAPI": "llm", "mcpServers": ["sums"], "agentNetwork": {"access": ["watcher"]},
            "config": {"memory": {"memoryStore": "notes"}}}),
        ),
        object("Agent", "watcher", &json!({"modelAPI": "llm", "config": {"autonomous": {"goal": "watch"}}})),
        labelled("MCPServer", "sums", &json!({"team": "maths", "stage": "prod"})),
        labelled("MCPServer", "words", &json!({"team": "letters"})),
        grant("staff", &json!([{"kind": "Group", "name": "staff"}]), &json!([{"kind": "Agent", "name": "plain"}])),
        grant(
            "ada",
            &json!([person("ada"), person("ada@example.com")]),
            &json!([{"kind": "MCPServer", "selector": {"matchLabels": {"team": "maths"}}}]),
        ),
        grant(
            "notes",
            &json!([{"kind": "Agent", "name": "plain"}]),
            &json!([{"kind": "MemoryStore", "name": "notes"}]),
        ),
        grant("nobody", &json!([{"kind": "Agent", "name": "absent"}]), &json!([{"kind": "ModelAPI", "name": "llm"}])),
        grant("broken", &json!([person("eve")]), &json!([{"kind": "ModelAPI"}])),
    ]
}

#[test]
fn agents_may_call_what_they_refer_to_and_what_is_granted_to_them() {
    let data = data(&team(), &set(&[]));
    let plain = [
        "kaos://agent/team/watcher",
        "kaos://mcpserver/team/sums",
        "kaos://memorystore/team/notes",
        "kaos://modelapi/team/llm",
    ];
    let wanted = json!({"kaos://agent/team/plain": plain, "kaos://agent/team/watcher": ["kaos://modelapi/team/llm"]});
    assert_eq!(data["grants"], wanted);
    // As in KAOS, an Agent needs an AccessGrant for its own store.
    let ungranted: Vec<Value> = team().into_iter().filter(|it| it["metadata"]["name"] != "notes").collect();
    let own = self::data(&ungranted, &set(&[]))["grants"]["kaos://agent/team/plain"].clone();
    assert_eq!(own, json!([plain[0], plain[1], plain[3]]));
    assert_eq!(data["agents"]["kaos://agent/team/watcher"]["autonomous"], true);
    assert_eq!(data["agents"]["kaos://agent/team/plain"]["autonomous"], false);
}

#[test]
fn users_and_groups_may_call_what_is_granted_to_them_and_an_invalid_grant_gives_nothing() {
    let data = data(&team(), &set(&[]));
    let sums = ["kaos://mcpserver/team/sums"];
    let wanted = json!({"group:staff": ["kaos://agent/team/plain"], "user:ada": sums, "user:ada@example.com": sums});
    assert_eq!(data["user_grants"], wanted);
}

#[test]
fn the_data_has_only_public_keys_of_rsa() {
    let key = json!([{"kty": "RSA", "kid": "k", "n": "AQAB", "e": "AQAB"}]);
    let data = data(&team(), &set(&[]));
    assert_eq!(data["jwks"], json!({"https://cluster": {"keys": key}, "https://people": {"keys": key}}));
}

#[test]
fn callers_whose_identity_is_unknown_get_nothing() {
    for unknown in [("/agents/provider", "oidc"), ("/agents/issuer", ""), ("/agents/jwks", "")] {
        let data = data(&team(), &set(&[unknown]));
        assert_eq!(
            (&data["grants"], &data["agents"], &data["agent"]),
            (&json!({}), &json!({}), &json!({})),
            "{unknown:?}"
        );
        assert_ne!(data["user_grants"], json!({}), "{unknown:?}");
    }
    for unknown in [("/users/issuer", ""), ("/users/audience", ""), ("/users/jwks", "")] {
        let data = data(&team(), &set(&[unknown]));
        assert_eq!((&data["user_grants"], &data["user"]), (&json!({}), &json!({})), "{unknown:?}");
        assert_ne!(data["grants"], json!({}), "{unknown:?}");
    }
}

#[test]
fn keys_that_cannot_be_used_are_refused_with_the_setting() {
    for keys in ["{", "{}", r#"{"keys":[{"kty":"EC"}]}"#] {
        for (pointer, path) in [("/agents/jwks", "settings.agents.jwks"), ("/users/jwks", "settings.users.jwks")] {
            let refused = plan(&projection(&json!({})), &[], &set(&[(pointer, keys)])).unwrap_err();
            let Refusal::Invalid(wrong) = &refused else { panic!("{refused:?}") };
            assert_eq!(wrong[0].path, path, "{keys}");
        }
    }
}

#[test]
fn every_relation_of_a_selector_selects_as_in_kubernetes() {
    let of = |expression: Value| {
        let mut all = team();
        all.push(grant(
            "x",
            &json!([{"kind": "Group", "name": "x"}]),
            &json!([{"kind": "MCPServer", "selector": {"matchExpressions": [expression]}}]),
        ));
        data(&all, &set(&[]))["user_grants"]["group:x"].clone()
    };
    let (sums, words) = ("kaos://mcpserver/team/sums", "kaos://mcpserver/team/words");
    for (expression, selected) in [
        (json!({"key": "team", "operator": "In", "values": ["maths", "x"]}), json!([sums])),
        (json!({"key": "stage", "operator": "NotIn", "values": ["prod"]}), json!([words])),
        (json!({"key": "stage", "operator": "Exists"}), json!([sums])),
        (json!({"key": "stage", "operator": "DoesNotExist"}), json!([words])),
        (json!({"key": "team", "operator": "Exists"}), json!([sums, words])),
        (json!({"key": "team", "operator": "In"}), Value::Null),
        (json!({"key": "team", "operator": "Exists", "values": ["x"]}), Value::Null),
    ] {
        assert_eq!(of(expression.clone()), selected, "{expression}");
    }
}

#[test]
fn a_projection_of_another_name_or_without_namespaces_is_refused() {
    let mut other = projection(&json!({}));
    other["metadata"]["name"] = json!("mine");
    let many: Vec<String> = (0..101).map(|at| format!("n{at}")).collect();
    for (object, path) in [
        (other, "metadata.name"),
        (projection(&json!({"namespaces": []})), "spec.namespaces"),
        (projection(&json!({"namespaces": many})), "spec.namespaces"),
        (projection(&json!({"namespaces": ["A"]})), "spec.namespaces[0]"),
        (projection(&json!({"namespaces": ["a", "a"]})), "spec.namespaces[1]"),
        (projection(&json!({"configMap": "A"})), "spec.configMap"),
    ] {
        let refused = plan(&object, &[], &set(&[])).unwrap_err();
        let Refusal::Invalid(wrong) = &refused else { panic!("{refused:?}") };
        assert_eq!(wrong[0].path, path);
    }
}

#[test]
fn more_selected_kinds_than_a_pass_can_read_are_refused_with_a_remedy() {
    let kinds = ["MCPServer", "MemoryStore", "ModelAPI"];
    let resources: Vec<Value> =
        kinds.iter().map(|kind| json!({"kind": kind, "selector": {"matchLabels": {"team": "maths"}}})).collect();
    let asked = |count: usize| {
        let namespaces: Vec<String> = (0..count).map(|at| format!("n{at}")).collect();
        let grants: Vec<Value> = namespaces
            .iter()
            .map(|namespace| {
                let mut one = grant("all", &json!([{"kind": "User", "name": "ada"}]), &json!(resources));
                one["metadata"]["namespace"] = json!(namespace);
                one
            })
            .collect();
        plan(&projection(&json!({"namespaces": namespaces})), &grants, &set(&[]))
    };
    assert!(asked(50).is_ok());
    let refused = asked(51).unwrap_err();
    let Refusal::Unsupported(message) = &refused else { panic!("{refused:?}") };
    assert!(message.contains("in 153 pairs") && message.contains("the limit of 148"), "{message}");
}

#[test]
fn a_projection_reads_no_status_and_no_other_field_that_is_not_in_the_data() {
    let needs = Authorization::needs(&subject(&projection(&json!({})), &team(), &set(&[])));
    assert!(needs.len() >= 3, "{needs:?}");
    for need in needs {
        let is_read = |field: &String| field.starts_with("spec") || field.starts_with("metadata.");
        assert!(!need.fields.is_empty() && need.fields.iter().all(is_read), "{need:?}");
    }
}

#[test]
fn data_that_no_config_map_can_hold_is_refused_with_its_size() {
    let servers: Vec<String> = (0..500).map(|at| format!("server-{at}-{}", "x".repeat(40))).collect();
    let agents: Vec<Value> = (0..60)
        .map(|at| object("Agent", &format!("a{at}"), &json!({"modelAPI": "m", "mcpServers": servers})))
        .collect();
    let refused = plan(&projection(&json!({})), &agents, &set(&[])).unwrap_err();
    let Refusal::Unsupported(message) = &refused else { panic!("{refused:?}") };
    assert!(message.contains("list fewer namespaces"), "{message}");
}

#[test]
fn the_report_names_grants_only_while_the_config_map_is_as_planned() {
    let report = |outcome| told(&projection(&json!({})), &team(), &set(&[]), outcome);
    let applied = report(Outcome::Applied);
    let fields: Value = serde_json::from_str(&applied.fields).unwrap();
    assert_eq!(fields["grants"], json!({"team/ada": 0, "team/nobody": 0, "team/notes": 0, "team/staff": 0}));
    assert!(applied.ready);
    let failed = report(Outcome::Failed("the API server refuses it".to_owned()));
    assert_eq!((failed.ready, failed.phase.as_str(), failed.fields.as_str()), (false, "Failed", "{}"));
}

#[test]
fn a_grant_follows_the_state_of_the_projection() {
    let grant = grant("g", &json!([{"kind": "Group", "name": "staff"}]), &json!([{"kind": "Agent", "name": "a"}]));
    let projected = |status: &Value| {
        let mut projection = projection(&json!({}));
        projection["metadata"]["namespace"] = json!("kaos-system");
        projection["status"] = status.clone();
        vec![projection]
    };
    let manual = {
        let mut all = projected(&json!({}));
        all[0]["spec"]["dataSource"] = json!("manual");
        all
    };
    for (beside, truth, reason) in [
        (vec![], Truth::No, "PolicyProjectionInactive"),
        (manual, Truth::No, "PolicyProjectionInactive"),
        (projected(&json!({"phase": "Pending"})), Truth::Unknown, "ProjectionPending"),
        (projected(&json!({"phase": "Ready", "grants": {"team/g": 3}})), Truth::Unknown, "ProjectionPending"),
        (projected(&json!({"phase": "Failed", "message": "why"})), Truth::No, "ProjectionFailed"),
        (projected(&json!({"phase": "Ready", "grants": {"team/g": 0}})), Truth::Yes, "Enforced"),
    ] {
        let answer = plan(&grant, &beside, &set(&[]));
        let outcome = answer.clone().map_or_else(Outcome::Refused, |_| Outcome::Applied);
        let report = told(&grant, &beside, &set(&[]), outcome);
        let condition = &report.conditions[0];
        assert_eq!((condition.type_.as_str(), condition.reason.as_str()), ("Enforced", reason));
        assert_eq!((condition.status, report.ready, answer.is_ok()), (truth, truth == Truth::Yes, truth == Truth::Yes));
    }
}

#[test]
fn a_grant_without_authorization_is_not_ready_until_a_person_acts() {
    let grant = grant("g", &json!([{"kind": "Group", "name": "staff"}]), &json!([{"kind": "Agent", "name": "a"}]));
    let mut settings = set(&[]);
    settings["enabled"] = json!(false);
    let report = told(&grant, &[], &settings, Outcome::Applied);
    assert_eq!((report.ready, report.phase.as_str()), (false, "Failed"));
    let told: Vec<_> = report.conditions.iter().map(|it| (it.type_.as_str(), it.status, it.reason.as_str())).collect();
    let reason = "AuthorizationDisabled";
    assert_eq!(told, [("Enforced", Truth::No, reason), ("Ready", Truth::No, reason)]);
}

#[test]
fn a_grant_counts_also_at_a_decision_point_of_the_user() {
    let grant = grant("g", &json!([{"kind": "Group", "name": "staff"}]), &json!([{"kind": "Agent", "name": "a"}]));
    let mut settings = set(&[]);
    settings["enabled"] = json!(false);
    settings["authorizer"] = json!("pdp.authz.svc:9191");
    let mut projection = projection(&json!({}));
    projection["metadata"]["namespace"] = json!("kaos-system");
    projection["status"] = json!({"phase": "Ready", "grants": {"team/g": 0}});
    let report = told(&grant, &[projection], &settings, Outcome::Applied);
    assert_eq!((report.conditions[0].reason.as_str(), report.ready), ("Enforced", true));
}

/// Compares the data with `tests/rego/data.json`. The tests of the Rego rules also read this file, but replace its keys
/// with the keys that sign their tokens.
#[test]
fn the_rules_are_tested_with_this_data() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/rego/data.json");
    let text = format!("{:#}\n", json!({"kaos": data(&team(), &set(&[]))}));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "UPDATE_GOLDEN=1 writes tests/rego/data.json");
}
