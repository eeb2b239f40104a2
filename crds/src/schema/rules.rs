//! The rules that compare several fields of an object. The API server checks these rules.
//!
//! A rule must not refuse an object that was valid earlier. So each rule requires either a field or the field's older
//! alias: every object that was valid earlier has one of the two. All other checks are in the policies, which refuse
//! the object with the path and a remedy. If a stored object broke a rule, the API server would refuse every later edit
//! of the object, scaling included. The rules of MemoryStore are as old as the kind, so no stored object can break
//! these rules.

use kube::core::Rule;

pub(crate) fn agent_model() -> Rule {
    Rule::new("has(self.model) || (has(self.config) && has(self.config.env) && self.config.env.exists(e, e.name == 'MODEL_NAME'))")
        .message("model is required (or the older config.env with MODEL_NAME)")
}

pub(crate) fn hosted_model() -> Rule {
    Rule::new("!has(self.hostedConfig) || has(self.hostedConfig.model) || (has(self.serverConfig) && has(self.serverConfig.model))")
        .message("hostedConfig.model is required (or the older serverConfig.model)")
}

pub(crate) fn runtime() -> Rule {
    Rule::new(
        "has(self.runtime) || has(self.type) || (has(self.config) && (has(self.config.mcp) || has(self.config.toolsString) || has(self.config.tools)))",
    )
    .message("runtime is required (or the older type, config.mcp, config.toolsString or config.tools)")
}

pub(crate) fn external_storage() -> Rule {
    Rule::new("self.type != 'external' || has(self.external)")
        .message("storage.external is required when storage.type is external")
}

pub(crate) fn local_replicas() -> Rule {
    Rule::new("self.storage.type != 'local' || !has(self.replicas) || self.replicas == 1")
        .message("replicas must be 1 in local storage mode")
}

/// Compares `compactionTrigger` and `compactionTarget` only if at least one of the two fields is set. Otherwise the
/// service computes both values from the token budget.
pub(crate) fn compaction_marks() -> Rule {
    const BUDGET: &str = "(has(self.shortTerm) && has(self.shortTerm.tokenBudget) ? self.shortTerm.tokenBudget : 4096)";
    let is_set = |mark: &str| format!("(has(self.mediumTerm.{mark}) && self.mediumTerm.{mark} > 0)");
    let (trigger, target) = (is_set("compactionTrigger"), is_set("compactionTarget"));
    let (a, b) = (
        format!("({trigger} ? self.mediumTerm.compactionTrigger : {BUDGET})"),
        format!("({target} ? self.mediumTerm.compactionTarget : ({BUDGET} > 1 ? {BUDGET} / 2 : 1))"),
    );
    Rule::new(format!("!has(self.mediumTerm) || !({trigger} || {target}) || ({b} < {a} && {a} <= {BUDGET})")).message(
        "short-term compaction marks must satisfy 0 < compactionTarget < compactionTrigger <= tokenBudget (0 or absent \
         marks derive from the token budget)",
    )
}
