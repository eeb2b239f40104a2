//! Settings of a command line: `--set path=value` and settings files.

use serde_json::{Map, Value};

use super::{Layer, Origin, Path, Schema, SettingsError, SettingsErrors, Source, merge};

/// Layers of `--set` arguments. `policies` are the policies there are, by name. A path may begin with the
/// name of a policy; otherwise it is for each policy that has such a setting.
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
            let names: Vec<_> = policies.iter().map(|(name, _)| *name).collect();
            let message = format!("does not exist in any of the policies {}", names.join(", "));
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

/// Layers of a settings file: for each policy an object under its name, or, when there is only one policy,
/// its settings alone.
pub fn file(name: &str, document: &Value, policies: &[(&str, &Schema)]) -> Result<Vec<Layer>, SettingsErrors> {
    let origin = || Origin::File(name.to_owned());
    let source = || Some(Source { origin: origin(), via: None });
    let error = |path: Path, message: String| SettingsError { policy: String::new(), path, source: source(), message };
    let Some(object) = document.as_object() else {
        return Err(SettingsErrors(vec![error(
            Path::default(),
            "is not an object: write settings by their names".into(),
        )]));
    };
    let named = |key: &String| policies.iter().any(|(policy, _)| policy == key);
    if let ([(policy, _)], false) = (policies, object.keys().any(named)) {
        return Ok(vec![Layer::tree(origin(), *policy, document.clone())]);
    }
    let strangers: Vec<_> = object.keys().filter(|key| !named(key)).collect();
    if strangers.is_empty() {
        return Ok(object.iter().map(|(policy, tree)| Layer::tree(origin(), policy, tree.clone())).collect());
    }
    let known: Vec<_> = policies.iter().map(|(policy, _)| *policy).collect();
    let message = format!("is not the name of a policy: put settings under one of {}", known.join(", "));
    Err(SettingsErrors(strangers.into_iter().map(|key| error(Path::default().then(key), message.clone())).collect()))
}

fn targets<'a>(path: &Path, policies: &[(&'a str, &'a Schema)]) -> Vec<(&'a str, &'a Schema, Path)> {
    let first = path.names().first().map(String::as_str).unwrap_or_default();
    if let Some((policy, schema)) = policies.iter().find(|(policy, _)| *policy == first) {
        let tail = path.tail();
        if schema.has(&tail) {
            return vec![(*policy, *schema, tail)];
        }
    }
    policies
        .iter()
        .filter(|(_, schema)| schema.has(path))
        .map(|(policy, schema)| (*policy, *schema, path.clone()))
        .collect()
}

fn wrong(policy: &str, path: &Path, message: &str) -> SettingsError {
    let source = Some(Source { origin: Origin::CommandLine, via: None });
    SettingsError { policy: policy.to_owned(), path: path.clone(), source, message: message.to_owned() }
}
