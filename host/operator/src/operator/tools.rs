//! Assembles the clients and options with which the operator installs policies.

use std::sync::Arc;

use super::options::Options;
use crate::{
    catalogue::{Installing, installed::Tools},
    preview::{CachePreviewer, Changes},
    rbac::Duties,
    reconcile::Context,
};

/// Returns the clients and options for installing policies.
pub(super) fn tools(
    context: &Arc<Context>,
    options: &Options,
    installing: Option<&Installing>,
    changes: Arc<Changes>,
) -> Tools {
    Tools {
        client: context.access.client.clone(),
        catalogue: Arc::clone(&context.runner.catalogue),
        metrics: Arc::clone(&context.runner.metrics),
        watch: context.access.watch.clone(),
        processors: context.runner.processors.clone(),
        duties: Duties {
            scope: options.namespaces.clone(),
            operator_namespace: options.operator_namespace.clone(),
            secrets: options.secrets,
            leader_election: false,
            left_out: options.left_out.clone(),
            decision_point: options.decision_point.is_some(),
            namespace_policies: installing.is_some_and(|installing| installing.in_namespaces),
        },
        grantable: options.grantable.clone(),
        code_share: options.code_share,
        budgets: Arc::clone(&context.runner.budgets),
        clock: options.clock,
        events: Arc::clone(&context.access.events),
        previewer: Arc::new(CachePreviewer::new(Arc::clone(context), changes)),
        rollout_gate: options.rollout_gate.clone(),
        rollout_defaults: options.rollout_defaults.clone(),
    }
}
