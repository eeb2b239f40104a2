//! A policy for Widgets. If [`MODE`] names a misbehavior, the policy misbehaves in this way; otherwise it behaves well.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

wit_bindgen::generate!({ path: "../../../../../wit", world: "policy", generate_all });

use exports::kaos::policy::{meta, translation};
use kaos::policy::types::*;

struct Hostile;

/// The misbehavior. Tests overwrite this text in the bytes of the module, and create the component from the module.
#[used]
static MODE: [u8; 40] = *b"MODE=well-behaved                       ";

#[used]
#[unsafe(link_section = "kaos:policy")]
static CONTRACT: [u8; 5] = *b"0.1.0";

static CALLS: AtomicU32 = AtomicU32::new(0);

fn is(mode: &str) -> bool {
    let mut bytes = [0; 40];
    for (i, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the index is within the array. The read is volatile, so that the compiler makes no assumption about
        // the content.
        *byte = unsafe { std::ptr::read_volatile(MODE.as_ptr().add(i)) };
    }
    bytes[5..].trim_ascii() == mode.as_bytes()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn resource(api_version: &str, kind: &str) -> ResourceType {
    ResourceType { api_version: text(api_version), kind: text(kind) }
}

fn recurse(depth: u64) -> u64 {
    let pad = std::hint::black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { recurse(depth + 1) + pad[(depth % 64) as usize] }
}

/// Returns JSON that, after parsing, takes a hundred times the memory of its text.
fn bomb() -> String {
    format!(r#"{{"x":[{}0]}}"#, r#"{"":0},"#.repeat(300_000))
}

const OBJECT: &str =
    r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"n"},"spec":{}}"#;
const CONFIG: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w"},"data":{"a":"b"}}"#;

impl meta::Guest for Hostile {
    fn describe() -> Descriptor {
        if is("trap in describe") {
            panic!();
        }
        let mut claim = Claim {
            primary: resource("example.com/v1", "Widget"),
            emits: vec![resource("v1", "ConfigMap")],
            reads: vec![resource("v1", "ConfigMap")],
            wishes: vec![],
            finalizer: None,
            samples: vec![Sample { name: text("smallest"), object: text(OBJECT), beside: vec![] }],
            extra: text("{}"),
        };
        if is("a sample of another kind") {
            claim.samples[0].object = OBJECT.replace("Widget", "Gadget");
        } else if is("a sample without a name") {
            claim.samples[0].object = OBJECT.replace(r#""name":"w","#, "");
        } else if is("a sample that is a bomb of JSON") {
            claim.samples[0].beside = vec![bomb()];
        } else if is("thirty dear samples") {
            claim.samples = (0..30).map(|n| Sample { name: format!("s{n}"), ..claim.samples[0].clone() }).collect();
        }
        if is("emits rbac") {
            claim.emits.push(resource("rbac.authorization.k8s.io/v1", "RoleBinding"));
        }
        if is("emits namespaces") {
            claim.emits.push(resource("v1", "Namespace"));
        }
        let claims = if is("claims nothing") {
            vec![]
        } else if is("claims twice") {
            vec![claim.clone(), claim]
        } else {
            vec![claim]
        };
        let schema = if is("invalid schema") {
            r#"{"type":"no such type"}"#
        } else if is("invalid defaults") {
            r#"{"type":"object","properties":{"n":{"type":"integer","default":"x"}}}"#
        } else if is("remote schema") {
            r#"{"$ref":"https://example.com/schema.json"}"#
        } else {
            "{}"
        };
        Descriptor {
            name: text(if is("bad name") { "Bad Name" } else { "hostile" }),
            version: text(if is("bad version") { "one" } else { "0.1.0" }),
            claims,
            settings_schema: text(schema),
            extra: text("{}"),
        }
    }
}

/// A pass. It keeps only the number of found objects.
struct Pass(AtomicUsize);

impl translation::Guest for Hostile {
    type Pass = Pass;
}

impl translation::GuestPass for Pass {
    fn new(subject: Subject) -> Self {
        if is("trap in pass") {
            panic!();
        }
        Self(AtomicUsize::new(subject.found.len()))
    }

