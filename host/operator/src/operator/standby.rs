//! Prepares a replica that waits for the Lease: the watches follow the cluster, and the policies are loaded. No pass
//! runs, and the replica does not install packages, so it writes nothing.

use std::{convert::Infallible, sync::Arc};

use kaos_policy::policy::Policy;

use super::{Operator, rollout, tools::tools, watching::Watching};
use crate::catalogue::installed;

impl Operator {
    /// Follows the cluster and loads the policies until the future `leads` is ready. Returns the value of `leads`. The
    /// caller then calls [`run`](Self::run), which begins with a pass over every object, as after a start.
    pub async fn stand_by<T>(&mut self, leads: impl Future<Output = T>) -> T {
        let Self { context, options, installing, waker, .. } = &*self;
        waker.sleep();
        let watching = Watching::start(&context.access.watch);
        let warm = async {
            if let Some(installing) = installing {
                let tools = tools(context, options, Some(installing), Arc::clone(&waker.changes));
                let cover = |policies: &[Arc<Policy>]| rollout::cover_policies(context, policies, &options.left_out);
                return Box::pin(installed::stand_by(tools, installing, cover)).await;
            }
            rollout::cover_first(context, &options.left_out);
            std::future::pending::<Infallible>().await
        };
        let lead = tokio::select! {
            biased;
            lead = leads => lead,
            never = warm => match never {},
        };
        waker.awake(&context.access.watch);
        self.watching = Some(watching);
        lead
    }
}
