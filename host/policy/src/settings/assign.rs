//! Reads settings from the command line: `--set path=value` and settings files.

use serde_json::{Map, Value};

use super::{
    Layer, Origin, Path, Schema, SettingsError, SettingsErrors, Source,
    listed::{LISTED, listed},
    merge,
};
use crate::near::nearest;

/// Converts `--set` arguments to layers. `policies` contains the name and the schema of every policy. If the path of an
/// argument is a policy's name and then a setting of this policy, the argument applies to this policy. Any other
/// argument applies to every policy that has the setting.
pub fn assignments(arguments: &[String], policies: &[(&str, &Schema)]) -> Result<Vec<Layer>, SettingsErrors> {
    let mut layers = Vec::new();
    let mut errors = Vec::new();
    for argument in arguments {
        let Some((key, text)) = argument.split_once('=') else {
            errors.push(wrong("", &Path::parse(argument), "has no value: write path=value"));
            continue;
        };
        let path = Path::parse(key);
        let targets = targets(&path, policies);
        if targets.is_empty() {
            let (path, message) = stranger(&path, policies);
            errors.push(wrong("", &path, &message));
        }
        for (policy, schema, path) in targets {
            match schema.convert(&path, text) {
                Ok(value) => {
                    let source = Source { origin: Origin::CommandLine, via: None };
                    let mut merged = merge::Merged::new(&Value::Object(Map::new()));
                    merged.leaf(&path, value, &source);
                    layers.push(Layer::tree(Origin::CommandLine, policy, merged.finish().tree));
                }
                Err(message) => errors.push(wrong(policy, &path, &message)),
            }
        }
    }
    if errors.is_empty() { Ok(layers) } else { Err(SettingsErrors(errors)) }
}

/// Converts a settings file to layers. An object under a policy's name contains settings for this policy. Every other
/// setting in the file applies to all policies that have this setting. If the file contains a setting in both forms,
/// the value under the policy's name wins.
pub fn file(name: &str, document: &Value, policies: &[(&str, &Schema)]) -> Result<Vec<Layer>, SettingsErrors> {
    let source = Source { origin: Origin::File(name.to_owned()), via: None };
    let wrong = |(path, message): (Path, String)| {
        let source = Some(source.clone());
        SettingsError { policy: String::new(), path, source, message }
    };
    let Some(object) = document.as_object() else {
        let message = "are not an object: write each setting with its name";
        return Err(SettingsErrors(vec![wrong((Path::default(), message.to_owned()))]));
    };
    let is_policy = |key: &str| policies.iter().any(|(policy, _)| *policy == key);
    let (sections, shared): (Vec<_>, Vec<_>) = object.iter().partition(|(key, _)| is_policy(key));
    let mut leaves = Vec::new();
    for (key, value) in shared {
        flatten(&Path::default().then(key), value, &mut leaves);
    }
    let strangers = leaves.iter().filter(|(path, _)| !policies.iter().any(|(_, schema)| takes(schema, path)));
    let mut errors: Vec<_> = strangers.map(|(path, _)| wrong(stranger(path, policies))).collect();
    if !errors.is_empty() {
        // Remove equal errors, because several leaves can be below the same unknown name.
        errors.dedup();
        return Err(SettingsErrors(errors));
    }
    let shared = policies.iter().filter_map(|(policy, schema)| {
        let mut merged = merge::Merged::new(&Value::Object(Map::new()));
        let mut taken = leaves.iter().filter(|(path, _)| takes(schema, path)).peekable();
        taken.peek()?;
        for (path, value) in taken {
            merged.leaf(path, (*value).clone(), &source);
        }
        Some(Layer::tree(source.origin.clone(), *policy, merged.finish().tree))
    });
    let sections = sections.into_iter().map(|(policy, tree)| Layer::tree(source.origin.clone(), policy, tree.clone()));
    Ok(shared.chain(sections).collect())
}

/// Collects all leaves with their paths. An empty object is also a leaf.
fn flatten<'a>(path: &Path, value: &'a Value, leaves: &mut Vec<(Path, &'a Value)>) {
    match value.as_object().filter(|object| !object.is_empty()) {
        Some(object) => {
            for (name, value) in object {
                flatten(&path.then(name), value, leaves);
            }
        }
        None => leaves.push((path.clone(), value)),
    }
}

