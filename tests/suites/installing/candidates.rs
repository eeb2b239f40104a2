//! Builds candidates for the Agents' policy. An edition is a version of this policy: it has a number, and is either
//! good or broken in some way.

use std::fmt::Write as _;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_operator::package::unpack;
use kaos_operator::policies::{self, ComponentOrigin, Loader, sample_cluster};
use kaos_policy::digest::Digest;
use kaos_policy::engine::Engine;
use kaos_policy::gate::{self, LoadError};
use kaos_tests::{guests, shipped};
use serde_json::{Value, json};

use crate::support::packed;

/// The annotation with the number of the edition. An edition writes this annotation on all of its children.
pub(crate) const MARK: &str = "example.com/edition";

/// The result that the test expects for a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The candidate serves.
    Serves,
    /// The gate refuses the candidate.
    Refused(&'static str),
    /// The candidate serves until it fails on some objects. After that, the operator puts the candidate into
    /// quarantine.
    PutAside,
}

/// A package, and what the test expects to happen after its apply.
pub(crate) struct Candidate {
    pub(crate) config_map: Value,
    pub(crate) fate: Fate,
    /// The digest of the candidate's component. If the candidate serves an object, the object's status contains this
    /// digest.
    pub(crate) digest: String,
}

/// A function that builds a broken candidate with the given number of the edition.
type Break = fn(u32) -> Candidate;

/// The functions that build the broken candidates.
pub(crate) const BROKEN: [Break; 19] = [
    |edition| bytes(edition, "WrongDigest", cut),
    |edition| unpinned(edition, "Malformed", cut),
    |edition| unpinned(edition, "NotWasm", |_| b"\x7fELF".to_vec()),
    |edition| unpinned(edition, "TextFormat", |_| b"(component)".to_vec()),
    |edition| unpinned(edition, "CoreModule", |_| b"\0asm\x01\0\0\0".to_vec()),
    |edition| unpinned(edition, "Precompiled", |_| precompiled()),
    |edition| unpinned(edition, "MixedVersions", |component| section(component, "kaos:policy", b"9.0.0")),
    |edition| unpinned(edition, "UnpacksTooLarge", |_| gzipped(&vec![0; 9 << 20])),
    |edition| unpinned(edition, "BadGzip", |component| gzipped(component)[..1000].to_vec()),
    |edition| Candidate { fate: Fate::Refused("BadSettings"), ..made(edition, "", "imagePullPolicy: Sometimes") },
    |edition| Candidate { fate: Fate::Refused("DoesNotDescribeItself"), ..made(edition, "limits: {fuel: 1000}", "") },
    |_| misbehaving("loops for ever", "FailsSample"),
    |_| misbehaving("recurses for ever", "FailsSample"),
    |_| misbehaving("allocates a gibibyte", "FailsSample"),
    |_| misbehaving("answers 100000 manifests", "FailsSample"),
    |_| misbehaving("trap in describe", "DoesNotDescribeItself"),
    |_| misbehaving("trap in translate", "FailsSample"),
    |_| misbehaving("counts calls of translate", "KeepsState"),
    |edition| Candidate { fate: Fate::PutAside, ..made(edition, "limits: {containers: 6}", "") },
];

/// Returns a candidate that serves.
pub(crate) fn good(edition: u32) -> Candidate {
    made(edition, "", "")
}

/// Returns a candidate with the embedded component and settings for this edition. Each edition has a component with
/// different bytes. The settings write the edition into the variables, the pod, and the metadata of all children.
fn made(edition: u32, file: &str, settings: &str) -> Candidate {
    let (component, file_of_own) = own(edition);
    let mut text = file_of_own.to_owned();
    write!(
        text,
        "\n{file}\nsettings:\n  image: agent:e{edition}\n  logLevel: e{edition}\n  extraAnnotations: {{{MARK}: e{edition}}}\n  \
         {settings}\n"
    )
    .unwrap();
    let config_map = packed("agents", Some(&component), &text);
    Candidate { config_map, fate: Fate::Serves, digest: Digest::of(&component).to_string() }
}

/// Returns a candidate whose component is the hostile guest in the given mode.
fn misbehaving(mode: &str, reason: &'static str) -> Candidate {
    let component = guests::hostile(mode).unwrap();
    let config_map = packed("agents", Some(&component), "");
    Candidate { config_map, fate: Fate::Refused(reason), digest: Digest::of(&component).to_string() }
}

/// Returns a candidate that the gate refuses for `reason`.
///
/// Replaces the component of a good edition by other bytes. The digest in `policy.yaml` does not match these bytes.
fn bytes(edition: u32, reason: &'static str, exchange: impl Fn(&[u8]) -> Vec<u8>) -> Candidate {
    let Candidate { mut config_map, .. } = good(edition);
    let component = exchange(&own(edition).0);
    config_map["binaryData"] = json!({"policy.wasm": BASE64_STANDARD.encode(&component)});
    Candidate { config_map, fate: Fate::Refused(reason), digest: Digest::of(&component).to_string() }
}

/// Like [`bytes`], but also removes the digest from `policy.yaml`.
fn unpinned(edition: u32, reason: &'static str, exchange: impl Fn(&[u8]) -> Vec<u8>) -> Candidate {
    let mut candidate = bytes(edition, reason, exchange);
    let file = candidate.config_map["data"]["policy.yaml"].as_str().unwrap();
    let lines: Vec<&str> = file.lines().filter(|line| !line.starts_with("sha256:")).collect();
    candidate.config_map["data"]["policy.yaml"] = json!(lines.join("\n"));
    candidate
}

fn cut(component: &[u8]) -> Vec<u8> {
    component[..component.len() / 2].to_vec()
}

fn section(component: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    shipped::with_section(component, name, content).unwrap()
}

/// Returns the component of the Agents' policy, with bytes that no other edition has. Also returns its `policy.yaml`.
fn own(edition: u32) -> (Vec<u8>, &'static str) {
    let (component, file) = shipped::embedded("agent").unwrap();
    (section(component, "edition", &edition.to_be_bytes()), file)
}

fn precompiled() -> Vec<u8> {
    static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();
    COMPILED.get_or_init(|| Engine::new().unwrap().compile(b"\0asm\x0d\0\x01\0").unwrap()).clone()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    shipped::gzipped(bytes, 9).unwrap()
}

#[test]
fn every_broken_candidate_fails_in_the_declared_way() {
    let loader = Loader::new(sample_cluster()).unwrap();
    for (number, candidate) in BROKEN.iter().map(|broken| broken(7)).chain([good(7)]).enumerate() {
        let index = serde_json::from_value(candidate.config_map).unwrap();
        let package = unpack(&index, |_| None::<&ConfigMap>).unwrap();
        let inner = gate::Candidate {
            bytes: package.component.unwrap().bytes.into_owned(),
            file: package.file,
            ..gate::Candidate::default()
        };
        let checked = loader.check(&policies::Candidate { origin: ComponentOrigin::Embedded, inner }).result;
        let reason = checked.as_ref().map_or_else(LoadError::reason, |_| "none");
        let expected = if let Fate::Refused(reason) = candidate.fate { reason } else { "none" };
        assert_eq!(reason, expected, "candidate {number}: {:?}", checked.err());
    }
}
