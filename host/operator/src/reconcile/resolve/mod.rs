//! Renders an object: the policies compute needs, mapping and children from one state of the watch. Registers the needs
//! with the watch.

pub(super) mod config_hash;
pub(super) mod gates;
pub(super) mod startup_grace;

use std::sync::Arc;

use kaos_policy::{
    contract::{Blocker, Need, Reference, Refusal},
    render::{RenderError, Rendered, Renderer, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use crate::reconcile::{memory::Memory, policy_runner::PolicyRunner};
use crate::{
    hashing::hash,
    status::conditions::reason,
    watch::{ObjectKey, TooMany},
};

/// The result of rendering.
pub(crate) enum Resolved {
    /// The policies answered, and the watch knew all needed objects.
    Complete(Arc<Rendered>),
    /// The watch does not know a needed object yet, and will wake the pass's object when it does.
    Pending,
}

/// The maximum number of rounds for one answer. A round renders the object. If the watch does not follow all needs of
/// the answer yet, another round begins. After the last round, the pass ends, and the next pass asks the policies again.
const ROUNDS: usize = 4;

/// Renders an object. Returns an answer only if the watch already followed all needs before the policies answered, so
/// that no change of a needed object is lost. The watch also follows the needs in `additional`.
pub(crate) async fn resolve(
    runner: &PolicyRunner,
    key: &ObjectKey,
    object: &Arc<Value>,
    renderer: &Arc<Renderer>,
    is_local: bool,
    additional: &[Need],
    memory: &mut Memory,
) -> Result<Resolved, RenderError> {
    // In one round, the policies answer. In the next round, after the watch follows the needs, the same answer comes
    // from the memo, although this pass did ask the policies.
    let mut was_asked = false;
    for _ in 0..ROUNDS {
        let (mut rendered, pending) = render(runner, Some(key), object, renderer, is_local).await?;
        was_asked |= !rendered.recalled();
        let mut needs = needs(&rendered, runner.hashes_references);
        needs.extend(additional.iter().filter(|need| !rendered.needs.contains(need)).cloned());
        let watched = memory.plan.followed == Some(hash(&needs));
        if watched && !pending {
            if was_asked {
                rendered.answered_before();
            }
            return Ok(Resolved::Complete(Arc::new(rendered)));
        }
        match set_needs(runner, key, &needs, memory) {
            Ok(true) => {}
            Ok(false) => return Ok(Resolved::Pending),
            Err(too_many) => return Ok(Resolved::Complete(Arc::new(unfollowed(rendered, &too_many)))),
        }
    }
    Ok(Resolved::Pending)
}

/// Renders an object once. Also returns whether the watch does not know a needed object yet. `payer` is the object
/// whose budget pays for the fuel.
pub(crate) async fn render(
    runner: &PolicyRunner,
    payer: Option<&ObjectKey>,
    object: &Arc<Value>,
    renderer: &Arc<Renderer>,
    is_local: bool,
) -> Result<(Rendered, bool), RenderError> {
    let (watch, object, renderer) = (runner.watch.clone(), Arc::clone(object), Arc::clone(renderer));
    let (budgets, payer) = (Arc::clone(&runner.budgets), payer.cloned());
    runner
        .compute(is_local, move || {
            let lookup = watch.lookup();
            let rendered = renderer.render(&object, &lookup)?;
            // Charge the budget here, inside the work: the work continues and uses fuel even if the pass is aborted.
            if let Some(payer) = payer.filter(|_| !rendered.recalled()) {
                budgets.pay(&payer, Instant::now(), rendered.fuel);
            }
            Ok((rendered, lookup.is_pending()))
        })
        .await
}

/// Makes the watch follow the needs of an object. Returns whether the watch knows all needed objects.
fn set_needs(runner: &PolicyRunner, key: &ObjectKey, needs: &[Need], memory: &mut Memory) -> Result<bool, TooMany> {
    // Invalidate the stored hash of the needs first: if the pass is aborted after this call, the stored hash would be
    // wrong, because the watch follows other needs now.
    runner.memories.doubt_needs(key);
    memory.plan.followed = None;
    let known = runner.watch.set_needs(key, needs.iter().map(Need::followed))?;
    memory.plan.followed = Some(hash(needs));
    Ok(known)
}

/// Returns the needs of the policies, and a need for each ConfigMap and Secret whose change restarts the plan's pods.
fn needs(rendered: &Rendered, hashes_references: bool) -> Vec<Need> {
    let mut needs = rendered.needs.clone();
    if hashes_references {
        needs.extend(config_hash::needs(rendered.manifests()));
    }
    needs
}

/// Returns the plan with hashes of the ConfigMaps and Secrets that its pods use. Returns `None` while the operator does
/// not know the content of one of them.
pub(crate) fn stamped(runner: &PolicyRunner, plan: &[Value], memory: &mut Memory) -> Option<Vec<Value>> {
    if !runner.hashes_references {
        return Some(plan.to_vec());
    }
    let lookup = runner.watch.lookup();
    let digest = |secret: &Value| runner.watch.secret_digest(secret);
    let live = |child: &Reference| {
        let namespace = child.namespace.as_deref().unwrap_or_default();
        runner.watch.live(&child.of(), namespace, &child.name)?.object()
    };
    config_hash::stamped(plan, &mut memory.plan.read, &lookup, &digest, &|| lookup.is_pending(), &live)
}

/// Replaces the answer for an object with more needs than the watch can follow by a refusal. The operator would not
/// notice changes of needs that the watch does not follow. So the object gets no plan, and waits until the watch can
/// follow its needs.
fn unfollowed(mut rendered: Rendered, too_many: &TooMany) -> Rendered {
    let namespace = Reference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: None,
        name: too_many.namespace.clone(),
    };
    let blocker = Blocker { on: namespace, reason: reason::TOO_MANY_NEEDS.to_owned(), message: too_many.to_string() };
    rendered.verdict = Verdict::Refused(Refusal::Waiting(vec![blocker]));
    rendered.needs.clear();
    rendered
}