/// Returns whether a policy accepts a value at this path: its schema has this setting, or allows any content for a
/// setting above this path. The host validates the value later, after merging all layers.
fn takes(schema: &Schema, path: &Path) -> bool {
    let known = path.prefixes().take_while(|prefix| schema.has(prefix)).last();
    known.is_some_and(|known| known == *path || schema.names(&known).is_empty())
}

/// Returns the shortest prefix of a path that is not a setting of any policy. Also returns a message with a suggestion.
fn stranger(path: &Path, policies: &[(&str, &Schema)]) -> (Path, String) {
    let first = path.names().first().map(String::as_str).unwrap_or_default();
    let own: Vec<_> = policies.iter().filter(|(policy, _)| *policy == first).copied().collect();
    // If the path begins with a policy's name, search only the settings of this policy.
    let (base, among) =
        if own.is_empty() { (Path::default(), policies) } else { (Path::default().then(first), &own[..]) };
    let rest = if own.is_empty() { path.clone() } else { path.tail() };
    let known = rest.prefixes().take_while(|prefix| among.iter().any(|(_, schema)| schema.has(prefix))).last();
    let known = known.unwrap_or_default();
    let mut names: Vec<&str> = among.iter().flat_map(|(_, schema)| schema.names(&known)).collect();
    if own.is_empty() && known.names().is_empty() {
        names.extend(policies.iter().map(|(policy, _)| *policy));
    }
    names.sort_unstable();
    names.dedup();
    let wrong = rest.names().get(known.names().len()).map(String::as_str).unwrap_or_default();
    let at = |name: &str| base.names().iter().chain(known.names()).cloned().chain([name.to_owned()]).collect::<Path>();
    let message = match nearest(wrong, names.iter().copied()) {
        Some(near) => format!("does not exist: did you mean {}?", at(near)),
        None if names.is_empty() => "does not exist, and no setting exists at this level: remove it".to_owned(),
        None if names.len() <= LISTED => format!("does not exist: use one of {}", listed(&names)),
        None => {
            // The message also names the reference page, because `policy inspect` cannot show the built-in policies: no
            // file contains them.
            let count = names.len();
            let all = "docs/reference/settings.md, or the output of `policy inspect`";
            format!("does not exist, and none of the {count} is similar: see {all}")
        }
    };
    (at(wrong), message)
}

fn targets<'a>(path: &Path, policies: &[(&'a str, &'a Schema)]) -> Vec<(&'a str, &'a Schema, Path)> {
    let first = path.names().first().map(String::as_str).unwrap_or_default();
    if let Some((policy, schema)) = policies.iter().find(|(policy, _)| *policy == first) {
        let tail = path.tail();
        if takes(schema, &tail) {
            return vec![(*policy, *schema, tail)];
        }
    }
    policies
        .iter()
        .filter(|(_, schema)| takes(schema, path))
        .map(|(policy, schema)| (*policy, *schema, path.clone()))
        .collect()
}

