//! A complete overlay that changes variables of a default policy. The overlay replaces the log level that the policy
//! below chose for an `Agent`. The setting `level` contains the new log level.

use kaos_policy_sdk::env::Env;
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Refusal, Sample, Subject};
use kaos_policy_sdk::{Decode, Overlay, SubjectExt, export_overlay, need};

#[derive(Decode)]
struct Settings {
    level: String,
}

/// The overlay.
pub struct LogLevel;

impl Overlay for LogLevel {
    fn describe() -> Descriptor {
        let sample = Sample {
            name: "any".to_owned(),
            object: r#"{"apiVersion":"kaos.tools/v1alpha1","kind":"Agent","metadata":{"name":"a","namespace":"b"}}"#
                .to_owned(),
            beside: Vec::new(),
        };
        let claim = Claim {
            primary: need::resource_type("kaos.tools/v1alpha1", "Agent"),
            samples: vec![sample],
            ..Claim::default()
        };
        Descriptor {
            name: "log-level".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: r#"{"properties":{"level":{"default":"WARNING","type":"string"}},"type":"object"}"#
                .to_owned(),
            ..Descriptor::default()
        }
    }

    fn map_env(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let settings: Settings = subject.settings()?;
        let mut env = Env::over(base);
        env.container("agent").set("LOG_LEVEL", settings.level, "settings.level");
        Ok(env.into_vars())
    }
}

export_overlay!(LogLevel);

#[cfg(test)]
mod tests {
    use super::LogLevel;
    use kaos_policy_sdk::env::Env;
    use kaos_policy_sdk::{Overlay, testing};
    use serde_json::json;

    #[test]
    fn the_setting_changes_the_level_and_nothing_else() {
        let mut below = Env::new();
        below.container("agent").set("LOG_LEVEL", "INFO", "settings.logLevel").set("NAME", "a", "metadata.name");
        let subject = testing::subject(&json!({})).settings(&json!({"level": "DEBUG"})).build();
        let vars = LogLevel::map_env(&subject, below.into_vars()).unwrap();
        assert_eq!(testing::env_value(&vars, "agent", "LOG_LEVEL"), Some("DEBUG"));
        assert_eq!(testing::env_value(&vars, "agent", "NAME"), Some("a"));
        assert_eq!(vars.len(), 2);
    }
}
