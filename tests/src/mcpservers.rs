//! Checks that a policy for the kind `MCPServer` in another language answers like the default policy in Rust, byte for
//! byte, on every recorded case.

use std::sync::Arc;

use kaos_operator::policies::{Candidate, ComponentOrigin, Loader};
use kaos_policy::code::Code;
use kaos_policy::contract::{Answer, Cluster, Descriptor, Found, Observation, Outcome, Refusal, ResourceType, Subject};
use kaos_policy::digest::canonical;
use kaos_policy::gate::{self, CodeForm};
use kaos_policy::limits::Limits;
use kaos_policy::manifest::PolicyFile;
use kaos_policy::policy::Policy;
use kaos_policy::settings::{Layer, Origin};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{case, play, policies, recorder};

const NAME: &str = "mcpserver";

/// Loads a component or a script as the operator does, with the `policy.yaml` of the default policy.
///
/// # Panics
///
/// Fails the test if the gate refuses the code.
#[allow(clippy::unwrap_used, reason = "a test without its policy has failed")]
pub fn load(form: CodeForm, bytes: Vec<u8>) -> Arc<Policy> {
    let file = PolicyFile::parse(include_str!("../../guest-policies/mcpserver/policy.yaml")).unwrap();
    let inner = gate::Candidate { form, bytes, file, ..gate::Candidate::default() };
    // Declare the component as embedded, so that the loader compiles it in this process instead of in a compile child.
    let candidate = Candidate { origin: ComponentOrigin::Embedded, inner };
    Loader::cached(Cluster::default()).unwrap().accepting_all().check(&candidate).result.unwrap()
}

/// Checks that the policy describes itself like the policy in Rust: the same claims, samples and settings.
///
/// # Panics
///
/// Fails the test if the descriptions differ.
#[allow(clippy::unwrap_used, reason = "a test without the policies has failed")]
pub fn same_description(policy: &Policy) {
    let canonical_of = |text: &str| canonical(&serde_json::from_str::<Value>(text).unwrap());
    let plain = |descriptor: &Descriptor| {
        let mut descriptor = descriptor.clone();
        descriptor.settings_schema = canonical_of(&descriptor.settings_schema);
        for sample in descriptor.claims.iter_mut().flat_map(|claim| &mut claim.samples) {
            sample.object = canonical_of(&sample.object);
            sample.beside = sample.beside.iter().map(|text| canonical_of(text)).collect();
        }
        descriptor
    };
    let native = policies::native().unwrap();
    let rust = native.iter().find(|it| it.id().name == NAME).unwrap();
    assert_eq!(plain(policy.descriptor()), plain(rust.descriptor()));
}

/// Checks that the policy gives the same answers as the policy in Rust on every recorded case with an `MCPServer`.
///
/// # Panics
///
/// Fails the test at the first difference.
#[allow(clippy::unwrap_used, reason = "a test whose policy fails has failed")]
pub fn same_answers(policy: &Arc<Policy>) {
    let rust = policies::native().unwrap();
    let others = rust.iter().map(|it| Arc::clone(if it.id().name == NAME { policy } else { it })).collect();
    let (rust, by_rust) = recorder::recording(rust).unwrap();
    let (others, by_other) = recorder::recording(others).unwrap();
    let mut compared = 0;
    for case in case::all().unwrap() {
        let wanted = case.wanted().unwrap();
        let is_about = case.input.iter().chain(&case.update).any(|object| object["kind"] == "MCPServer");
        if !is_about || wanted.get("rejected").is_some() {
            continue;
        }
        for policies in [&rust, &others] {
            play::play(&case, &wanted, policies::renderers(policies, &case).unwrap()).unwrap();
        }
        let (by_rust, by_other) = (by_rust.take(), by_other.take());
        assert!(!by_rust.is_empty() && by_rust.len() == by_other.len(), "{}: questions", case.name);
        for (rust, other) in by_rust.iter().zip(&by_other) {
            assert_eq!(rust, other, "{}", case.name);
        }
        compared += 1;
    }
    assert!(compared > 30, "only {compared} cases were compared");
}

/// A test input without a recorded case: an item of `tests/golden/mcpservers.yaml`, with an `MCPServer` and its
/// circumstances.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    spec: Value,
    /// Settings that differ from the defaults.
    #[serde(default)]
    settings: Map<String, Value>,
    /// The content of the cluster's registry of runtimes. `None` without a registry.
    #[serde(default)]
    registry: Option<String>,
    /// The reason why the policy cannot read the registry.
    #[serde(default)]
    forbidden: Option<String>,
    /// Whether the cluster serves none of the optional types.
    #[serde(default)]
    unserved: bool,
    /// Texts that must occur in the answers of the policy in Rust.
    shows: Vec<String>,
}

