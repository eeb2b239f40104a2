//! The rules between fields that the API server checks.
//!
//! Only such as cannot refuse an object that was valid before: each stands for a field that used to be
//! required and now has an older alias. Everything else is for the policies to refuse, with the path and a
//! remedy, since a rule that a stored object breaks blocks every later edit of it, scaling included.

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
