//! Makes proofs that objects are settled, and skips the passes over objects whose proof is still valid.
//! [`crate::proofs`] explains proofs.
//!
//! A proof covers everything that a pass over a settled object reads:
//!
//! | what a pass reads | what the proof contains of it |
//! |---|---|
//! | the operator's code, the embedded policies | the digest of the program, in the record of the proof |
//! | policies, settings, limits, grants, facts about the cluster, the object for the policies | the key of the memo |
//! | the object: spec, metadata, finalizers, status | UID and resource version |
//! | needed objects, and the contents that restart pods | what the lookup returns for each need |
//! | children, including their statuses | UID, resource version and owner of each |
//! | the schema of the status | the version of the CustomResourceDefinition |
//! | which objects the operator sees | the options, the served types, what the lookup refuses |
//! | the form in which the API server stores a manifest | nothing: a proof needs children exactly as planned |
//!
//! A pass makes no proof after a fallback, a retry, a wait, a write or an error of a watch. It also makes no proof for
//! a pin without a policy, or for a child that outlives its owner.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{
    contract::{Followed, Outcome, Reference, ResourceType, SecretFacts},
    digest::Digest,
    lookup::{Lookup as _, Sighting},
};
use serde::Serialize;
use serde_json::Value;

use super::{
    applied::Applied,
    children::memory::Stored,
    context::Context,
    ended::{Ended, LOOK_AGAIN, Next},
    mark::child_mark,
    memory::{APPLIED, Last, Memory},
    prepare::Prepared,
    status::publish::readiness,
    subject::Subject,
};
use crate::{
    metrics::PassResult,
    proofs::{Proof, ProofState, Proofs},
    watch::{Moment, ObjectKey, Seen},
};

/// The maximum total size of an object's needed objects, in bytes of JSON. With larger needed objects, there is no
/// proof, because to read them at each pass would take too much time.
const MAX_NEEDED: usize = 4 << 20;

/// The state at the start of a pass. The pass makes a proof only if no input has changed since its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// A mark for the state of the watch, and the number of the last swap of policies. `None` if the operator makes no
    /// proofs.
    caches: Option<(Moment, u64)>,
    /// The state of the object's proof after the pass, if the pass makes no proof.
    pub(crate) unproven: ProofState,
    /// The state of the object's proof before the pass.
    pub(crate) before: ProofState,
}

impl Start {
    /// Reads the state before the pass reads anything else.
    pub(crate) fn of(context: &Context, key: &ObjectKey) -> Self {
        let open = ProofState::Open;
        let Some(proofs) = &context.proofs else { return Self { caches: None, unproven: open, before: open } };
        let unproven = if proofs.take_wanted(key) { ProofState::Impossible } else { ProofState::Open };
        let caches = (context.access.watch.moment(), *context.runner.catalogue.revisions().borrow());
        Self { caches: Some(caches), unproven, before: open }
    }

    /// Returns whether no input of the pass over this object has changed since the start.
    fn is_unchanged(&self, context: &Context, key: &ObjectKey) -> bool {
        let Some((moment, swap)) = self.caches else { return false };
        let is_swap_the_last = swap == *context.runner.catalogue.revisions().borrow();
        is_swap_the_last && context.access.watch.is_unchanged_since(moment, key)
    }
}

/// Everything that a pass over a settled object reads, except the program.
#[derive(Debug, Serialize)]
struct Inputs<'a> {
    facts: &'a Facts,
    /// The key of the answer in the memo. It covers policies, settings, facts about the cluster, and the object as
    /// policies see it.
    policies: Digest,
    needs: Vec<SeenNeed<'a>>,
}

/// The inputs that are already in memory, in the watch and in the catalogue.
#[derive(Debug, Serialize)]
struct Facts {
    /// The revisions of the policies, and whether a pin of the object chose them.
    revisions: (Vec<String>, bool),
    /// How the API server serves the object's kind, and the version of its CustomResourceDefinition.
    served: (String, u64),
    /// The types that the policies may read or emit: whether the API server serves them, and whether they are
    /// cluster-scoped.
    types: BTreeMap<String, (bool, bool)>,
    /// The object's type, namespace and name, its UID and its resource version.
    object: (String, String, String),
    children: Vec<SeenChild>,
}

