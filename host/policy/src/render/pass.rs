//! Runs one pass: `needs` and `map-env` of each layer, then `translate`, the guard and the stamp.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    ObjectRef, Planned, PolicyFailure, RenderError, Rendered, Verdict,
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
    digest::canonical,
    failure::Failure,
    guard::{self, Stop},
    kubernetes,
    lookup::Lookup,
    memo::{self, Memo},
    stamp,
};

/// The inputs of a pass, which do not change during the pass.
struct Pass<'a> {
    binding: &'a Binding,
    object: &'a Value,
    text: &'a str,
    /// Whether a plan of the object was applied in full once.
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
    /// Whether a layer did not see all objects that it needs.
    is_cut: bool,
}

pub(super) fn run(binding: &Binding, object: &Value, lookup: &dyn Lookup) -> Result<Rendered, RenderError> {
    let reference = ObjectRef::of(object)?;
    let of = reference.of_type();
    let mut base = PassLayer::of(&binding.base, &of)?;
    let mut overlays = binding.overlays.iter().map(|bound| PassLayer::of(bound, &of)).collect::<Result<Vec<_>, _>>()?;
    let mut visible = stripped(object, true);
    let mut steps = 0;
    let refusal = match size::check(&visible) {
        Ok(()) => annotate(&visible, &mut base, &mut overlays, &mut steps).err(),
        Err(violation) => {
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
    let (answer, recalled) = match (refusal, &binding.memo) {
        (Some(violations), _) => {
            let verdict = Verdict::Refused(Refusal::Invalid(violations));
            (pass.answer(verdict, &Ledger::default()), false)
        }
        (None, Some(memo)) => pass.recall(memo),
        (None, None) => (pass.execute().0, false),
    };
    Ok(Rendered {
        policy: base.bound.policy.id().clone(),
        overlays: overlays.iter().map(|layer| layer.bound.policy.id().clone()).collect(),
        fuel: answer.fuel,
        needs: answer.needs,
        settings: std::iter::once(&base).chain(&overlays).map(|layer| Arc::clone(&layer.settings)).collect(),
        verdict: answer.verdict,
        subject: answer.subject,
        recalled,
        steps,
        object: reference,
    })
}

impl Pass<'_> {
    fn layers(&self) -> impl Iterator<Item = &PassLayer<'_>> {
        std::iter::once(self.base).chain(self.overlays)
    }

    /// Returns the stored answer if the policy would give the same answer again. A policy computes its needs from the
    /// object and from the found objects. So if the stored needs find equal objects, the policy has the same needs and
    /// gives the same answer.
    fn recall(&self, memo: &Memo) -> (memo::MemoAnswer, bool) {
        let key = pass_key(self.binding, self.layers().map(|layer| &*layer.settings), self.text, self.applied);
        if let Some(remembered) = memo.pass(&key) {
            let mut now = Vec::new();
            for (layer, needs) in self.layers().zip(&remembered.asked) {
                let (view, mut load) = (self.view(layer), Load::default());
                now.push(needs.iter().map(|need| view.found(need, &mut load)).collect::<Vec<_>>());
            }
            if memo::digest_found(&now) == remembered.found {
                return (remembered.answer.clone(), true);
            }
        }
        let (answer, ledger) = self.execute();
        // Store only complete answers: the policy did not fail, and it saw every object that it needs.
        if !ledger.is_cut && !matches!(answer.verdict, Verdict::Failed(_)) {
            memo.keep_pass(key, &answer, ledger.asked);
        }
        (answer, false)
    }

    fn execute(&self) -> (memo::MemoAnswer, Ledger) {
        let mut ledger = Ledger::default();
        let verdict = self.decide(&mut ledger).unwrap_or_else(Verdict::Failed);
        (self.answer(verdict, &ledger), ledger)
    }

    fn decide(&self, ledger: &mut Ledger) -> Result<Verdict, PolicyFailure> {
        let mut sandbox = self.base.open()?;
        let (subject, mut env) = match self.map_env(self.base, &mut *sandbox, Vec::new(), ledger)? {
            (subject, Ok(env)) => (subject, env),
            (_, Err(refusal)) => return Ok(Verdict::Refused(refusal)),
        };
        let mut overlaid = BTreeMap::new();
        for (at, overlay) in (1..).zip(self.overlays) {
            let mut sandbox = overlay.open()?;
            let below = env.clone();
            env = match self.map_env(overlay, &mut *sandbox, env, ledger)? {
                (_, Ok(env)) => env,
                (_, Err(refusal)) => return Ok(Verdict::Refused(refusal)),
            };
            let below: BTreeMap<_, &EnvVar> = below.iter().map(|it| ((&it.container, &it.name), it)).collect();
            let given = env.iter().filter(|it| below.get(&(&it.container, &it.name)) != Some(it));
            overlaid.extend(given.map(|it| ((it.container.clone(), it.name.clone()), at)));
        }
        let before = sandbox.fuel_used();
        let plan = sandbox.translate(env);
        ledger.fuel += sandbox.fuel_used().saturating_sub(before);
        let failed = |failure| self.failed(self.base, failure, &subject.found);
        match plan.map_err(failed)? {
            Ok(plan) => match self.admit(plan) {
                Ok(planned) => Ok(Verdict::Planned(Arc::new(Planned { overlaid, ..planned }))),
                Err(Stop::User(violations)) => Ok(Verdict::Refused(Refusal::Invalid(violations))),
                Err(Stop::Policy(failure)) => Err(failed(failure)),
            },
            Err(refusal) => Ok(Verdict::Refused(refusal)),
        }
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

    fn admit(&self, plan: Plan) -> Result<Planned, Stop> {
        let policy = &self.base.bound.policy;
        let overlay_grants: Vec<_> = self.overlays.iter().map(|layer| layer.bound.policy.grants()).collect();
        let settings = self.layers().map(|layer| layer.settings.of_operator()).collect::<Value>();
        let layers: Vec<_> = self.layers().map(|layer| (layer.name(), &*layer.settings)).collect();
        let rules = guard::Rules {
            claim: self.base.claim,
            grants: policy.grants(),
            overlay_grants: &overlay_grants,
            limits: policy.limits(),
            owner: self.reference,
            object: self.object,
            settings: &settings,
            layers: &layers,
            user_privileges: self.binding.user_privileges,
            grantable: self.binding.grantable.as_ref(),
        };
        let (manifests, declared) = guard::plan(&plan, &rules)?;
        kubernetes::judge(&manifests, self.binding.checks, &declared)?;
        drop(declared);
        let manifests = stamp::stamped(manifests, self.reference, self.object, &plan.kept);
        let Plan { manifests: _, origins, gates, env, notes, finalizer, gates_hold, kept: _, extra: _ } = plan;
        Ok(Planned { manifests, origins, gates, env, overlaid: BTreeMap::new(), notes, finalizer, gates_hold })
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
            // While an object is too large, every change of it matters: it may become smaller anywhere.
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
        memo::MemoAnswer { fuel: ledger.fuel, needs, subject: Arc::new(self.subject(self.base, found)), verdict }
    }
}
