//! The objects of the checks: samples of the claims, objects from files, and random objects. A number identifies each
//! object, so that a user can repeat the check of one object.

use fastrand::Rng;
use kaos_policy::{
    contract::{Claim, ResourceType},
    policy::Policy,
};
use serde_json::{Value, json};

use super::{mutate::Mutator, results::ClaimedKind};
use crate::{
    fuzz::{Draw, Generator},
    input::Document,
    schema::KnownCrds,
};

/// An object to check, and the other objects in its cluster.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) number: u64,
    /// The name of the object for people.
    pub(super) name: String,
    /// The position of the claim in the policy's description.
    pub(super) claim: usize,
    pub(super) object: Value,
    pub(super) others: Vec<Value>,
}

/// All objects of the checks. Each claim has a sample: the gate refuses a claim without samples.
pub(super) struct Cases<'a> {
    claims: &'a [Claim],
    crds: &'a KnownCrds,
    generator: Generator,
    seed: u64,
    fixed: Vec<Case>,
    warnings: Vec<String>,
}

impl<'a> Cases<'a> {
    pub(super) fn new(policy: &'a Policy, crds: &'a KnownCrds, files: &[Document], seed: u64) -> Self {
        let claims = policy.descriptor().claims.as_slice();
        let generator = Generator::default();
        let mut cases = Self { claims, crds, generator, seed, fixed: Vec::new(), warnings: Vec::new() };
        for (position, claim) in claims.iter().enumerate() {
            for sample in &claim.samples {
                // The gate has checked that all samples are JSON.
                let Ok(object) = serde_json::from_str(&sample.object) else { continue };
                let others = sample.beside.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
                cases.add(format!("sample {} of {}", sample.name, claim.primary.kind), position, object, others);
            }
        }
        let claimed = |document: &Document| {
            let of = ResourceType::of_object(&document.object);
            claims.iter().position(|claim| claim.primary == of)
        };
        let others: Vec<&Document> = files.iter().filter(|document| claimed(document).is_none()).collect();
        for document in files {
            let Some(claim) = claimed(document) else { continue };
            let name = format!("{}: {}", document.origin, document.identity);
            let others = others.iter().map(|document| document.object.clone()).collect();
            cases.add(name, claim, document.object.clone(), others);
        }
        cases
    }

    fn add(&mut self, name: String, claim: usize, mut object: Value, others: Vec<Value>) {
        if object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!("default");
        }
        let of = &self.claims[claim].primary;
        for violation in self.crds.admit(of.group(), &of.kind, &mut object).violations {
            self.warnings.push(format!("{name}: {}: {}", violation.path, violation.message));
        }
        self.fixed.push(Case { number: self.fixed.len() as u64, name, claim, object, others });
    }

    /// Returns the samples and the objects from files. The random objects have higher numbers.
    pub(super) fn fixed(&self) -> &[Case] {
        &self.fixed
    }

    /// Returns the generator of the random objects.
    pub(super) fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Returns the violations of the kinds' schemas in samples and in objects from files.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the claimed kinds, and whether the schema of each kind is known.
    pub(super) fn kinds(&self) -> Vec<ClaimedKind> {
        let kind = |claim: &Claim| ClaimedKind {
            of: claim.primary.clone(),
            has_schema: self.crds.schema(&claim.primary).is_some(),
        };
        self.claims.iter().map(kind).collect()
    }

    /// Returns the object with this number. The object depends only on the seed, the number and the fixed objects.
    pub(super) fn case(&self, number: u64) -> Case {
        let fixed = usize::try_from(number).ok().and_then(|number| self.fixed.get(number));
        if let Some(fixed) = fixed {
            return fixed.clone();
        }
        let rng = Rng::with_seed(self.seed.wrapping_mul(1_000_003).wrapping_add(number));
        let mut draw = Draw::new(rng);
        let base = &self.fixed[draw.rng.usize(..self.fixed.len())];
        let of = &self.claims[base.claim].primary;
        let (mut object, mut others) = (base.object.clone(), base.others.clone());
        // Change few or many fields: many changes find more problems, but a policy more often makes a plan for an
        // object with few changes.
        let often = draw.rng.choice([1, 1, 2, 4]).unwrap_or_default();
        Mutator { crds: self.crds, generator: &self.generator, of, draw: &mut draw, often }.change(&mut object);
        if !others.is_empty() && draw.one_in(10) {
            others.swap_remove(draw.rng.usize(..others.len()));
        }
        if !others.is_empty() && draw.one_in(10) {
            let at = draw.rng.usize(..others.len());
            others[at].as_object_mut().and_then(|other| other.remove("status"));
        }
        Case { number, name: format!("random object {number} ({})", of.kind), claim: base.claim, object, others }
    }
}
