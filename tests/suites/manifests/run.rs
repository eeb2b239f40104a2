//! Generates objects, and compares what the policy, the host and the server do with each object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use kaos_operator::schema::KnownCrds;
use kaos_policy::contract::{Cluster, Refusal};
use kaos_policy::kubernetes::Checks;
use kaos_policy::policy::Stack;
use kaos_policy::render::{Renderer, Verdict};
use kaos_tests::policies;
use serde_json::Value;

use crate::asked::otherwise;
use crate::generate::{Objects, beside};
use crate::server::Server;

/// The three renderers of a default policy. `checked` checks fields and values, `values_alone` checks only values, and
/// `unchecked` checks nothing.
struct Renderers {
    checked: Renderer,
    values_alone: Renderer,
    unchecked: Renderer,
}

/// The state of a run: the outcomes of all objects so far, and the findings.
pub(crate) struct Run {
    server: Server,
    seed: u64,
    objects: Objects,
    catalogue: KnownCrds,
    renderers: BTreeMap<String, Renderers>,
    /// The number of objects with each outcome.
    ends: BTreeMap<&'static str, u64>,
    /// The paths of all violations, without indices.
    refused_at: BTreeSet<String>,
    /// The findings: differences between this program and the server.
    pub(crate) wrong: Vec<String>,
}

impl Run {
    /// Creates a run that compares with this server.
    pub(crate) fn new(server: Server, seed: u64) -> Self {
        let renderer = |policy: &_, checks| {
            let stack = Stack::single(std::sync::Arc::clone(policy)).unwrap();
            Renderer::new(&stack, &[], Cluster::default()).unwrap().with_checks(checks)
        };
        let of = |policy: std::sync::Arc<_>| {
            let checked = renderer(&policy, Checks::Fields);
            let values_alone = renderer(&policy, Checks::Values);
            let unchecked = renderer(&policy, Checks::Nothing);
            (policy.descriptor().claims[0].primary.kind.clone(), Renderers { checked, values_alone, unchecked })
        };
        Self {
            server,
            seed,
            objects: Objects::new(),
            catalogue: KnownCrds::embedded().unwrap(),
            renderers: policies::native().unwrap().into_iter().map(of).collect(),
            ends: BTreeMap::new(),
            refused_at: BTreeSet::new(),
            wrong: Vec::new(),
        }
    }

    fn end(&mut self, how: &'static str) {
        *self.ends.entry(how).or_default() += 1;
    }

    fn wrong(&mut self, number: u64, what: &str, object: &Value) {
        let play = format!("KAOS_SEED={} KAOS_FUZZ_OBJECT={number}", self.seed);
        self.wrong.push(format!("{play}: {what}\n{object}"));
        self.end("otherwise");
    }

    /// Generates object `number`, and checks its outcome: the manifests that the server stores, or the refusal.
    pub(crate) async fn object(&mut self, number: u64) {
        let rng = Rng::with_seed(self.seed.wrapping_mul(1_000_003).wrapping_add(number));
        let mut object = self.objects.object(rng);
        let asked = object.clone();
        let kind = object["kind"].as_str().unwrap().to_owned();
        let admission = self.catalogue.admit("kaos.tools", &kind, &mut object);
        if !admission.violations.is_empty() {
            if admission.violations.iter().any(|violation| violation.path.is_empty()) {
                self.wrong(number, "refused, but the refusal names no path", &asked);
            }
            return self.end("refused by the kind's schema");
        }
        let there = self.server.create(&asked).await;
        let rendered = self.renderers[&kind].checked.render(&object, &beside()).unwrap();
        match (rendered.verdict, there) {
            (Verdict::Planned(planned), Ok(())) => self.applied(number, &planned.manifests, &asked).await,
            (Verdict::Planned(_), Err(refusal)) => {
                self.wrong(
                    number,
                    &format!("the policy made a plan, but the server refuses the object: {refusal}"),
                    &asked,
                );
            }
            (Verdict::Refused(refusal), there) => {
                self.refused(number, &refusal, there.is_ok(), (&object, &asked)).await;
            }
            (Verdict::Failed(failure), _) => {
                let told = failure.to_string();
                if told.contains("FitsKind") {
                    self.wrong(
                        number,
                        &format!("the host reports a failure of the policy, although the object is invalid: {told}"),
                        &asked,
                    );
                } else {
                    self.end("stopped by the guard");
                }
            }
        }
    }

