//! Explains an object on request: looks up its inputs and computes its plan again, and adds the decisions of its last
//! pass.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    memory::Memory,
    policy_runner::PolicyRunner,
    resolve::{gates, render},
    select::select,
};
use crate::{masking::Masks, watch::ObjectKey};

/// Returns the object's inputs, plan and decisions, without secret values. Returns `None` if the object does not exist
/// or has no policy.
pub(crate) async fn explain(runner: &PolicyRunner, key: &ObjectKey) -> Option<Value> {
    let object = runner.watch.object(key)?;
    let memory = runner.memories.look(key);
    let selected = select(&runner.catalogue, key, &object)?;
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let children = runner.watch.children(uid);
    let mut masks = Masks::default();
    let mut answer = json!({ "status": object["status"], "last": memory.as_ref().map(last) });
    answer["waitsForBudget"] = json!(runner.budgets.has_turn(key, Instant::now()));
    match runner.unobserved_renderer(&selected.descent.kind) {
        Err(errors) => answer["error"] = json!(errors.to_string()),
        // The explanation runs policies too, so it waits for a free processor like a pass.
        Ok(renderer) => match render(runner, None, &object, &renderer, selected.descent.kind.is_local()).await {
            Err(error) => answer["error"] = json!(error.to_string()),
            Ok((rendered, _)) => {
                answer["needs"] = json!(rendered.needs);
                answer["found"] = json!(rendered.subject().found);
                answer["settings"] = rendered.settings.iter().map(|settings| settings.tree().clone()).collect();
                let is_gated = rendered.planned().is_some_and(|plan| gates::bind(plan, &object, &children));
                answer["plan"] = json!(rendered.document(is_gated, &json!({})));
                masks = Masks::of_pass(&rendered);
            }
        },
    }
    answer["children"] = children
        .iter()
        .map(|child| json!({ "of": child.of, "name": child.name, "uid": child.uid, "version": child.version }))
        .collect();
    Some(masks.value(&answer))
}

fn last(memory: &Memory) -> Value {
    let Memory { last, failures, children, plan, .. } = memory;
    let rejected: Vec<String> =
        children.rejections().map(|rejected| format!("{}: {}", rejected.what, rejected.message)).collect();
    json!({
        "at": last.as_ref().map(|last| last.at.to_string()),
        "policy": last.as_ref().map(|last| &last.policy),
        "outcome": last.as_ref().map(|last| &last.outcome),
        "decision": plan.decision,
        "decisions": last.as_ref().map(|last| &last.decisions),
        "failures": failures,
        "conflicts": children.conflicts,
        "rejected": rejected,
    })
}
