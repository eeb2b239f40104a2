//! Measures each call of a policy in a pass, and records the call as a trace span.

use std::{sync::Arc, time::Instant};

use kaos_policy::{
    failure::Verb,
    policy::PolicyId,
    render::{ObservedCall, Observer},
};
use tracing::{field::Empty, span::EnteredSpan};

use crate::{
    metrics::Metrics,
    trace::{self, step},
};

/// Sees the calls of policies.
pub(crate) struct PolicyCalls {
    pub(crate) metrics: Arc<Metrics>,
}

/// A call that has begun.
struct Call {
    metrics: Arc<Metrics>,
    policy: PolicyId,
    verb: Verb,
    span: EnteredSpan,
    began: Instant,
}

impl Observer for PolicyCalls {
    fn begins(&self, policy: &PolicyId, verb: Verb) -> Box<dyn ObservedCall> {
        let PolicyId { name, version, digest } = policy;
        let digest = digest.short();
        let span = step!("policy call", verb = verb.name(), policy = %name, %version, %digest, fuel = Empty).entered();
        let (metrics, policy) = (Arc::clone(&self.metrics), policy.clone());
        Box::new(Call { metrics, policy, verb, span, began: Instant::now() })
    }
}

impl ObservedCall for Call {
    fn ended(self: Box<Self>, fuel: u64) {
        self.span.record("fuel", fuel);
        self.metrics.policy_call(&self.policy, self.verb, self.began.elapsed(), trace::id_of(&self.span));
    }
}
