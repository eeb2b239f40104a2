//! A complete overlay that changes variables. The overlay tells the container `main` of a `Banner` the region in which
//! it runs. The setting `region` contains the region.

use kaos_policy_sdk::env::Env;
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Refusal, Sample, Subject};
use kaos_policy_sdk::{Decode, Overlay, SubjectExt, export_overlay, need};

#[derive(Decode)]
struct Settings {
    region: String,
}

/// The overlay.
pub struct Region;

impl Overlay for Region {
    fn describe() -> Descriptor {
        let sample = Sample {
            name: "any".to_owned(),
            object: r#"{"apiVersion":"example.org/v1","kind":"Banner","metadata":{"name":"a","namespace":"b"}}"#
                .to_owned(),
            beside: Vec::new(),
        };
        let claim = Claim {
            primary: need::resource_type("example.org/v1", "Banner"),
            samples: vec![sample],
            ..Claim::default()
        };
        Descriptor {
            name: "region".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: r#"{"properties":{"region":{"default":"eu-west-1","type":"string"}},"type":"object"}"#
                .to_owned(),
            ..Descriptor::default()
        }
    }

    fn map_env(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let settings: Settings = subject.settings()?;
        let mut env = Env::over(base);
        env.container("main").set("REGION", settings.region, "settings.region");
        Ok(env.into_vars())
    }
}

export_overlay!(Region);

#[cfg(test)]
mod tests {
    use super::Region;
    use kaos_policy_sdk::env::Env;
    use kaos_policy_sdk::{Overlay, testing};
    use serde_json::json;

    #[test]
    fn the_region_is_added_to_the_mapping_of_the_layer_below() {
        let mut below = Env::new();
        below.container("main").set("REGION", "nowhere", "settings.region").set("NAME", "b", "metadata.name");
        let subject = testing::subject(&json!({})).settings(&json!({"region": "us-east-1"})).build();
        let vars = Region::map_env(&subject, below.into_vars()).unwrap();
        assert_eq!(testing::env_value(&vars, "main", "REGION"), Some("us-east-1"));
        assert_eq!(testing::env_value(&vars, "main", "NAME"), Some("b"));
        assert_eq!(vars.len(), 2);
    }

    #[test]
    fn a_region_that_is_no_text_is_refused() {
        let subject = testing::subject(&json!({})).settings(&json!({"region": 5})).build();
        assert!(Region::map_env(&subject, Vec::new()).is_err());
    }
}