    fn needs(&self, found: Vec<Found>) -> Vec<Need> {
        let n = self.0.fetch_add(found.len(), Ordering::Relaxed) + found.len();
        if is("trap in needs") {
            panic!();
        }
        let named = |kind: &str, id: &str, name: &str| Need {
            id: text(id),
            target: Target::Named(Reference {
                api_version: text("v1"),
                kind: text(kind),
                namespace: None,
                name: text(name),
            }),
            fields: if is("needs a field without a path") { vec![text("spec..x")] } else { Vec::new() },
            optional: false,
        };
        if is("needs for ever") {
            return (0..=n).map(|i| named("ConfigMap", &format!("c{i}"), &format!("c{i}"))).collect();
        }
        if is("needs what it does not read") {
            return vec![named("Secret", "s", "s")];
        }
        if is("counts calls of needs") && CALLS.fetch_add(1, Ordering::Relaxed) > 0 {
            return vec![named("ConfigMap", "late", "late")];
        }
        vec![]
    }

    fn map_env(&self, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        if is("trap in map-env") {
            panic!();
        }
        Ok(base)
    }

    fn translate(&self, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let mut manifests = vec![text(CONFIG)];
        if is("trap in translate") {
            panic!();
        } else if is("loops for ever") {
            let mut n = 0u64;
            loop {
                n = std::hint::black_box(n.wrapping_add(1));
            }
        } else if is("thirty dear samples") {
            for n in 0..400_000u64 {
                std::hint::black_box(n);
            }
        } else if is("recurses for ever") {
            manifests.push(recurse(0).to_string());
        } else if is("grows for ever") {
            #[cfg(target_arch = "wasm32")]
            loop {
                std::hint::black_box(core::arch::wasm32::memory_grow(0, 1));
            }
        } else if is("grows by nothing for ever") {
            #[cfg(target_arch = "wasm32")]
            loop {
                std::hint::black_box(core::arch::wasm32::memory_grow(0, 0));
            }
        } else if is("allocates a gibibyte") {
            manifests.push(String::with_capacity(1 << 30));
        } else if is("answers 100 MiB") {
            let megabyte = " ".repeat(1 << 20);
            manifests = (0..100).map(|_| megabyte.clone()).collect();
        } else if is("answers 20 MiB") {
            manifests = vec![" ".repeat(20 << 20)];
        } else if is("answers 100000 manifests") {
            manifests = vec![text("{}"); 100_000];
        } else if is("answers 100 manifests") {
            manifests = (0..100).map(|i| CONFIG.replace("\"w\"", &format!("\"w{i}\""))).collect();
        } else if is("answers a bomb of JSON") {
            manifests = vec![bomb()];
        } else if is("answers no JSON") {
            manifests = vec![text("apiVersion: v1")];
        } else if is("answers no UTF-8") {
            // SAFETY: this is deliberately unsound, because invalid UTF-8 is the misbehavior under test.
            manifests = vec![unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe, 0xfd]) }];
        } else if is("counts calls of translate") {
            let n = CALLS.fetch_add(1, Ordering::Relaxed);
            manifests = vec![CONFIG.replace("\"b\"", &format!("\"{n}\""))];
        } else if is("refuses everything") {
            return Err(Refusal::Unsupported(text("no")));
        } else if is("emits a Pod") {
            manifests = vec![CONFIG.replace("ConfigMap", "Pod")];
        } else if is("emits elsewhere") {
            manifests = vec![CONFIG.replace(r#""name":"w""#, r#""name":"w","namespace":"kube-system""#)];
        } else if is("emits twice") {
            manifests.push(text(CONFIG));
        }
        let count = if is("answers 100000 origins") { 100_000 } else { 0 };
        let origin = |_| Origin { manifest: 0, path: text("data.a"), from: text("spec.a") };
        Ok(Plan {
            manifests,
            origins: (0..count).map(origin).collect(),
            gates: vec![],
            env,
            notes: vec![],
            finalizer: None,
            kept: vec![],
            gates_hold: false,
            extra: text("{}"),
        })
    }

    fn assess(&self, _: Observation) -> Report {
        if is("trap in assess") {
            panic!();
        }
        let fields = if is("reports no JSON") {
            text("fields: 1")
        } else if is("reports a bomb of JSON") {
            bomb()
        } else {
            text("{}")
        };
        Report {
            ready: true,
            phase: text("Ready"),
            message: text("fine"),
            fields,
            conditions: vec![],
            extra: text("{}"),
        }
    }
}

export!(Hostile);
