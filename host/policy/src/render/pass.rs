//! Runs one pass. Calls `needs` and `map-env` of each layer, then `translate` of the policy and `amend` of each
//! overlay. The guard checks each plan. At the end, the host stamps the manifests.

use std::sync::Arc;

use serde_json::Value;

use super::{
    DecisionId, ObjectRef, Planned, PolicyFailure, RenderError, Rendered, Verdict,
    amended::{self, Overlaid},
    annotations::annotate,
    binding::Binding,
    found::{Asked, View},
    key::pass_key,
    layer::PassLayer,
    load::Load,
    size, stripped,
};
use crate::{
    code::Sandbox,
    contract::{Cluster, EnvVar, Found, Need, Plan, Refusal, Subject},
    digest::{Digest, canonical},
    failure::Failure,
    guard::{self, Stop},
    kubernetes,
    lookup::Lookup,
    memo::{self, Memo},
    stamp,
};

/// The inputs of a pass that do not change during the pass.
struct Pass<'a> {
    binding: &'a Binding,
    object: &'a Value,
    text: &'a str,
    /// Whether the host ever applied a plan of the object in full.
    applied: bool,
    reference: &'a ObjectRef,
    base: &'a PassLayer<'a>,
    overlays: &'a [PassLayer<'a>],
    lookup: &'a dyn Lookup,
}

/// The fuel that a pass used, and the objects that its layers asked for.
#[derive(Default)]
struct Ledger {
    fuel: u64,
    asked: Vec<Asked>,
    /// The number of the layer that answered last: 0 is the policy, and 1 is the lowest overlay.
    asking: usize,
    /// Whether a size limit hid the object or a needed object from a layer.
    is_cut: bool,
}

impl Ledger {
    /// Returns the digest of the objects that the layers found.
    fn found(&self) -> Digest {
        memo::digest_found(self.asked.iter().map(|asked| &asked.found))
    }
}

/// An answer, with the digest of the objects that it depends on.
struct Decided {
    answer: memo::MemoAnswer,
    found: Digest,
    /// Whether the answer comes from the memo.
    recalled: bool,
}

/// A plan that the guard accepted, with its parsed manifests.
struct CheckedPlan {
    plan: Plan,
    manifests: Vec<Value>,
}

/// The part of another layer's answer with which the guard compares a plan.
enum Under<'a> {
    /// The variables that overlays set in the plan of the policy.
    Mapping(&'a Overlaid),
    /// The plan of the layer below an overlay.
    Plan(&'a CheckedPlan),
}

/// Whether a pass stores its answer in the memo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Answer,
    Nothing,
}

pub(super) fn run(binding: &Binding, object: &Value, lookup: &dyn Lookup, keep: Keep) -> Result<Rendered, RenderError> {
    let reference = ObjectRef::of(object)?;
    let of = reference.of_type();
    let mut base = PassLayer::of(&binding.base, &of)?;
    let mut overlays = binding.overlays.iter().map(|bound| PassLayer::of(bound, &of)).collect::<Result<Vec<_>, _>>()?;
    let mut visible = stripped(object, true);
    let mut steps = 0;
    let too_large = size::check(&visible).err();
    let is_too_large = too_large.is_some();
    let refusal = match too_large {
        None => annotate(&visible, &mut base, &mut overlays, &mut steps).err(),
        Some(violation) => {
            visible = size::name_alone(&visible);
            Some(vec![violation])
        }
    };
    let text = canonical(&visible);
    let pass = Pass {
        binding,
        object: &visible,
        text: &text,
        applied: object["status"]["appliedGeneration"].is_i64(),
        reference: &reference,
        base: &base,
        overlays: &overlays,
        lookup,
    };
    let key = pass_key(binding, pass.layers().map(|layer| &*layer.settings), &text, pass.applied);
    let Decided { answer, found, recalled } = match (refusal, &binding.memo) {
        (Some(violations), _) => {
            let verdict = Verdict::Refused(Refusal::Invalid(violations));
            let ledger = Ledger { is_cut: is_too_large, ..Ledger::default() };
            Decided { answer: pass.answer(verdict, &ledger), found: ledger.found(), recalled: false }
        }
        (None, Some(memo)) => pass.recall(memo, key, keep),
        (None, None) => {
            let (answer, ledger) = pass.execute();
            Decided { answer, found: ledger.found(), recalled: false }
        }
    };
    Ok(Rendered {
        policy: base.bound.policy.id().clone(),
        overlays: overlays.iter().map(|layer| layer.bound.policy.id().clone()).collect(),
        fuel: answer.fuel,
        needs: answer.needs,
        settings: std::iter::once(&base).chain(&overlays).map(|layer| Arc::clone(&layer.settings)).collect(),
        inputs: key,
        verdict: answer.verdict,
        last_asked: answer.last_asked,
        subject: answer.subject,
        overlay_found: answer.overlay_found,
        decision: DecisionId::new(&binding.decision_key, &key, &found),
        decision_key: binding.decision_key.clone(),
        is_whole: answer.is_whole,
        recalled,
        steps,
        object: reference,
    })
}

