//! The spec of a Queue, the settings of the policy, and the checks of the object.

use kaos_policy_sdk::types::Refusal;
use kaos_policy_sdk::{Object, Violations, names};
use serde::Deserialize;
use serde_json::Value;

/// The maximum length of a StatefulSet's name. Kubernetes adds eleven characters to this name, and puts the result into
/// a label of the pods. The value of a label has at most 63 characters.
const NAME_MAX: usize = 52;

/// The `spec` of a Queue.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) replicas: u32,
    pub(crate) image: Option<String>,
    pub(crate) storage: Storage,
    pub(crate) max_messages: Option<u32>,
    pub(crate) credentials_secret: Option<String>,
    pub(crate) config_from: Option<String>,
    pub(crate) env: Vec<Value>,
}

/// `spec.storage`
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Storage {
    pub(crate) size: Option<String>,
    pub(crate) class_name: Option<String>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            replicas: 1,
            image: None,
            storage: Storage::default(),
            max_messages: None,
            credentials_secret: None,
            config_from: None,
            env: Vec::new(),
        }
    }
}

/// The settings that `settings.schema.json` declares. The host fills in the defaults and checks the values.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    pub(crate) image: String,
    pub(crate) log_level: LogLevel,
    pub(crate) max_messages: u32,
    pub(crate) storage_size: String,
    pub(crate) resources: Value,
}

/// The log level of the servers.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    Info,
    Debug,
    Trace,
}

/// Checks the object. Later, the guard finds other mistakes in the manifests, such as an invalid size. With the plan's
/// origins, the guard reports the field of the Queue with the mistake.
pub(crate) fn check(object: &Object, spec: &Spec) -> Result<(), Refusal> {
    let mut wrong = Violations::new();
    if let Some(why) = names::dns1035_label(object.name()) {
        wrong.add("metadata.name", format!("{why}, since the Service has the same name"));
    } else if object.name().len() > NAME_MAX {
        wrong.add("metadata.name", format!("must have at most {NAME_MAX} characters"));
    }
    let is_odd = [1, 3, 5].contains(&spec.replicas);
    wrong.require(is_odd, "spec.replicas", "must be 1, 3 or 5: servers decide by majority");
    let limit = spec.max_messages.unwrap_or(1);
    wrong.require((1..=1_000_000).contains(&limit), "spec.maxMessages", "must be a number from 1 to 1000000");
    for (path, name) in [("spec.credentialsSecret", &spec.credentials_secret), ("spec.configFrom", &spec.config_from)] {
        let is_name = name.as_deref().is_none_or(names::is_dns1123_subdomain);
        wrong.require(is_name, path, "must be the name of an object: lower-case letters, digits, '-' and '.'");
    }
    wrong.into_result()
}
