//! Objects of the largest size that an API server accepts. Each object gets either a plan, or a refusal with the path,
//! the actual size and the limit. A pass must never end with a failure, because a failure would count against the
//! policy.

use kaos_tests::hostile::{Subject, put};
use serde_json::{Value, json};

use super::{NATIVE, SANDBOXED, one_of_each_kind};

/// The size in bytes of the text, list or map that a test puts into an object. The largest object that an API server
/// accepts is only a little larger.
const MUCH: usize = 1_000_000;

fn everywhere() -> impl Iterator<Item = &'static Subject> {
    one_of_each_kind(&NATIVE).into_iter().chain(one_of_each_kind(&SANDBOXED))
}

fn of(kind: &str) -> impl Iterator<Item = &'static Subject> {
    everywhere().filter(move |subject| subject.object["kind"] == kind)
}

fn texts(count: usize, text: &str) -> Value {
    (0..count).map(|n| format!("{text}{n}")).collect()
}

fn variables(count: usize) -> Value {
    (0..count).map(|n| json!({"name": format!("V{n}"), "value": "v"})).collect()
}

/// Asserts that the only violation is at `path`, and that the violation's message contains `limit`.
fn assert_refused(subject: &Subject, object: &Value, path: &str, limit: &str) {
    let refused = subject.refusal(object);
    let told: Vec<_> = refused.iter().map(|it| (it.path.as_str(), it.message.contains(limit))).collect();
    assert_eq!(told, [(path, true)], "{}: {:?}", subject.object["kind"], refused.first());
}

#[test]
fn too_many_links_are_refused_at_their_list() {
    for subject in of("Agent") {
        let mut object = subject.object.clone();
        object["spec"]["mcpServers"] = texts(300, "tools");
        assert_refused(subject, &object, "spec.mcpServers", "limit is 90");
        let mut object = subject.object.clone();
        object["spec"]["agentNetwork"] = json!({"access": texts(300, "peer")});
        assert_refused(subject, &object, "spec.agentNetwork.access", "limit is 160");
        object["spec"]["agentNetwork"] = json!({"access": texts(160, "peer")});
        assert!(subject.answers(&object).unwrap(), "the largest allowed number of links gets a plan");
    }
}

#[test]
fn too_many_containers_are_refused_at_their_list() {
    for subject in everywhere() {
        let containers = |name: &str, count: usize| -> Value {
            (0..count).map(|n| json!({"name": format!("{name}{n}"), "image": "side:1"})).collect()
        };
        let mut object = subject.object.clone();
        object["spec"]["podSpec"] = json!({"containers": containers("side", 300)});
        assert_refused(subject, &object, "spec.podSpec.containers", "limit is 100");
        object["spec"]["podSpec"] =
            json!({"containers": containers("side", 100), "initContainers": containers("init", 100)});
        assert!(subject.answers(&object).unwrap(), "the largest allowed number of containers gets a plan");
    }
}

#[test]
fn too_many_volumes_are_refused_at_their_list() {
    for subject in everywhere() {
        let volumes =
            |count: usize| -> Value { (0..count).map(|n| json!({"name": format!("v{n}"), "emptyDir": {}})).collect() };
        let mut object = subject.object.clone();
        object["spec"]["podSpec"] = json!({"volumes": volumes(12_000)});
        assert_refused(subject, &object, "spec.podSpec.volumes", "limit is 2000");
        object["spec"]["podSpec"] = json!({"volumes": volumes(2_000)});
        assert!(subject.answers(&object).unwrap());
    }
}

#[test]
fn a_configuration_that_takes_too_long_to_read_is_refused() {
    for subject in of("ModelAPI") {
        let config = |entries: usize| "model_list:\n".to_owned() + &"- {model_name: gpt-4o}\n".repeat(entries);
        let mut object = subject.object.clone();
        object["spec"]["mode"] = json!("Proxy");
        object["spec"]["proxyConfig"] = json!({"models": ["*"], "configYaml": {"fromString": config(18_000)}});
        let path = "spec.proxyConfig.configYaml.fromString";
        assert_refused(subject, &object, path, "limit is 150000");
        object["spec"]["proxyConfig"]["configYaml"]["fromString"] = json!(config(6_000));
        assert!(subject.answers(&object).unwrap());
        object["spec"]["proxyConfig"]["models"] = texts(1_000, "model");
        assert_refused(subject, &object, path, "too many to compare");
    }
}

