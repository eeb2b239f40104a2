//! Implements [`Code`] for components of a draft of contract 0.2. Only tests use the draft. The tests show that the
//! host can serve a newer version of a record, and an optional interface. Components of 0.1 run next to components of
//! the draft.

use wasmtime::{
    Store,
    component::{InstancePre, ResourceAny},
};

use super::{state::State, trap};
use crate::{
    adapter::{
        v0_1::convert,
        v0_2::{self, policy, validator},
    },
    code::{Code, Sandbox, World},
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject, Violation},
    failure::{Failure, Verb},
    limits::Limits,
};

/// A compiled and linked component.
pub(super) struct DraftCode {
    engine: wasmtime::Engine,
    linked: policy::PolicyPre<State>,
    /// The optional interface, if the component exports it.
    validator: Option<validator::ValidatorPre<State>>,
}

struct DraftSandbox {
    store: Store<State>,
    instance: policy::Policy,
    pass: Option<ResourceAny>,
    limits: Limits,
}

impl DraftCode {
    pub(super) fn new(engine: wasmtime::Engine, linked: InstancePre<State>) -> wasmtime::Result<Self> {
        let validator = validator::ValidatorPre::new(linked.clone()).ok();
        Ok(Self { engine, linked: policy::PolicyPre::new(linked)?, validator })
    }

    fn store(&self, limits: &Limits) -> Result<Store<State>, Failure> {
        State::store(&self.engine, limits).map_err(|error| Failure::Sandbox(format!("{error:#}")))
    }
}

impl Code for DraftCode {
    fn world(&self) -> World {
        World::Policy
    }

    fn validate(&self, settings: &str, limits: &Limits) -> Option<Result<Vec<Violation>, Failure>> {
        let validator = self.validator.as_ref()?;
        let asked = || {
            let mut store = self.store(limits)?;
            let instance = validator.instantiate(&mut store);
            let answer = instance.and_then(|instance| {
                instance.kaos_policy0_2_0_draft_1_validation().call_validate(&mut store, &settings.to_owned())
            });
            let violations = answer.map_err(|error| trap::failure(&mut store, limits, Verb::Describe, &error))?;
            Ok(violations.into_iter().map(|it| Violation { path: it.path, message: it.message }).collect())
        };
        Some(asked())
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        let mut store = self.store(limits)?;
        match self.linked.instantiate(&mut store) {
            Ok(instance) => Ok(Box::new(DraftSandbox { store, instance, pass: None, limits: *limits })),
            Err(error) => Err(trap::failure(&mut store, limits, Verb::Open, &error)),
        }
    }
}

impl DraftSandbox {
    fn pass(&self) -> Result<ResourceAny, Failure> {
        self.pass.ok_or_else(Failure::no_pass)
    }

    fn typed<T>(&mut self, verb: Verb, answer: wasmtime::Result<T>) -> Result<T, Failure> {
        answer.map_err(|error| trap::failure(&mut self.store, &self.limits, verb, &error))
    }
}

impl Sandbox for DraftSandbox {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        let answer = self.instance.kaos_policy0_2_0_draft_1_meta().call_describe(&mut self.store);
        self.typed(Verb::Describe, answer).map(convert::descriptor)
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        let subject = convert::to_subject(subject);
        let translation = self.instance.kaos_policy0_2_0_draft_1_translation();
        let pass = translation.pass().call_constructor(&mut self.store, &subject);
        self.pass = Some(self.typed(Verb::Begin, pass)?);
        Ok(())
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        let (pass, found) = (self.pass()?, convert::to_founds(found));
        let translation = self.instance.kaos_policy0_2_0_draft_1_translation();
        let answer = translation.pass().call_needs(&mut self.store, pass, &found);
        self.typed(Verb::Needs, answer).map(convert::needs)
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        let (pass, base) = (self.pass()?, convert::to_env(base));
        let translation = self.instance.kaos_policy0_2_0_draft_1_translation();
        let answer = translation.pass().call_map_env(&mut self.store, pass, &base);
        Ok(self.typed(Verb::MapEnv, answer)?.map(convert::env).map_err(convert::refusal))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        let (pass, env) = (self.pass()?, convert::to_env(env));
        let translation = self.instance.kaos_policy0_2_0_draft_1_translation();
        let answer = translation.pass().call_translate(&mut self.store, pass, &env);
        Ok(self.typed(Verb::Translate, answer)?.map(v0_2::plan).map_err(convert::refusal))
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        let (pass, seen) = (self.pass()?, convert::to_observation(seen));
        let translation = self.instance.kaos_policy0_2_0_draft_1_translation();
        let answer = translation.pass().call_assess(&mut self.store, pass, &seen);
        self.typed(Verb::Assess, answer).map(convert::report)
    }

    fn fuel_used(&self) -> u64 {
        self.limits.fuel.saturating_sub(self.store.get_fuel().unwrap_or_default())
    }

    fn memory(&self) -> usize {
        self.store.data().memory()
    }
}

#[cfg(test)]
mod tests;