/// A need, with the answer of the lookup.
#[derive(Debug, Serialize)]
struct SeenNeed<'a> {
    need: String,
    fields: &'a [String],
    answer: Answer<'a>,
}

#[derive(Debug, Serialize)]
enum Answer<'a> {
    Objects(Vec<&'a Value>),
    Secret(&'a SecretFacts),
    Unserved,
    Forbidden(&'a str),
}

/// A child: type, namespace, name, UID, resource version and owner.
type SeenChild = (String, String, String, String, u64, Option<String>);

/// The result of reading all inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Observed {
    Known(Digest),
    /// The watch does not know a needed object yet, and will report it.
    Pending,
    /// The operator cannot make or check a proof for the object.
    Doubtful,
}

/// Ends a pass without asking a policy, if the proof of an earlier process is still valid. Returns `None` if the pass
/// must continue.
pub(crate) async fn skip(context: &Context, subject: &Subject<'_>, memory: &mut Memory) -> Option<Ended> {
    let proofs = context.proofs.as_deref()?;
    let Proof { needs, digest } = proofs.recorded(subject.key)?;
    // Register the needs with the watch first: a change after the check must wake the object.
    let followed = context.access.watch.set_needs(subject.key, needs.iter().cloned());
    let observed = match followed {
        Ok(true) => observe(context, proofs, subject, needs, None).await,
        Ok(false) => Observed::Pending,
        Err(_) => Observed::Doubtful,
    };
    if observed == Observed::Pending && proofs.can_wait() {
        return Some(Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) });
    }
    proofs.forget(subject.key);
    if observed != Observed::Known(digest) {
        return None;
    }
    let kind = &subject.selected.descent.kind;
    context.runner.catalogue.ledger().served(subject.key, kind.revisions(), &[]);
    context.runner.catalogue.ledger().reported(subject.key);
    memory.proof = ProofState::Settled(digest);
    memory.since = subject.selected.since;
    memory.unserved = None;
    memory.status.ready = Some(readiness(&subject.object["status"]));
    memory.last = Some(Last {
        at: context.access.clock.now(),
        policy: kind.stack().base().id().clone(),
        outcome: APPLIED.into(),
        decisions: Box::default(),
    });
    Some(Ended { result: PassResult::Skipped, next: Next::After(context.rules.resync) })
}

/// Makes a proof at the end of a pass that found everything as planned and wrote nothing. Makes none if an input has
/// changed since the start of the pass. So the digest describes exactly the state that the pass saw.
pub(crate) async fn make(
    context: &Context,
    start: Start,
    subject: &Subject<'_>,
    (prepared, applied): (&Prepared, &Applied),
    ended: Ended,
    memory: &mut Memory,
) {
    let Some(proofs) = context.proofs.as_deref() else { return };
    // The cheapest condition comes first. If an input has changed, a later pass can make the proof.
    if !start.is_unchanged(context, subject.key) {
        return;
    }
    let is_settled = ended == Ended { result: PassResult::Settled, next: Next::After(context.rules.resync) }
        && matches!(applied.outcome, Outcome::Applied)
        && !applied.wrote
        && applied.children.in_full()
        && memory.plan.needed.is_empty()
        && memory.status.settled.is_none();
    if !is_settled || !are_exact(context, subject, &prepared.plan, memory) {
        return;
    }
    let needs = context.access.watch.needs_of(subject.key).into();
    // The pass wrote nothing, so the object still has the version with which the pass asked the policies.
    let policies = Some(prepared.rendered.inputs);
    if let Observed::Known(digest) = observe(context, proofs, subject, needs, policies).await {
        let is_same = start.is_unchanged(context, subject.key);
        memory.proof = if is_same { ProofState::Settled(digest) } else { ProofState::Open };
    }
}

/// Returns whether every planned child has the object as its owner, and is stored exactly as planned. A child that
/// outlives the object has no owner, so it prevents a proof. A child that the API server stores in another form
/// prevents a proof, too, because a newer API server may store it as planned.
fn are_exact(context: &Context, subject: &Subject<'_>, plan: &[Value], memory: &Memory) -> bool {
    let children = context.access.watch.children(&subject.uid);
    let there: BTreeSet<Reference> = children.iter().map(Seen::reference).collect();
    plan.iter().map(Reference::of_object).all(|child| {
        let stored = memory.children.get(child_mark(&child)).and_then(|child| child.stored);
        there.contains(&child) && !matches!(stored, Some(Stored::Otherwise(..)))
    })
}