#[test]
fn a_configuration_of_any_form_is_read_within_the_limits_of_the_sandbox() {
    let forms = [
        "- a\n",
        "- \n",
        "- - a\n",
        "- {a: b}\n",
        "# nothing\n",
        "\n",
        " ",
        "\"\\n\"\n ",
        "'a' ",
        "a\n",
        "!a &b ",
        "[a]\n",
    ];
    let in_brackets = ["a,", "{},", "[],", "a: b,", "\"a\",", "'a' ,", ",", "? a,", "a\n"];
    let mut texts: Vec<String> = forms.iter().map(|form| form.repeat(150_000 / form.len())).collect();
    texts.extend(in_brackets.iter().map(|form| format!("[{}]", form.repeat(149_990 / form.len()))));
    texts.push((0..11_000).map(|n| format!("key{n}: a")).collect::<Vec<_>>().join("\n"));
    texts.push(format!("a: |\n{}", "  text\n".repeat(20_000)));
    texts.push(format!("a: >\n{}", "  text\n\n".repeat(18_000)));
    texts.push(format!("a: &a [{}]\nb: [{}]", "x,".repeat(1_000), "*a,".repeat(45_000)));
    for subject in of("ModelAPI") {
        for text in &texts {
            let mut object = subject.object.clone();
            object["spec"]["mode"] = json!("Proxy");
            object["spec"]["proxyConfig"] = json!({"models": ["*"], "configYaml": {"fromString": text}});
            let answered = subject.answers(&object);
            assert!(answered.is_ok(), "{:?}…: {answered:?}", text.chars().take(20).collect::<String>());
        }
    }
}

#[test]
fn ten_thousand_variables_give_a_plan_and_more_are_refused() {
    let references: Value = (0..5_000)
        .map(|n| json!({"name": format!("V{n}"), "valueFrom": {"secretKeyRef": {"name": "s", "key": format!("k{n}")}}}))
        .collect();
    for subject in everywhere() {
        let with = |path: &str, env: &Value| {
            let mut object = subject.object.clone();
            *object.pointer_mut(path).unwrap() = env.clone();
            object
        };
        for path in ["/spec/container/env", "/spec/podSpec/containers/0/env"] {
            assert!(subject.answers(&with(path, &variables(10_000))).unwrap(), "{path}");
            assert!(subject.answers(&with(path, &references)).unwrap(), "{path}");
        }
        for (count, limit) in [(12_500, "limit is 12000"), (15_000, "limit is 40,000")] {
            let object = with("/spec/container/env", &variables(count));
            assert_refused(subject, &object, "spec.container.env", limit);
        }
    }
}

#[test]
fn every_list_and_every_object_of_a_megabyte_is_answered() {
    let mut failed = Vec::new();
    for subject in one_of_each_kind(&SANDBOXED) {
        for path in subject.lists_and_objects() {
            // Try two values of the size `MUCH`: one with any number of entries, and one with at most 9,900 entries. If
            // the entries are large, both values are the same.
            let grow = |entries| (entries, grown(subject.at(&path), MUCH, entries));
            let mut values = Vec::from([usize::MAX, 9_900].map(grow));
            values.dedup_by(|one, other| one.1 == other.1);
            for (entries, value) in values {
                let mut object = subject.object.clone();
                put(&mut object, &path, value);
                if let Err(error) = subject.answers(&object) {
                    failed.push(format!("{} {}: {entries}: {error:#}", subject.object["kind"], path.join(".")));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_text_of_a_megabyte_gives_a_plan_in_the_sandbox() {
    for subject in one_of_each_kind(&SANDBOXED) {
        let mut object = subject.object.clone();
        object["spec"]["container"]["args"] = json!(["x".repeat(MUCH)]);
        assert!(subject.answers(&object).unwrap());
    }
}

/// Returns a larger value. Grows a list by repeating its items, and an object by repeating its members with new names.
fn grown(value: &Value, bytes: usize, entries: usize) -> Value {
    let size = |value: &Value| value.to_string().len() + 8;
    match value {
        Value::Array(items) => {
            let times = (bytes / items.iter().map(size).sum::<usize>()).min(entries / items.len());
            let again = (0..times).flat_map(|n| items.iter().map(move |item| renamed(item, n)));
            items.iter().cloned().chain(again).collect()
        }
        Value::Object(members) => {
            let size = members.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>();
            let times = (bytes / size).min(entries / members.len());
            let again = (0..times).flat_map(|n| members.iter().map(move |(k, v)| (format!("{k}{n}"), v.clone())));
            Value::Object(members.clone().into_iter().chain(again).collect())
        }
        other => other.clone(),
    }
}

/// Gives an item another name, so that Kubernetes treats it as a different item.
fn renamed(item: &Value, number: usize) -> Value {
    const KEYS: [&str; 4] = ["name", "mountPath", "ip", "topologyKey"];
    let other = |text: &str| json!(format!("{text}{number}"));
    let mut item = item.clone();
    match &mut item {
        Value::String(text) => return other(text),
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) if KEYS.contains(&key.as_str()) => *value = other(text),
                    Value::Number(_) if key == "containerPort" => *value = json!(number),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    item
}
