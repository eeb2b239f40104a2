//! A policy for Gadgets that implements a draft of a later contract. Its plan has a note with a link.

#[cfg(not(feature = "validates"))]
wit_bindgen::generate!({
    path: ["../../../../../wit", "wit"],
    world: "kaos:policy/policy@0.2.0-draft.1",
    generate_all,
});
#[cfg(feature = "validates")]
wit_bindgen::generate!({
    path: ["../../../../../wit", "wit"],
    world: "kaos:policy/validating-policy@0.2.0-draft.1",
    generate_all,
});

use exports::kaos::policy0_2_0_draft_1::{meta, translation};
use kaos::{
    policy0_1_0::types::*,
    policy0_2_0_draft_1::types::{Note, Plan},
};

#[used]
#[unsafe(link_section = "kaos:policy")]
static CONTRACT: [u8; 13] = *b"0.2.0-draft.1";

const OBJECT: &str =
    r#"{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"w","namespace":"n"},"spec":{}}"#;
const CONFIG: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w"},"data":{"a":"b"}}"#;

struct Grown;

fn text(text: &str) -> String {
    text.to_owned()
}

fn resource(api_version: &str, kind: &str) -> ResourceType {
    ResourceType { api_version: text(api_version), kind: text(kind) }
}

impl meta::Guest for Grown {
    fn describe() -> Descriptor {
        let claim = Claim {
            primary: resource("example.com/v1", "Gadget"),
            emits: vec![resource("v1", "ConfigMap")],
            reads: vec![],
            wishes: vec![],
            finalizer: None,
            samples: vec![Sample { name: text("smallest"), object: text(OBJECT), beside: vec![] }],
            extra: text("{}"),
        };
        Descriptor {
            name: text("grown"),
            version: text("0.1.0"),
            claims: vec![claim],
            settings_schema: text("{}"),
            extra: text("{}"),
        }
    }
}

struct Pass;

impl translation::Guest for Grown {
    type Pass = Pass;
}

impl translation::GuestPass for Pass {
    fn new(_: Subject) -> Self {
        Self
    }

    fn needs(&self, _: Vec<Found>) -> Vec<Need> {
        vec![]
    }

    fn map_env(&self, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        Ok(base)
    }

    fn translate(&self, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let note = Note {
            severity: Severity::Info,
            reason: text("Grown"),
            message: text("a newer policy made this plan"),
            path: None,
            link: Some(text("https://example.com/grown")),
        };
        Ok(Plan {
            manifests: vec![text(CONFIG)],
            origins: vec![],
            gates: vec![],
            env,
            notes: vec![note],
            finalizer: None,
            kept: vec![],
            gates_hold: false,
            extra: text("{}"),
        })
    }

    fn assess(&self, seen: Observation) -> Report {
        Report {
            ready: true,
            phase: text("Ready"),
            message: format!("{} notes", seen.notes.len()),
            fields: text("{}"),
            conditions: vec![],
            extra: text("{}"),
        }
    }
}

#[cfg(feature = "validates")]
impl exports::kaos::policy0_2_0_draft_1::validation::Guest for Grown {
    fn validate(settings: String) -> Vec<Violation> {
        let is_wrong = settings.contains("\"min\":2") && settings.contains("\"max\":1");
        let wrong = || Violation { path: text("max"), message: text("must be at least min") };
        is_wrong.then(wrong).into_iter().collect()
    }
}

export!(Grown);
