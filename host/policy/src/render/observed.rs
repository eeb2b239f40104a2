//! Shows each call of a policy to an observer, for metrics and traces.

use std::sync::Arc;

use crate::{
    code::Sandbox,
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    failure::{Failure, Verb},
    policy::{Policy, PolicyId},
};

/// Sees each call of a policy in a pass. An observer cannot change a call or its answer.
pub trait Observer: Send + Sync {
    /// Called when a call of a policy begins.
    fn begins(&self, policy: &PolicyId, verb: Verb) -> Box<dyn ObservedCall>;
}

/// One observed call, from its beginning to its end.
pub trait ObservedCall {
    /// Called when the call has ended, with the fuel that it used. If the call panics, the host drops this value
    /// without calling this method.
    fn ended(self: Box<Self>, fuel: u64);
}

/// Opens a sandbox of a policy. Shows the opening and all calls to the observer.
pub(super) fn open<'a>(
    policy: &'a Policy,
    observer: Option<&'a Arc<dyn Observer>>,
) -> Result<Box<dyn Sandbox + 'a>, Failure> {
    let open = || policy.code().open(policy.limits());
    let Some(observer) = observer else { return open() };
    let call = observer.begins(policy.id(), Verb::Open);
    let inner = open();
    call.ended(inner.as_ref().map_or(0, |sandbox| sandbox.fuel_used()));
    Ok(Box::new(ObservedSandbox { inner: inner?, policy: policy.id(), observer: &**observer }))
}

/// A sandbox whose calls an observer sees.
struct ObservedSandbox<'a> {
    inner: Box<dyn Sandbox + 'a>,
    policy: &'a PolicyId,
    observer: &'a dyn Observer,
}

impl<'a> ObservedSandbox<'a> {
    fn call<T>(&mut self, verb: Verb, call: impl FnOnce(&mut (dyn Sandbox + 'a)) -> T) -> T {
        let observed = self.observer.begins(self.policy, verb);
        let before = self.inner.fuel_used();
        let answer = call(&mut *self.inner);
        observed.ended(self.inner.fuel_used().saturating_sub(before));
        answer
    }
}

impl Sandbox for ObservedSandbox<'_> {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        self.call(Verb::Describe, Sandbox::describe)
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        self.call(Verb::Begin, |inner| inner.begin(subject))
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        self.call(Verb::Needs, |inner| inner.needs(found))
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        self.call(Verb::MapEnv, |inner| inner.map_env(base))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        self.call(Verb::Translate, |inner| inner.translate(env))
    }

    fn amend(&mut self, below: Plan) -> Result<Result<Plan, Refusal>, Failure> {
        self.call(Verb::Amend, |inner| inner.amend(below))
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        self.call(Verb::Assess, |inner| inner.assess(seen))
    }

    fn fuel_used(&self) -> u64 {
        self.inner.fuel_used()
    }

    fn memory(&self) -> usize {
        self.inner.memory()
    }
}
