//! Checks that a policy for the kind `MCPServer` in another language answers like the default policy in Rust, byte for
//! byte, on every recorded case.

use std::sync::Arc;

use kaos_operator::policies::{Candidate, ComponentOrigin, Loader};
use kaos_policy::contract::{Cluster, Descriptor};
use kaos_policy::digest::canonical;
use kaos_policy::gate::{self, CodeForm};
use kaos_policy::manifest::PolicyFile;
use kaos_policy::policy::Policy;
use serde_json::Value;

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
    // The loader compiles embedded components in this process. Other components need a child of the program.
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
