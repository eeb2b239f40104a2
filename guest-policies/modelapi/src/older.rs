//! Adds notes on deprecated fields that `spec.container` replaces.

use alloc::vec::Vec;
use kaos_crds::modelapi::Mode;
use kaos_crds::{EnvVar, ModelAPISpec};
use kaos_policy_sdk::types::Note;
use kaos_workload::notes::{older, older_env};

const CONTAINER_ENV: &str = "spec.container.env";

/// Adds notes on the deprecated fields of the object's mode. This function adds no note on the other mode's fields,
/// which have no effect.
pub(crate) fn containers(spec: &ModelAPISpec, notes: &mut Vec<Note>) {
    let own = spec.container.as_ref();
    let variables = || names(own.map_or(&[][..], |own| &own.env));
    if spec.mode == Mode::Proxy {
        let list = spec.proxy_config.as_ref().map_or(&[][..], |config| &config.env);
        notes.extend(older_env("spec.proxyConfig.env", names(list), CONTAINER_ENV, variables()));
        return;
    }
    let hosted = spec.hosted_config.as_ref().map_or(&[][..], |config| &config.env);
    notes.extend(older_env("spec.hostedConfig.env", names(hosted), CONTAINER_ENV, variables()));
    let Some(server) = &spec.server_config else { return };
    let newer = variables().chain(names(hosted));
    notes.extend(older_env("spec.serverConfig.env", names(&server.env), CONTAINER_ENV, newer));
    if server.resources.is_some() {
        let is_newer = own.is_some_and(|own| own.resources.is_some());
        notes.push(older("spec.serverConfig.resources", "spec.container.resources", is_newer));
    }
}

fn names(list: &[EnvVar]) -> impl ExactSizeIterator<Item = &str> {
    list.iter().map(|variable| variable.name.as_str())
}

#[cfg(test)]
mod tests {
    use kaos_policy_sdk::types::Refusal;
    use serde_json::{Value, json};

    use crate::wanted::Wanted;

    fn wanted(spec: Value) -> Result<Vec<kaos_policy_sdk::types::Note>, Refusal> {
        let mut notes = Vec::new();
        Wanted::of(&serde_json::from_value(spec).unwrap(), &mut notes).map(|_| notes)
    }

    #[test]
    fn an_older_field_that_a_newer_one_replaces_is_reported_as_ignored() {
        let ignored = |spec: Value| -> Vec<(String, String)> {
            let (start, end) = (" is an older field and is ignored, since ", " is set: remove it");
            let told = wanted(spec).unwrap().into_iter().filter_map(|note| {
                let (old, newer) = note.message.split_once(start)?;
                Some((old.to_owned(), newer.strip_suffix(end)?.to_owned()))
            });
            told.collect()
        };
        let pair = |(old, newer): (&str, &str)| (format!("spec.{old}"), format!("spec.{newer}"));
        let variable = |name: &str| json!([{"name": name, "value": "1"}]);
        let container = json!({"env": variable("A"), "resources": {}});
        let config = json!({"models": ["new"], "model": "old", "env": variable("A")});
        let proxy = json!({"mode": "Proxy", "proxyConfig": config, "container": container});
        let wanted = [("proxyConfig.env", "container.env"), ("proxyConfig.model", "proxyConfig.models")];
        assert_eq!(ignored(proxy), wanted.map(pair));
        let server = json!({"model": "old", "env": variable("B"), "resources": {}});
        let config = json!({"model": "new", "env": variable("B")});
        let hosted = json!({"mode": "Hosted", "hostedConfig": config, "serverConfig": server, "container": container});
        let wanted = [
            ("serverConfig.env", "container.env"),
            ("serverConfig.resources", "container.resources"),
            ("serverConfig.model", "hostedConfig.model"),
        ];
        assert_eq!(ignored(hosted), wanted.map(pair));
    }
}
