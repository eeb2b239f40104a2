//! A policy for Widgets. An edition is a version of this policy. Each Widget becomes a ConfigMap with the number of the
//! edition. [`EDITION`] contains this number, and a word for the special behaviour of the edition.

wit_bindgen::generate!({ path: "../../../wit", world: "policy", generate_all });

use exports::kaos::policy::{meta, translation};
use kaos::policy::types::*;

struct Widgets;

/// The number of the edition (a digit), and a word for its special behaviour. Most words make the edition fail on
/// Widgets with `fragile: true`. Some words have a further effect. With `and kites`, the policy also claims the kind
/// Kite. With `reads statefulsets`, it reads StatefulSets. With `breaks at 5`, the plan for size 5 is invalid. With
/// `keeps`, Widgets that are not fragile get a second ConfigMap. With `renames`, the ConfigMap has the key `release`
/// instead of `edition`, with the value of the first edition. Tests overwrite this text in the module's bytes before
/// the module becomes a component.
#[used]
static EDITION: [u8; 40] = *b"EDITION=1                               ";

#[used]
#[unsafe(link_section = "kaos:policy")]
static CONTRACT: [u8; 5] = *b"0.1.0";

/// This number of loop iterations uses a large part of the fuel of a pass.
const BURNT: u64 = 30_000_000;

const SCHEMA: &str = r#"{"type":"object","additionalProperties":false,"properties":{
    "size":{"type":"integer","default":1,"maximum":9,"x-env":"WIDGET_SIZE"}}}"#;

fn edition() -> (char, String) {
    let mut bytes = [0; 40];
    for (i, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the index is within the array. The read is volatile because tests change the content after
        // compilation.
        *byte = unsafe { std::ptr::read_volatile(EDITION.as_ptr().add(i)) };
    }
    let text = String::from_utf8_lossy(&bytes[8..]).trim().to_owned();
    let mut characters = text.chars();
    let number = characters.next().unwrap_or('0');
    (number, characters.as_str().trim().to_owned())
}

fn text(text: &str) -> String {
    text.to_owned()
}

/// Returns the text of a field, or `None` without this field. A text search is enough instead of a JSON parser, because
/// the tests choose all names and values of fields.
fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let at = json.find(&format!("\"{name}\":"))? + name.len() + 3;
    let rest = &json[at..];
    let end = rest.find([',', '}'])?;
    Some(rest[..end].trim_matches('"'))
}

fn claim(api_version: &str, kind: &str, special: &str) -> Claim {
    let of = |api_version: &str, kind: &str| ResourceType { api_version: text(api_version), kind: text(kind) };
    let object = format!(
        r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"name":"w","namespace":"n"}},"spec":{{}}}}"#
    );
    Claim {
        primary: of(api_version, kind),
        emits: vec![of("v1", "ConfigMap")],
        reads: if special == "reads statefulsets" { vec![of("apps/v1", "StatefulSet")] } else { vec![] },
        wishes: vec![],
        finalizer: (special == "holds").then(|| text("test.example.com/hold")),
        samples: vec![Sample { name: text("smallest"), object, beside: vec![] }],
        extra: text("{}"),
    }
}

impl meta::Guest for Widgets {
    fn describe() -> Descriptor {
        let (number, special) = edition();
        let mut claims = vec![claim("test.example.com/v1", "Widget", &special)];
        claims.extend((special == "and kites").then(|| claim("sky.io/v1", "Kite", &special)));
        Descriptor {
            name: text("widget"),
            version: format!("{number}.0.0"),
            claims,
            settings_schema: SCHEMA.replace("9", if special == "small" { "3" } else { "9" }),
            extra: text("{}"),
        }
    }
}

/// A pass for one Widget.
struct Pass(Subject);

impl translation::Guest for Widgets {
    type Pass = Pass;
}

impl translation::GuestPass for Pass {
    fn new(subject: Subject) -> Self {
        Self(subject)
    }

    fn needs(&self, _: Vec<Found>) -> Vec<Need> {
        vec![]
    }

    fn map_env(&self, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        Ok(base)
    }

    fn translate(&self, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let subject = &self.0;
        let (number, does) = edition();
        let fragile = field(&subject.object, "fragile") == Some("true");
        let metadata = subject.object.find("\"metadata\":").map_or("", |at| &subject.object[at..]);
        let name = field(metadata, "name").unwrap_or("unnamed");
        let size = field(&subject.settings, "size").unwrap_or("0");
        // Every edition creates the same ConfigMap for a Widget with `edition: any`.
        let number = if field(&subject.object, "edition") == Some("any") { '0' } else { number };
        let mut more = String::new();
        let (mut key, mut beside) = ("edition", "");
        let number = if does == "renames" && number != '0' { '1' } else { number };
        if does == "renames" {
            key = "release";
        }
        if does.strip_prefix("breaks at ") == Some(size) {
            beside = r#","immutabel":true"#;
        } else if fragile {
            match does.as_str() {
                "" => {}
                "traps" | "keeps" => panic!(),
                "loops" => loop {
                    std::hint::black_box(number);
                },
                "burns" => {
                    for round in 0..BURNT {
                        std::hint::black_box(round);
                    }
                }
                "strays" => more = text(r#","namespace":"kube-system""#),
                // Each label is invalid, and the labels together exceed the size that an API server accepts.
                "babbles" => {
                    let label = |at: usize| format!(r#""a{at}":"{}""#, "x".repeat(140_000));
                    more = text(r#","labels":{"#) + &label(0);
                    for at in 1..25 {
                        more += ",";
                        more += &label(at);
                    }
                    more += "}";
                }
                "is rejected" => key = "no key",
                "misspells" => beside = r#","immutabel":true"#,
                _ => return Err(Refusal::Unsupported(does)),
            }
        }
        let manifest = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"{more}}},"data":{{"{key}":"{number}","size":"{size}"}}{beside}}}"#
        );
        let kept = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}-kept"}}}}"#);
        let manifests = std::iter::once(manifest).chain((does == "keeps").then_some(kept)).collect();
        Ok(Plan {
            manifests,
            gates: vec![],
            env,
            notes: vec![],
            finalizer: None,
            kept: vec![],
            gates_hold: false,
            origins: Vec::new(),
            extra: text("{}"),
        })
    }

    fn assess(&self, seen: Observation) -> Report {
        let ready = matches!(seen.outcome, Outcome::Applied);
        Report {
            ready,
            phase: text(if ready { "Ready" } else { "Pending" }),
            message: text("a widget"),
            fields: text("{}"),
            conditions: vec![],
            extra: text("{}"),
        }
    }
}

export!(Widgets);