/// Reads all inputs. `policies` is the key of the answer in the memo. If it is `None`, this function computes the key.
async fn observe(
    context: &Context,
    proofs: &Proofs,
    subject: &Subject<'_>,
    needs: Arc<[Followed]>,
    policies: Option<Digest>,
) -> Observed {
    let kind = &subject.selected.descent.kind;
    let Ok(renderer) = context.runner.renderer(kind) else { return Observed::Doubtful };
    let Some(facts) = facts(context, subject).filter(|_| proofs.program().is_some()) else { return Observed::Doubtful };
    let (watch, object) = (context.access.watch.clone(), Arc::clone(&subject.object));
    // Read on another thread: the needed objects can be large, and the watch keeps their texts compressed.
    let read = move || {
        let Some(policies) = policies.or_else(|| renderer.inputs_digest(&object)) else { return Observed::Doubtful };
        let (lookup, mut room) = (watch.lookup(), MAX_NEEDED);
        let sightings: Vec<Sighting> =
            needs.iter().map(|need| lookup.look_up_fields(&need.target, &need.fields, &mut room)).collect();
        if lookup.is_pending() {
            return Observed::Pending;
        }
        if room == 0 {
            return Observed::Doubtful;
        }
        let needs = needs.iter().zip(&sightings).map(|(need, sighting)| seen_need(need, sighting)).collect();
        Observed::Known(Digest::of_written(&Inputs { facts: &facts, policies, needs }))
    };
    context.runner.compute(kind.is_local(), read).await
}

/// Returns the inputs that are already in memory. Returns `None` if the operator cannot make or check a proof for the
/// object.
fn facts(context: &Context, subject: &Subject<'_>) -> Option<Facts> {
    let watch = &context.access.watch;
    let ObjectKey { of, namespace, name } = subject.key;
    let (kind, selected) = (&subject.selected.descent.kind, &subject.selected);
    let is_chosen_as_usual = !selected.stands_in() && selected.unknown_pin.is_none();
    if !is_chosen_as_usual || !watch.unlisted(of).is_empty() || watch.trouble_in(of, namespace).is_some() {
        return None;
    }
    // Without the watch on CustomResourceDefinitions, the version of the status' schema is not known.
    let definition = if watch.sees_definitions() { watch.definition(of) } else { 0 };
    let children = watch.children(&subject.uid);
    let is_doubtful = |child: &Seen| !child.is_known() || watch.trouble_in(&child.of, &child.namespace).is_some();
    if definition == 0 || children.iter().any(is_doubtful) {
        return None;
    }
    let lookup = watch.lookup();
    let types = kind.claims().flat_map(|claim| claim.reads.iter().chain(&claim.wishes).chain(&claim.emits));
    let state = |of: &ResourceType| (of.to_string(), (watch.served(of).is_some(), lookup.is_cluster_scoped(of)));
    let text = |field: &str| subject.object["metadata"][field].as_str().unwrap_or_default().to_owned();
    Some(Facts {
        revisions: (kind.revisions().map(ToString::to_string).collect(), selected.chosen),
        served: (format!("{:?}", subject.served), definition),
        types: types.map(state).collect(),
        object: (format!("{of} {namespace}/{name}"), text("uid"), text("resourceVersion")),
        children: children.into_iter().map(seen_child).collect(),
    })
}

fn seen_need<'a>(Followed { target, fields }: &'a Followed, sighting: &'a Sighting) -> SeenNeed<'a> {
    let answer = match sighting {
        Sighting::Objects(objects) => Answer::Objects(objects.iter().map(|object| &**object).collect()),
        Sighting::Secret(facts) => Answer::Secret(facts),
        Sighting::Unserved => Answer::Unserved,
        Sighting::Forbidden(why) => Answer::Forbidden(why),
    };
    SeenNeed { need: format!("{target:?}"), fields: fields.paths(), answer }
}

fn seen_child(child: Seen) -> SeenChild {
    (child.of.to_string(), child.namespace, child.name, child.uid, child.version, child.owner)
}
