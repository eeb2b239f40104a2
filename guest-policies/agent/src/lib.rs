//! placeholder
use kaos_policy_sdk::{Policy, types::*};
struct Agent;
impl Policy for Agent {
    fn describe() -> Descriptor {
        Descriptor {
            name: "agent".into(),
            version: "0".into(),
            claims: vec![],
            settings_schema: "{}".into(),
            extra: "{}".into(),
        }
    }
    fn needs(_: &Subject) -> Vec<Need> {
        vec![]
    }
    fn map_env(_: &Subject, b: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        Ok(b)
    }
    fn translate(s: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let v: serde_json::Value = serde_json::from_str(&s.object).unwrap();
        Ok(Plan { manifests: vec![v.to_string()], gates: vec![], env, notes: vec![], extra: "{}".into() })
    }
    fn assess(_: &Subject, _: &Observation) -> Report {
        Report {
            ready: true,
            phase: "".into(),
            message: "".into(),
            fields: "{}".into(),
            conditions: vec![],
            extra: "{}".into(),
        }
    }
}
kaos_policy_sdk::export_policy!(Agent);