/// Returns a digest of all inputs of a pass over an object, except the found objects. Returns `None` if the host
/// refuses the object without asking a policy.
pub(super) fn inputs_digest(binding: &Binding, object: &Value) -> Option<Digest> {
    let of = ObjectRef::of(object).ok()?.of_type();
    let mut base = PassLayer::of(&binding.base, &of).ok()?;
    let overlays: Result<Vec<_>, _> = binding.overlays.iter().map(|bound| PassLayer::of(bound, &of)).collect();
    let mut overlays = overlays.ok()?;
    let visible = stripped(object, true);
    size::check(&visible).ok()?;
    annotate(&visible, &mut base, &mut overlays, &mut 0).ok()?;
    let settings = std::iter::once(&base).chain(&overlays).map(|layer| &*layer.settings);
    let applied = object["status"]["appliedGeneration"].is_i64();
    Some(pass_key(binding, settings, &canonical(&visible), applied))
}

impl Pass<'_> {
    fn layers(&self) -> impl Iterator<Item = &PassLayer<'_>> {
        std::iter::once(self.base).chain(self.overlays)
    }

    /// Returns the stored answer if it is still valid, otherwise runs the pass. A policy computes its needs and its
    /// answer only from its inputs. So if the stored needs find the same objects as before, the policy would give the
    /// same answer again.
    fn recall(&self, memo: &Memo, key: Digest, keep: Keep) -> Decided {
        if let Some(remembered) = memo.pass(&key) {
            let mut now = Vec::new();
            for (layer, needs) in self.layers().zip(&remembered.asked) {
                let (view, mut load) = (self.view(layer), Load::default());
                now.push(needs.iter().map(|need| view.found(need, &mut load)).collect::<Vec<_>>());
            }
            let found = memo::digest_found(now.iter());
            if found == remembered.found {
                return Decided { answer: remembered.answer.clone(), found, recalled: true };
            }
        }
        let (answer, ledger) = self.execute();
        let found = ledger.found();
        // Store an answer only if no layer failed and every layer saw all objects that it needs.
        if keep == Keep::Answer && !ledger.is_cut && !matches!(answer.verdict, Verdict::Failed(_)) {
            memo.keep_pass(key, &answer, ledger.asked, found);
        }
        Decided { answer, found, recalled: false }
    }

    fn execute(&self) -> (memo::MemoAnswer, Ledger) {
        let mut ledger = Ledger::default();
        let verdict = self.decide(&mut ledger).unwrap_or_else(Verdict::Failed);
        (self.answer(verdict, &ledger), ledger)
    }

    /// Asks each layer for its mapping, then the policy for its plan, and then each overlay to amend the plan. The
    /// guard checks the plan after each layer, so that the guard knows which layer caused a breach.
    fn decide(&self, ledger: &mut Ledger) -> Result<Verdict, PolicyFailure> {
        let mut sandbox = self.base.open()?;
        let (subject, mut env) = match self.map_env(self.base, &mut *sandbox, Vec::new(), ledger)? {
            (subject, Ok(env)) => (subject, env),
            (_, Err(refusal)) => return Ok(Verdict::Refused(refusal)),
        };
        let (mut overlaid, mut subjects) = (Overlaid::new(), Vec::new());
        for (at, overlay) in (1..).zip(self.overlays) {
            ledger.asking = at;
            let mut sandbox = overlay.open()?;
            let below = env.clone();
            match self.map_env(overlay, &mut *sandbox, env, ledger)? {
                (subject, Ok(mapped)) => {
                    env = mapped;
                    subjects.push(subject);
                }
                (_, Err(refusal)) => return Ok(Verdict::Refused(refusal)),
            }
            amended::note_variables(&mut overlaid, at, &below, &env);
        }
        ledger.asking = 0;
        let before = sandbox.fuel_used();
        let given = if overlaid.is_empty() { Vec::new() } else { env.clone() };
        let plan = sandbox.translate(env);
        ledger.fuel += sandbox.fuel_used().saturating_sub(before);
        drop(sandbox);
        let failed = |failure| self.failed(self.base, failure, &subject.found);
        let plan = match plan.map_err(failed)? {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Verdict::Refused(refusal)),
        };
        amended::keep_returned(&mut overlaid, &given, &plan.env);
        let mut planned = match self.admit((0, self.base), &plan, &Under::Mapping(&overlaid)) {
            Ok(manifests) => CheckedPlan { plan, manifests },
            Err(Stop::User(violations)) => return Ok(Verdict::Refused(Refusal::Invalid(violations))),
            Err(Stop::Policy(failure)) => return Err(failed(failure)),
            Err(Stop::Overlay(at, failure)) => return Err(self.failed_overlay(at, failure, &subjects)),
        };
        let (mut amended, mut set_by) = (Vec::new(), amended::SetBy::default());
        for (at, (overlay, subject)) in (1..).zip(self.overlays.iter().zip(&subjects)) {
            ledger.asking = at;
            let failed = |failure| self.failed(overlay, failure, &subject.found);
            let plan = match Self::amend(overlay, subject, &planned.plan, ledger).map_err(failed)? {
                Ok(plan) => plan,
                Err(refusal) => return Ok(Verdict::Refused(refusal)),
            };
            if plan == planned.plan {
                amended.push(Vec::new());
                continue;
            }
            let manifests = match self.admit((at, overlay), &plan, &Under::Plan(&planned)) {
                Ok(manifests) => manifests,
                Err(Stop::User(violations)) => return Ok(Verdict::Refused(Refusal::Invalid(violations))),
                Err(Stop::Policy(failure) | Stop::Overlay(_, failure)) => return Err(failed(failure)),
            };
            amended::note_variables(&mut overlaid, at, &planned.plan.env, &plan.env);
            let children = amended::children(&planned.manifests, &manifests, &self.reference.namespace);
            set_by.note(at, &children, &planned.manifests, &manifests);
            amended.push(children);
            planned = CheckedPlan { plan, manifests };
        }
        let CheckedPlan { plan, manifests } = planned;
        let manifests = stamp::stamped(manifests, self.reference, self.object, &plan.kept);
        let Plan { manifests: _, origins, gates, env, notes, finalizer, gates_hold, kept: _, extra: _ } = plan;
        let planned =
            Planned { manifests, origins, gates, env, overlaid, amended, set_by, notes, finalizer, gates_hold };
        Ok(Verdict::Planned(Arc::new(planned)))
    }

    /// Asks an overlay to amend a plan. Opens a new sandbox, so that even a pass with many overlays has at most two
    /// open sandboxes.
    fn amend(
        overlay: &PassLayer<'_>,
        subject: &Subject,
        below: &Plan,
        ledger: &mut Ledger,
    ) -> Result<Result<Plan, Refusal>, Failure> {
        let mut sandbox = overlay.bound.open()?;
        let amended = sandbox.begin(subject).and_then(|()| sandbox.amend(below.clone()));
        ledger.fuel += sandbox.fuel_used();
        amended
    }

    /// Runs `needs` and `map-env` of one layer. Records the fuel and the found objects in the ledger, also if one of
    /// the calls fails.
    fn map_env(
        &self,
        layer: &PassLayer<'_>,
        sandbox: &mut dyn Sandbox,
        below: Vec<EnvVar>,
        ledger: &mut Ledger,
    ) -> Result<(Subject, Result<Vec<EnvVar>, Refusal>), PolicyFailure> {
        let mut subject = self.subject(layer, Vec::new());
        let mut asked = Asked::default();
        let mapped = match self.view(layer).resolve(sandbox, &mut subject, &mut asked) {
            Ok(Ok(())) => sandbox.map_env(below),
            Ok(Err(refusal)) => {
                ledger.is_cut = true;
                Ok(Err(refusal))
            }
            Err(failure) => Err(failure),
        };
        asked.found.clone_from(&subject.found);
        ledger.asked.push(asked);
        ledger.fuel += sandbox.fuel_used();
        let mapped = mapped.map_err(|failure| self.failed(layer, failure, &subject.found))?;
        Ok((subject, mapped))
    }

    fn failed(&self, layer: &PassLayer<'_>, failure: Failure, found: &[Found]) -> PolicyFailure {
        PolicyFailure::new(layer.bound.policy.id(), failure, self.text, found)
    }

    fn failed_overlay(&self, at: usize, failure: Failure, subjects: &[Subject]) -> PolicyFailure {
        match at.checked_sub(1).and_then(|at| Some((self.overlays.get(at)?, subjects.get(at)?))) {
            Some((overlay, subject)) => self.failed(overlay, failure, &subject.found),
            None => self.failed(self.base, failure, &[]),
        }
    }

    /// Checks the plan of the layer with the number `at`, and returns its parsed manifests.
    fn admit(&self, (at, layer): (usize, &PassLayer<'_>), plan: &Plan, under: &Under<'_>) -> Result<Vec<Value>, Stop> {
        let policy = &layer.bound.policy;
        let overlay_grants: Vec<_> = self.overlays.iter().map(|layer| layer.bound.policy.grants()).collect();
        let layers: Vec<_> = self.layers().map(|layer| (layer.name(), &*layer.settings)).collect();
        let (below, mapped) = match under {
            Under::Mapping(by) => (None, Some(guard::Mapped { by, grants: &overlay_grants })),
            Under::Plan(CheckedPlan { plan, manifests }) => (Some(guard::Below { plan, manifests }), None),
        };
        let rules = guard::Rules {
            claim: layer.claim,
            grants: policy.grants(),
            below,
            mapped,
            limits: policy.limits(),
            owner: self.reference,
            object: self.object,
            layers: &layers,
            layer: at,
            user_privileges: self.binding.user_privileges,
            grantable: self.binding.grantable.as_ref(),
        };
        let (manifests, declared) = guard::plan(plan, &rules)?;
        kubernetes::judge(&manifests, self.binding.checks, &declared)?;
        Ok(manifests)
    }

    fn view<'b>(&'b self, layer: &'b PassLayer<'_>) -> View<'b> {
        View {
            claim: layer.claim,
            grants: layer.bound.policy.grants(),
            limits: layer.bound.policy.limits(),
            cluster: &self.binding.cluster,
            namespace: &self.reference.namespace,
            lookup: self.lookup,
        }
    }

    fn subject(&self, layer: &PassLayer<'_>, found: Vec<Found>) -> Subject {
        let Cluster { domain, operator_namespace, served } = &self.binding.cluster;
        let served = layer.claim.wishes.iter().filter(|of| served.contains(of)).cloned().collect();
        let cluster = Cluster { domain: domain.clone(), operator_namespace: operator_namespace.clone(), served };
        let settings = layer.settings.text().to_owned();
        let (object, applied) = (self.text.to_owned(), self.applied);
        Subject { object, found, settings, cluster, applied, extra: "{}".to_owned() }
    }

    fn answer(&self, verdict: Verdict, ledger: &Ledger) -> memo::MemoAnswer {
        let mut needs = Vec::new();
        for (layer, asked) in self.layers().zip(&ledger.asked) {
            // While an object is too large, watch all fields of the object: a change of any field can make the object
            // small enough.
            let fields = |need: &Need| if ledger.is_cut { Vec::new() } else { need.fields.clone() };
            let prefixed = |need: &Need| Need {
                id: format!("{}/{}", layer.name(), need.id),
                fields: fields(need),
                ..need.clone()
            };
            let view = self.view(layer);
            needs.extend(asked.needs.iter().filter(|need| view.may_see(&need.target)).map(prefixed));
        }
        let found = ledger.asked.first().map(|asked| asked.found.clone()).unwrap_or_default();
        let subject = Arc::new(self.subject(self.base, found));
        let overlay_found = ledger.asked.iter().skip(1).map(|asked| asked.found.clone()).collect();
        let (fuel, last_asked, is_whole) = (ledger.fuel, ledger.asking, !ledger.is_cut);
        memo::MemoAnswer { fuel, needs, subject, overlay_found, verdict, last_asked, is_whole }
    }
}