impl Input {
    #[allow(clippy::unwrap_used, reason = "a test with wrong settings has failed")]
    fn subject(&self, policy: &Policy) -> Subject {
        let layers = [Layer::tree(Origin::Environment, NAME, Value::from(self.settings.clone()))];
        let settings = policy.settings(&layers).unwrap();
        let object = json!({
            "apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer",
            "metadata": {"name": "tools", "namespace": "team", "uid": "u"}, "spec": self.spec,
        });
        let registry = self
            .registry
            .as_ref()
            .map(|text| Answer::Objects(vec![canonical(&json!({"data": {"runtimes.yaml": text}}))]));
        let answer = registry.or_else(|| self.forbidden.clone().map(Answer::Forbidden));
        let served = [
            ("gateway.networking.k8s.io/v1", "HTTPRoute"),
            ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
        ];
        let served =
            served.map(|(api_version, kind)| ResourceType { api_version: api_version.into(), kind: kind.into() });
        Subject {
            object: canonical(&object),
            found: answer.map(|answer| Found { id: "registry".to_owned(), answer }).into_iter().collect(),
            settings: settings.text().to_owned(),
            cluster: Cluster { served: if self.unserved { Vec::new() } else { served.into() }, ..Cluster::default() },
            applied: false,
            extra: "{}".to_owned(),
        }
    }
}

/// Removes the YAML library's error message from a refusal, because each language uses a different library.
fn without_words(refusal: Refusal) -> Refusal {
    let Refusal::Waiting(mut blockers) = refusal else { return refusal };
    for blocker in &mut blockers {
        let starts = ["is not usable: line ", "is not usable: yaml: "];
        if let Some(at) = starts.iter().find_map(|start| blocker.message.find(start)) {
            blocker.message.truncate(at);
        }
    }
    Refusal::Waiting(blockers)
}

/// Returns the policy's answers to all calls of a pass.
#[allow(clippy::unwrap_used, reason = "a test whose policy fails has failed")]
fn answers(code: &dyn Code, subject: &Subject) -> Vec<String> {
    let mut sandbox = code.open(&Limits::default()).unwrap();
    sandbox.begin(subject).unwrap();
    let needs = sandbox.needs(&[]).unwrap();
    let env = sandbox.map_env(Vec::new()).unwrap().map_err(without_words);
    let plan = sandbox.translate(env.clone().unwrap_or_default()).unwrap().map_err(without_words);
    let outcome = plan.clone().map_or_else(Outcome::Refused, |_| Outcome::Applied);
    let (children, gates, notes) = (Vec::new(), Vec::new(), Vec::new());
    let env_seen = env.clone().unwrap_or_default();
    let seen = Observation { outcome, children, gates, env: env_seen, notes, extra: "{}".to_owned() };
    let report = sandbox.assess(&seen).unwrap();
    vec![format!("{needs:?}"), format!("{env:?}"), format!("{plan:?}"), format!("{report:?}")]
}

/// Checks that the policy gives the same answers as the policy in Rust to the objects of `mcpservers.yaml`.
///
/// # Panics
///
/// Fails the test at the first difference.
#[allow(clippy::unwrap_used, reason = "a test whose policy fails has failed")]
pub fn same_answers_to_inputs(policy: &Policy) {
    let native = policies::native().unwrap();
    let rust = native.iter().find(|it| it.id().name == NAME).unwrap();
    let text = std::fs::read_to_string(case::golden().join("mcpservers.yaml")).unwrap();
    let inputs: Vec<Input> = serde_saphyr::from_str(&text).unwrap();
    assert!(inputs.len() > 25, "only {} inputs", inputs.len());
    for input in inputs {
        let subject = input.subject(rust);
        let wanted = answers(rust.code(), &subject);
        // The debug form of a text has a backslash before each quote. Remove the backslashes.
        let shown = wanted.join("\n").replace("\\\"", "\"");
        for text in &input.shows {
            assert!(shown.contains(text), "{}: no {text} in {shown}", input.name);
        }
        assert_eq!(answers(policy.code(), &subject), wanted, "{}", input.name);
    }
}