    /// Checks that the server stores the planned manifests as requested.
    async fn applied(&mut self, number: u64, manifests: &[Value], asked: &Value) {
        let mut done = Vec::new();
        for manifest in manifests {
            match self.server.apply(manifest).await {
                Ok(stored) => {
                    done.push(manifest);
                    if let Some(path) = otherwise(manifest, &stored) {
                        let kind = &manifest["kind"];
                        self.wrong(
                            number,
                            &format!("the server stores another value at {kind}{path}\n{manifest}\n{stored}"),
                            asked,
                        );
                    }
                }
                // Accept this rejection: a flag of the server decides whether the field is allowed.
                Err(refusal) if refusal.contains("disallowed by cluster policy") => {}
                Err(refusal) => {
                    let what = format!(
                        "the policy made a plan, but the server refuses {kind}: {refusal}",
                        kind = manifest["kind"]
                    );
                    self.wrong(number, &what, asked);
                }
            }
        }
        for manifest in done {
            self.server.delete(manifest).await;
        }
        self.end("applied as asked");
    }

    /// Checks that a refusal has a path. If only the host refuses the object, also checks that the server rejects the
    /// object or its manifests.
    async fn refused(&mut self, number: u64, refusal: &Refusal, is_taken: bool, (object, asked): (&Value, &Value)) {
        let Refusal::Invalid(violations) = refusal else { return self.end("waits, or is not supported") };
        if violations.is_empty() || violations.iter().any(|violation| violation.path.is_empty()) {
            self.wrong(number, &format!("refused, but the refusal names no path: {violations:?}"), asked);
        }
        let kind = object["kind"].as_str().unwrap();
        let unchecked = self.renderers[kind].unchecked.render(object, &beside()).unwrap();
        let Verdict::Planned(planned) = unchecked.verdict else { return self.end("refused by the policy") };
        self.refused_at.extend(violations.iter().map(|violation| plain(&violation.path)));
        if !is_taken {
            return self.end("refused as the server refuses it");
        }
        for manifest in &planned.manifests {
            if self.server.attempt(manifest).await.is_err() {
                return self.end("refused as the server refuses it");
            }
        }
        // Accept refusals of unknown fields that are empty: the server ignores such a field, but the host refuses it,
        // because it is probably a typing error.
        let values = self.renderers[kind].values_alone.render(object, &beside()).unwrap();
        if values.planned().is_some() {
            return self.end("refused for a field that the server ignores");
        }
        self.wrong(
            number,
            &format!("refused by the policy or the host, but accepted by the server: {violations:?}"),
            asked,
        );
    }

    /// Returns a summary of the outcomes of all objects.
    pub(crate) fn summary(&self, time: Duration) -> String {
        let all: u64 = self.ends.values().sum();
        let ends: Vec<String> = self.ends.iter().map(|(how, count)| format!("{count:>7} {how}")).collect();
        let refused: Vec<&str> = self.refused_at.iter().map(String::as_str).collect();
        format!(
            "{all} objects in {} s\n{}\n{} fields were refused: {}",
            time.as_secs(),
            ends.join("\n"),
            refused.len(),
            refused.join(", ")
        )
    }

    /// Asserts that the run had both main outcomes: accepted objects and refused objects. A run with only one of these
    /// outcomes would prove nothing.
    pub(crate) fn has_seen_everything(&self) {
        for end in ["applied as asked", "refused as the server refuses it"] {
            assert!(self.ends.get(end).is_some_and(|count| *count > 0), "no object had the outcome: {end}");
        }
    }
}

/// Returns a path without indices and keys.
fn plain(path: &str) -> String {
    let mut depth = 0_u32;
    path.chars()
        .filter(|c| {
            depth += u32::from(*c == '[');
            let is_kept = depth == 0;
            depth -= u32::from(*c == ']' && depth > 0);
            is_kept
        })
        .collect()
}