fn wrong(policy: &str, path: &Path, message: &str) -> SettingsError {
    let source = Some(Source { origin: Origin::CommandLine, via: None });
    SettingsError { policy: policy.to_owned(), path: path.clone(), source, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(properties: &Value) -> Schema {
        let schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
        Schema::parse(&schema.to_string()).unwrap()
    }

    fn with_two<T>(look: impl FnOnce(&[(&str, &Schema)]) -> T) -> T {
        let probe =
            json!({"type": "object", "properties": {"period": {"type": "integer"}, "path": {"type": "string"}}});
        let kite = schema(&json!({"level": {"type": "string"}, "probe": probe, "labels": {"type": "object"}}));
        let boat = schema(&json!({"level": {"type": "string"}, "sails": {"type": "integer"}}));
        look(&[("kite", &kite), ("boat", &boat)])
    }

    fn read(document: &Value) -> Result<Vec<(String, Value)>, String> {
        let layers = with_two(|policies| file("s.yaml", document, policies)).map_err(|errors| errors.to_string())?;
        let content = |layer: Layer| match layer.content {
            super::super::Content::Tree(tree) => (layer.policy.unwrap_or_default(), tree),
            super::super::Content::Env(_) => panic!("a settings file contains no variables"),
        };
        Ok(layers.into_iter().map(content).collect())
    }

    #[test]
    fn a_setting_of_a_file_applies_to_every_policy_with_this_setting() {
        let layers = read(&json!({"level": "INFO", "sails": 2, "probe": {"period": 5}})).unwrap();
        let kite = json!({"level": "INFO", "probe": {"period": 5}});
        assert_eq!(layers, [("kite".into(), kite), ("boat".into(), json!({"level": "INFO", "sails": 2}))]);
    }

    #[test]
    fn values_under_a_policys_name_come_later_and_win() {
        let layers = read(&json!({"boat": {"level": "DEBUG"}, "level": "INFO"})).unwrap();
        let level = |of: &str, level: &str| (of.to_owned(), json!({"level": level}));
        assert_eq!(layers, [level("kite", "INFO"), level("boat", "INFO"), level("boat", "DEBUG")]);
    }

    #[test]
    fn content_that_the_schema_leaves_open_is_taken_unchanged() {
        let labels = json!({"labels": {"a.b/c": "d"}});
        assert_eq!(read(&labels).unwrap(), [("kite".to_owned(), labels)]);
    }

    #[test]
    fn an_unknown_setting_is_refused_with_its_file_and_a_similar_name() {
        for (document, message) in [
            (json!({"levle": "INFO"}), "setting levle, given by file s.yaml, does not exist: did you mean level?"),
            (
                json!({"kit": {"level": "INFO"}}),
                "setting kit, given by file s.yaml, does not exist: did you mean kite?",
            ),
            (
                json!({"probe": {"perod": 1, "path": "/"}}),
                "setting probe.perod, given by file s.yaml, does not exist: did you mean probe.period?",
            ),
            (
                json!({"colour": {"a": 1, "b": 2}}),
                "setting colour, given by file s.yaml, does not exist: use one of boat, kite, labels, level, probe, sails",
            ),
            (json!("level"), "the settings, given by file s.yaml, are not an object: write each setting with its name"),
        ] {
            assert_eq!(read(&document).unwrap_err(), message);
        }
    }

    #[test]
    fn an_assignment_to_open_content_works_like_a_settings_file() {
        for of in ["labels.a", "kite.labels.a"] {
            let layers = with_two(|policies| assignments(&[format!("{of}=b")], policies)).unwrap();
            assert_eq!(layers, [Layer::tree(Origin::CommandLine, "kite", json!({"labels": {"a": "b"}}))], "{of}");
        }
    }

    #[test]
    fn an_unknown_assignment_to_a_policy_lists_the_policys_settings() {
        let some: Value = (10..30).map(|i| (format!("setting{i}"), json!({"type": "string"}))).collect();
        let (some, none) = (schema(&some), schema(&json!({})));
        let set =
            |text: &str| assignments(&[text.to_owned()], &[("kite", &some), ("boat", &none)]).unwrap_err().to_string();
        let told = set("kite.colour=red");
        assert!(
            told.contains("does not exist: use one of setting10, setting11, ") && told.ends_with("setting29"),
            "{told}"
        );
        let told = set("boat.colour=red");
        assert_eq!(
            told,
            "setting boat.colour, given by --set, does not exist, and no setting exists at this level: remove it"
        );
    }

    #[test]
    fn an_assignment_that_no_policy_has_is_refused_with_a_similar_name() {
        let set = |text: &str| with_two(|policies| assignments(&[text.to_owned()], policies)).unwrap_err().to_string();
        assert_eq!(set("levle=INFO"), "setting levle, given by --set, does not exist: did you mean level?");
        assert_eq!(
            set("kite.levle=INFO"),
            "setting kite.levle, given by --set, does not exist: did you mean kite.level?"
        );
        assert_eq!(set("level"), "setting level, given by --set, has no value: write path=value");
        let many: Value = (0..40).map(|i| (format!("setting{i}"), json!({"type": "string"}))).collect();
        let many = schema(&many);
        let told = assignments(&["colour=red".to_owned()], &[("kite", &many)]).unwrap_err().to_string();
        assert!(told.contains("none of the 41") && told.contains("settings.md") && told.len() < 160, "{told}");
    }
}
